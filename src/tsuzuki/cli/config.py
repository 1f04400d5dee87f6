"""The command that shows what is set, and where each value came from: config."""

from typing import Final

import click

from tsuzuki import settings
from tsuzuki.cli import render
from tsuzuki.cli.store import strict_option

_HEAD: Final = ("SETTING", "VALUE", "FROM")


@click.command(short_help="Show what is set, and where each value came from.")
@click.option("--data-dir", metavar="DIR", help="As another command would be told.")
@click.option("--backend", metavar="URL", help="As another command would be told.")
@click.option("--changed", is_flag=True, help="Only what is not as it is by default.")
@render.json_option
@strict_option
def config(*, data_dir: str | None, backend: str | None, changed: bool, as_json: bool) -> int:
    """Show what is set, and where each value came from: a flag, the environment, the .env file or the default.

    Secrets are masked. A value that makes no sense is told of, and its default holds; with --strict-config
    that is an error.

    \b
      tsuzuki config --changed
      TSUZUKI_LOG_LEVEL=DEBUG tsuzuki config --strict-config
    """  # noqa: D301 - click reads \b as: keep these lines
    found = settings.effective({"TSUZUKI_DATA_DIR": data_dir, "TSUZUKI_BACKEND": backend})
    shown = [one for one in found if not changed or one.origin != "default"]
    if as_json:
        render.put([{"name": s.setting.name, "value": s.shown, "from": s.origin} for s in shown])
    else:
        for line in render.table(_HEAD, ((one.setting.name, one.shown, one.origin) for one in shown)):
            click.echo(line)
    for one in found:
        if one.refusal:
            click.echo(f"warning: {one.refusal}", err=True)
    for contradiction in settings.contradictions():
        click.echo(f"warning: {contradiction}", err=True)
    for name, meant in settings.strangers().items():
        advice = f"; did you mean {meant}?" if meant else ""
        click.echo(f"warning: {name} is no setting of Tsuzuki{advice}", err=True)
    return 0


COMMANDS: Final = (config,)
