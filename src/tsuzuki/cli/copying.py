"""The commands that copy a store and bring it back: backup, verify, restore."""

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from tsuzuki import application, settings
from tsuzuki.backends import Check, amount, copying
from tsuzuki.backends.beside import Beside
from tsuzuki.backends.manifest import Manifest
from tsuzuki.cli import render
from tsuzuki.cli.keeping import tell
from tsuzuki.cli.store import Store, debug_option, store_options
from tsuzuki.errors import StoreUnavailable
from tsuzuki.examination import examine
from tsuzuki.redact import redact
from tsuzuki.runs import Runs

FOLDER: Final = click.Path(path_type=Path, file_okay=False)
OURS: Final = ("llm_cache.db", "llm_jobs.db", "tenants")
"""What the data folder holds beside a store: of language models, and of the tenants of applications."""


@click.command(short_help="Copy a store, while it is in use.")
@click.argument("folder", type=FOLDER)
@render.json_option
@store_options
def backup(store: Store, *, folder: Path, as_json: bool) -> int:
    """Copy the store into a new folder, consistently, while others work with it.

    \b
      tsuzuki backup backups/monday
      tsuzuki backup backups/monday --backend nats://127.0.0.1:4222
    """  # noqa: D301 - click reads \b as: keep these lines
    if store.missing:
        raise StoreUnavailable(store.absence)
    return backed_up(store.url, folder, as_json=as_json)


def backed_up(url: str, folder: Path, *, as_json: bool) -> int:
    """Backs a store up, and tells what there was."""
    made = asyncio.run(copying.backup(url, folder, _beside()))
    if made.lacking:
        click.echo(
            f"warning: the store has lost {', '.join(made.lacking)}, and the backup cannot have it; "
            "tsuzuki doctor tells more",
            err=True,
        )
    _tell(f"copied {_what(made)} into {folder}; tsuzuki verify {folder} looks whether it is whole", made, as_json)
    return 0


def _beside() -> Beside:
    """Names what applications keep in the data folder."""
    names = list(OURS)
    for name, found in application.applications():
        if isinstance(found, Exception):
            click.echo(f"warning: its files are left out: {application.told(name, found)}", err=True)
        else:
            names += found.keeps
    return Beside(settings.data_dir(), names)


@click.command(short_help="Say whether a backup is whole.")
@click.argument("folder", type=FOLDER)
@render.json_option
@debug_option
def verify(*, folder: Path, as_json: bool) -> int:
    """Compare every file of a backup with the size and the digest that it had. The exit code is 1 if one differs.

    \b
      tsuzuki verify backups/monday
    """  # noqa: D301 - click reads \b as: keep these lines
    made, flaws = asyncio.run(copying.verify(folder))
    if as_json:
        render.put({**_plain(made), "flaws": flaws})
    elif flaws:
        click.echo("\n".join(f"NOT OK  {flaw}" for flaw in flaws))
    else:
        click.echo(f"ok      {_what(made)}, taken at {made.taken_at} from {made.store}: every file is what was written")
    return 1 if flaws else 0


@click.command(short_help="Bring a store back from a backup.")
@click.argument("folder", type=FOLDER)
@render.json_option
@store_options
def restore(store: Store, *, folder: Path, as_json: bool) -> int:
    """Make a store of a backup, where there is none; one that is there is never overwritten.

    \b
      tsuzuki restore backups/monday --data-dir .tsuzuki
      tsuzuki restore backups/monday --backend "nats://10.0.0.1:4222?replicas=3"
    """  # noqa: D301 - click reads \b as: keep these lines
    return restored(store.url, folder, as_json=as_json)


def restored(url: str, folder: Path, *, as_json: bool) -> int:
    """Restores a store, and tells what is wrong with it, if anything is."""
    made, left, checks = asyncio.run(_restored(url, folder))
    wrong = [check for check in checks if not check.ok]
    if left:
        there = f"in {settings.data_dir()} there is already, and was left as it is: {', '.join(left)}"
        click.echo(f"warning: {there}; the backup has it in {folder / 'beside'}", err=True)
    _tell(f"restored {_what(made)} of {made.taken_at} to {redact(url)}", made, as_json)
    return tell(wrong, as_json=False) if wrong and not as_json else int(bool(wrong))


async def _restored(url: str, folder: Path) -> tuple[Manifest, list[str], list[Check]]:
    """Restores, and looks the store over once: what a backup has too much of is seen to as after a crash."""
    made, left = await copying.restore(folder, url, Beside(settings.data_dir(), ()))
    async with Runs.open(url) as runs:
        # Whoever waits for a worker waits rightly: there are none yet.
        return made, left, [check for check in await examine(runs, quick=True) if check.name != "waiting"]


def _what(made: Manifest) -> str:
    counts = ", ".join(render.counted(count, name.removesuffix("s")) for name, count in made.counts.items())
    streams = f"{len(made.streams)} streams, " if made.streams else ""
    return f"{streams}{counts}, {render.counted(len(made.files), 'file')}, {amount(made.size)}"


def _tell(text: str, made: Manifest, as_json: bool) -> None:
    if as_json:
        render.put(_plain(made))
    else:
        click.echo(text)


def _plain(made: Manifest) -> dict[str, Any]:
    named = {name: getattr(made, name) for name in ("kind", "store", "taken_at", "version", "counts", "lacking")}
    return {**named, "files": len(made.files), "bytes": made.size, "streams": [each.name for each in made.streams]}


COMMANDS: Final = (backup, verify, restore)
