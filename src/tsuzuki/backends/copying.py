"""Backs up, verifies and restores the store that an address names, and what lies beside it in the data folder."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from tsuzuki import settings
from tsuzuki.backends import manifest
from tsuzuki.backends.address import file_of, is_nats
from tsuzuki.backends.beside import NOTHING, Beside
from tsuzuki.backends.manifest import Manifest
from tsuzuki.backends.sqlite.faults import file_fault
from tsuzuki.clock import SystemClock
from tsuzuki.errors import BadUsage
from tsuzuki.lifecycle import stamp
from tsuzuki.redact import redact


async def backup(url: str, folder: Path, beside: Beside = NOTHING) -> Manifest:
    """Copies a store into a new folder, while others work; then what lies beside it, which is not older."""
    try:
        with manifest.making(folder):
            made = await _store_backed_up(url, folder)
            made = replace(made, beside=await asyncio.to_thread(beside.save, folder))
            manifest.write(folder, made)
    except OSError as error:
        raise file_fault(error, folder) from error
    return made


async def _store_backed_up(url: str, folder: Path) -> Manifest:
    if is_nats(url):
        from tsuzuki.backends.nats import backup as of_nats  # noqa: PLC0415 - an optional extra

        return await of_nats.backup(url, folder, settings.nats_credentials())
    from tsuzuki.backends.sqlite import backup as of_sqlite  # noqa: PLC0415 - a program uses one of the stores

    return await asyncio.to_thread(of_sqlite.backup, _file(url), folder, stamp(SystemClock().now()))


async def restore(folder: Path, url: str, beside: Beside = NOTHING) -> tuple[Manifest, list[str]]:
    """Makes a store of a backup, where none is; names what was left as it is beside it."""
    made = await _store_restored(folder, url)
    try:
        return made, await asyncio.to_thread(beside.bring_back, folder, made.beside)
    except OSError as error:
        raise file_fault(error, beside.folder) from error


async def _store_restored(folder: Path, url: str) -> Manifest:
    if is_nats(url):
        from tsuzuki.backends.nats import backup as of_nats  # noqa: PLC0415 - an optional extra

        return await of_nats.restore(folder, url, settings.nats_credentials())
    from tsuzuki.backends.sqlite import backup as of_sqlite  # noqa: PLC0415 - a program uses one of the stores

    return await asyncio.to_thread(of_sqlite.restore, folder, _file(url))


async def verify(folder: Path) -> tuple[Manifest, list[str]]:
    """Compares the files of a backup with what it says of itself; gives what is wrong."""
    made = manifest.read(folder)
    return made, await asyncio.to_thread(manifest.flaws, folder, made.files)


def _file(url: str) -> Path:
    path = file_of(url)
    if path is None:
        raise BadUsage(f"{redact(url)!r} cannot be backed up or restored: it is neither a file nor a NATS server")
    return path
