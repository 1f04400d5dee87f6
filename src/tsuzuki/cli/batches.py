"""The command that hands many runs to a gateway at once."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from tsuzuki.cli import render
from tsuzuki.cli.params import read_file, unmarked
from tsuzuki.cli.remote import output_option, over_http
from tsuzuki.errors import BadUsage

if TYPE_CHECKING:
    from tsuzuki.client import Client

MOST: Final = 1000
"""A request has at most so many runs."""
LARGEST: Final = 2_000_000
"""And no more once it has about so many bytes; a gateway takes 4 MiB, unless it was told otherwise."""

Asked = tuple[int, Any]
"""A line of the file by its number, and the run it asks for."""


@click.command("submit-batch", short_help="Start many runs on a gateway.")
@click.argument("file", metavar="FILE.jsonl|-")
@click.option("--idempotency-key", metavar="KEY", help="The same file with this key again starts nothing twice.")
@output_option("table", "json", "jsonl")
@over_http
def submit_batch(client: "Client", *, file: str, idempotency_key: str | None, output: str) -> int:
    """Start many runs on a gateway: one JSON object a line, with `flow_name` and what else a run may have.

    Each is accepted or refused on its own: ids go to stdout, and what was refused to stderr; then the exit code is 1.

    \b
      echo '{"flow_name": "sample", "params": {"sentences": 3}}' | tsuzuki submit-batch -
      tsuzuki submit-batch nightly.jsonl --idempotency-key 2026-01-31
    """  # noqa: D301 - click reads \b as: keep these lines
    answers: list[dict[str, Any]] = []
    for number, part in enumerate(_parts(list(_asked(read_file(file), file)))):
        key = f"{idempotency_key}-{number}" if idempotency_key else None
        items = client.submit_runs([run for _, run in part], idempotency_key=key)["items"]
        told = [{**item, "line": line} for (line, _), item in zip(part, items, strict=True)]
        answers += told
        if output != "json":
            _tell(told, output)
    if output == "json":
        render.put(answers)
    refused = [one for one in answers if not one["run_id"]]
    for one in refused:
        click.echo(f"line {one['line']}: {one['error']} [{one['error_id']}]", err=True)
    click.echo(f"{render.counted(len(answers) - len(refused), 'run')} accepted, {len(refused)} refused", err=True)
    return 1 if refused else 0


def _asked(text: bytes, file: str) -> Iterator[Asked]:
    for number, line in enumerate(unmarked(text).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield number, msgspec.json.decode(line)
        except ValueError as error:
            raise BadUsage(f"{file}, line {number} is no JSON: {error}; nothing was started") from error


def _parts(asked: Iterable[Asked]) -> Iterator[list[Asked]]:
    """Gives as many at a time as a request may have; the same file always gives the same parts."""
    part: list[Asked] = []
    size = 0
    for one in asked:
        part.append(one)
        size += len(msgspec.json.encode(one[1]))
        if len(part) == MOST or size > LARGEST:
            yield part
            part, size = [], 0
    if part:
        yield part


def _tell(answers: list[dict[str, Any]], output: str) -> None:
    for one in answers:
        if output == "jsonl":
            render.put(one)
        elif one["run_id"]:
            click.echo(one["run_id"])


COMMANDS: Final = (submit_batch,)
