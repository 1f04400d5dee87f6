"""The commands that look after the store: purge, delete and doctor."""

import asyncio
import platform
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from tsuzuki import __version__
from tsuzuki.backends import Check, Query
from tsuzuki.cli import render
from tsuzuki.cli.looking import pages
from tsuzuki.cli.narrow import columns
from tsuzuki.cli.params import agreed_to_remove
from tsuzuki.cli.remote import here_or_over_http, reference
from tsuzuki.cli.store import Store, on_runs, store_options
from tsuzuki.errors import NewerStore, NotAStore, StoreError
from tsuzuki.examination import examine
from tsuzuki.lifecycle import TERMINAL, stamp
from tsuzuki.overview import Overview
from tsuzuki.runs import Runs

if TYPE_CHECKING:
    from tsuzuki.client import Client

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NAMES: Final = 10
"""How wide the names of what was examined are at least."""
_OLDEST: Final = 50 * 365 * 86400.0
"""How long ago a run may have ended (seconds): before 1970 there is nothing that a clock could say."""
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


class Age(click.ParamType[float]):
    """An age such as 30d, in seconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads a number and a unit."""
        found = _AGE.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no age: say a number and s, m, h, d or w, for example 30d", param, ctx)
        age = float(found[1]) * _SECONDS[found[2]]
        if age > _OLDEST:
            self.fail(f"{value!r} is no age of a run: say at most 50 years", param, ctx)
        return age


@click.command(short_help="Remove runs that ended long ago.")
@click.option("--older-than", required=True, type=Age(), metavar="AGE", help="For example 30d; s, m, h, d or w.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say how many runs it would remove.")
@render.json_option
@on_runs
async def purge(runs: Runs, *, older_than: float, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove runs that ended long ago, with their journals, logs and results.

    \b
      tsuzuki purge --older-than 30d --dry-run
    """  # noqa: D301 - click reads \b as: keep these lines
    limit = runs.now() - older_than
    found = await _ended_before(runs, limit)
    those = f"{render.counted(found, 'run')} that ended before {render.local(limit)}"
    if dry_run or not found:
        _tell_purged(f"would remove {those}" if found else "nothing to remove", found, 0, as_json=as_json)
        return 0
    if not yes and not agreed_to_remove(those):
        return 1
    removed = await runs.purge(older_than=datetime.fromtimestamp(limit, UTC))
    _tell_purged(f"removed {render.counted(removed, 'run')}", found, removed, as_json=as_json)
    return 0


def _tell_purged(text: str, found: int, removed: int, *, as_json: bool) -> None:
    if as_json:
        render.put({"found": found, "removed": removed})
    else:
        click.echo(text)


async def _ended_before(runs: Runs, limit: float) -> int:
    query = Query(status=tuple(sorted(TERMINAL)), finished_before=stamp(limit), limit=sys.maxsize)
    return sum([1 async for _ in pages(runs, query)])


def _delete_there(client: "Client", *, output: str, reference: str, yes: bool) -> int:
    """Removes a run of a gateway."""
    run = client.get_run(reference)
    name = f"run {run.get('number', '')} of {run['flow_name']}"
    if not yes and not agreed_to_remove(name):
        return 1
    client.delete_run(run["run_id"])
    return _tell_deleted(name, run["run_id"], as_json=output in ("json", "jsonl"))


def _tell_deleted(name: str, run_id: str, *, as_json: bool) -> int:
    if as_json:
        render.put({"run_id": run_id, "deleted": True})
    else:
        click.echo(f"{name} is removed")
    return 0


@click.command(short_help="Remove one run that has ended.")
@reference
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@render.json_option
@here_or_over_http(_delete_there)
@on_runs
async def delete(runs: Runs, reference: str, *, yes: bool, as_json: bool) -> int:
    """Remove one run that has ended, with its journal, log and results.

    \b
      tsuzuki delete 3
      tsuzuki delete 3 --yes --server http://127.0.0.1:8000
    """  # noqa: D301 - click reads \b as: keep these lines
    row = await runs.get(reference)
    name = f"run {row.number} of {row.flow}"
    if not yes and not agreed_to_remove(name):
        return 1
    await Overview(runs).remove(row)
    return _tell_deleted(name, row.id, as_json=as_json)


@click.command(short_help="Examine the store.")
@render.json_option
@click.option("--rebuild", is_flag=True, help="Fold every run's row anew from its journal first.")
@click.option("--quick", is_flag=True, help="Do not read all journals and wheels.")
@click.option("--compact", is_flag=True, help="Give unused space back to the disk; others who write wait meanwhile.")
@store_options
def doctor(store: Store, *, as_json: bool, **options: bool) -> int:
    """Examine everything: store, journals, rows, wheels, what belongs to no run, room, workers, runs that wait.

    What is not ok is told with what to do. The exit code is 1 if something is not ok.

    \b
      tsuzuki doctor
      tsuzuki doctor --rebuild
    """  # noqa: D301 - click reads \b as: keep these lines
    system = f"tsuzuki {__version__}, Python {platform.python_version()}, {platform.system()}"
    checks = [Check("version", ok=True, text=system), *asyncio.run(_examined(store, **options))]
    return tell(checks, as_json=as_json)


def tell(checks: Sequence[Check], *, as_json: bool) -> int:
    """Shows what was found, each with what to do; gives the exit code."""
    if as_json:
        render.put(checks)
    else:
        width = max(_NAMES, *(columns(check.name) for check in checks))
        for check in checks:
            click.echo(
                f"{'ok' if check.ok else 'NOT OK':<8}{render.padded(check.name, width)}  {render.one_line(check.text)}"
            )
            if check.do:
                click.echo(f"{'':<8}{render.padded('', width)}  → {check.do}")
    return 0 if all(check.ok for check in checks) else 1


async def _examined(store: Store, *, rebuild: bool, compact: bool, quick: bool) -> list[Check]:
    """Examines a store; one that cannot even be opened is told of in the same way."""
    if store.missing:
        return [Check("store", ok=False, text=store.absence, do="name the folder of the store with --data-dir")]
    try:
        async with store.open() as runs:
            mended = [_mended(await runs.rebuild())] if rebuild else []
            compacted = [await runs.compact()] if compact else []
            return [*mended, *compacted, *await examine(runs, quick=quick)]
    except StoreError as error:
        return [Check("store", ok=False, text=f"{error} [{error.error_id}]", do=_remedy(error))]


def _remedy(error: StoreError) -> str:
    """Says what to do about a store that cannot be opened."""
    if isinstance(error, NewerStore):
        return "upgrade tsuzuki on this machine"
    if isinstance(error, NotAStore):
        return "move it away, and bring a backup back in its place: tsuzuki restore FOLDER"
    return "see to what it says, and look again"


def _mended(wrong: int) -> Check:
    return Check("rebuild", ok=True, text=f"{wrong} rows were wrong and are mended")


COMMANDS: Final = (purge, delete, doctor)
