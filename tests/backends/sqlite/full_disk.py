"""Fills a small disk to its last byte while nobody has the store open, and purges it: `full_disk.py FOLDER`.

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
from tsuzuki.testing import builders as b

RUNS = 120


async def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)], check=True)
    url = f"sqlite:{folder / 'store.db'}"
    async with Runs.open(url) as runs:
        large = msgspec.Raw(msgspec.json.encode("x" * 20_000))
        ended = [await b.ended(runs.backend, Status.COMPLETED, params=large) for _ in range(RUNS)]
    with (folder / "other").open("wb", buffering=0) as other, contextlib.suppress(OSError):
        while True:
            other.write(b"x" * 4096)
    print("free", os.statvfs(folder).f_bavail)  # noqa: T201 - what the test reads
    async with Runs.open(url) as runs:
        print("deleted", await runs.backend.purge([ended[0].id]))  # noqa: T201 - the same
    async with Runs.open(url) as runs:
        print("purged", await runs.purge(older_than=datetime.now(UTC) + timedelta(days=1)))  # noqa: T201 - the same
        await runs.submit("next")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
