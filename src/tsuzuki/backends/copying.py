"""Backs up, verifies and restores the store that an address names."""

import asyncio
from pathlib import Path

from tsuzuki import settings
from tsuzuki.backends import manifest
from tsuzuki.backends.address import file_of, is_nats
from tsuzuki.backends.manifest import Manifest
from tsuzuki.clock import SystemClock
from tsuzuki.errors import BadUsage
from tsuzuki.lifecycle import stamp
from tsuzuki.redact import redact


async def backup(url: str, folder: Path) -> Manifest:
    """Copies a store into a new folder, while others work."""
    if is_nats(url):
        from tsuzuki.backends.nats import backup as of_nats  # noqa: PLC0415 - an optional extra

        return await of_nats.backup(url, folder, settings.nats_credentials())
    from tsuzuki.backends.sqlite import backup as of_sqlite  # noqa: PLC0415 - a program uses one of the stores

    return await asyncio.to_thread(of_sqlite.backup, _file(url), folder, stamp(SystemClock().now()))


async def restore(folder: Path, url: str) -> Manifest:
    """Makes a store of a backup, where none is."""
    if is_nats(url):
        from tsuzuki.backends.nats import backup as of_nats  # noqa: PLC0415 - an optional extra

        return await of_nats.restore(folder, url, settings.nats_credentials())
    from tsuzuki.backends.sqlite import backup as of_sqlite  # noqa: PLC0415 - a program uses one of the stores

    return await asyncio.to_thread(of_sqlite.restore, folder, _file(url))


async def verify(folder: Path) -> tuple[Manifest, list[str]]:
    """Compares the files of a backup with what it says of itself; gives what is wrong."""
    made = manifest.read(folder)
    return made, await asyncio.to_thread(manifest.flaws, folder, made.pieces)


def _file(url: str) -> Path:
    path = file_of(url)
    if path is None:
        raise BadUsage(f"{redact(url)!r} cannot be backed up or restored: it is neither a file nor a NATS server")
    return path
