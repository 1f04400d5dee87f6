"""Fill a small disk to its last byte while nobody uses the store, and purge it: `full_disk.py FOLDER ITEMS BYTES`.

To be started in a mount namespace of its own, so that the disk is gone with it.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from tsuzuki import Runs, Status
from tsuzuki import facts as f
from tsuzuki.testing import builders as b

SPACE = 6_000_000
"""So many bytes all runs take together."""

DELETE_AND_DIE = """
import asyncio, contextlib, os, sqlite3, sys
from tsuzuki.backends.sqlite import SqliteBackend

path, run_id, facts = sys.argv[1:]

def look(statement):
    if statement.startswith("BEGIN"):
        with contextlib.closing(sqlite3.connect(path)) as other:
            if other.execute("SELECT count(*) FROM facts WHERE run = 1").fetchone()[0] < int(facts):
                os._exit(9)

async def main():
    store = await SqliteBackend.open(path)
    store._writing.set_trace_callback(look)
    await store.purge([run_id])

asyncio.run(main())
"""
"""Removes a run until some of its facts are gone."""


def batched(facts: list[f.Fact]) -> list[list[f.Fact]]:
    return [facts[at : at + 100] for at in range(0, len(facts), 100)]


async def is_sound(runs: Runs) -> bool:
    return all(check.ok for check in await runs.backend.examine() if check.name != "disk")


async def main(folder: Path, items: int, size: int) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)], check=True)
    path = folder / "store.db"
    url = f"sqlite:{path}"
    large = msgspec.Raw(msgspec.json.encode("x" * size))
    ended = []
    async with Runs.open(url) as runs:
        for _ in range(SPACE // size // (items or 2)):  # params are kept twice
            claim = await b.claimed(runs.backend, params=msgspec.Raw(b"{}") if items else large)
            facts: list[f.Fact] = [f.ItemDone(at=b.AT, step="s", key=str(n), result=large) for n in range(items)]
            for some in batched(facts):
                await runs.backend.append(claim, some)
            await runs.backend.append(claim, [b.ending(Status.COMPLETED)])
            ended.append(claim.run.id)
    with (folder / "other").open("wb", buffering=0) as other, contextlib.suppress(OSError):
        while True:
            other.write(b"x" * 4096)
    print("free", os.statvfs(folder).f_bavail)  # noqa: T201 - what the test reads
    command = [sys.executable, "-c", DELETE_AND_DIE, str(path), ended[0], str(items + 3)]
    print("killed", subprocess.run(command, check=False).returncode == 9)  # noqa: T201 - the same
    async with Runs.open(url) as runs:
        print("gone", await runs.backend.get(ended[0]) is None, await is_sound(runs))  # noqa: T201 - the same
        print("deleted", await runs.backend.purge([ended[1]]), await is_sound(runs))  # noqa: T201 - the same
    async with Runs.open(url) as runs:
        purged = await runs.purge(older_than=datetime.now(UTC) + timedelta(days=1))
        print("purged", purged == len(ended) - 2, await is_sound(runs))  # noqa: T201 - the same
        await runs.submit("next")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
