"""The commands that look at a flow written as YAML, without running it: flow check and flow show."""

from typing import Final

import click

from tsuzuki.cli.params import read_file
from tsuzuki.cli.render import put
from tsuzuki.cli.store import debug_option


@click.group()
def flow() -> None:
    """Look at flows written as YAML."""


@flow.command(short_help="Say what is wrong with a YAML flow.")
@click.argument("files", metavar="FILE.yaml|-", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list of what is wrong.")
@debug_option
def check(files: tuple[str, ...], *, as_json: bool) -> int:
    """Say what is wrong with flows written as YAML, by line and column; exit code 1 if something is.

    The same is checked when a run is submitted. Nothing is imported or run. A `callable` without a module names a
    task that a worker has registered. Only the gateway can check that, and it refuses other names.

    \b
      tsuzuki flow check pipeline.yaml
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki import yamlflow  # noqa: PLC0415 - YAML is heavy, and other commands do not need it

    texts = {file: read_file(file) for file in files}
    found = {file: yamlflow.check(text) for file, text in texts.items()}
    for file, text in texts.items():
        if not found[file] and (names := yamlflow.parse(text).unaddressed):
            reason = "only the gateway knows which tasks its workers have registered"
            click.echo(f"{file}: {', '.join(sorted(names))} not checked: {reason}", err=True)
    if as_json:
        flaws = [(file, flaw) for file in found for flaw in found[file]]
        put([{"file": file, "line": f.line, "column": f.column, "message": f.text} for file, f in flaws])
    else:
        for file, told in found.items():
            lines = [f"{file}:{flaw.line}:{flaw.column}: {flaw.text}" for flaw in told]
            click.echo("\n".join(lines or [f"{file}: ok"]))
    return 1 if any(found.values()) else 0


@flow.command(short_help="Draw the graph of a YAML flow.")
@click.argument("file", metavar="FILE.yaml|-")
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart, for Markdown pages.")
@debug_option
def show(file: str, *, mermaid: bool) -> None:
    """Draw the graph of a flow written as YAML.

    \b
      tsuzuki flow show pipeline.yaml
      tsuzuki flow show pipeline.yaml --mermaid > pipeline.mmd
    """  # noqa: D301 - click reads \b as: keep these lines
    from tsuzuki import yamlflow  # noqa: PLC0415 - YAML is heavy, and other commands do not need it

    workflow = yamlflow.parse(read_file(file))
    click.echo(yamlflow.mermaid(workflow) if mermaid else yamlflow.draw(workflow))


COMMANDS: Final = (flow,)
