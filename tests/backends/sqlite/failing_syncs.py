"""Submits a run, then another one while the log cannot be synced, and dies: `failing_syncs.py FILE TIMES`.

SQLite itself meets the fault: its way to the system is wrapped by one that refuses to sync the write-ahead log.
"""

import _sqlite3
import asyncio
import ctypes as c
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tsuzuki import Runs
from tsuzuki.errors import StoreUnavailable

IOERR_FSYNC = 1034
WAL = 0x00080000
LIBRARY = c.CDLL(_sqlite3.__file__)
OPEN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_int, c.c_void_p)
SYNC = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int)
left = 0
"""How often a sync of the log is still refused."""


class System(c.Structure):
    """`sqlite3_vfs`, up to what is wrapped; the rest is copied as it is."""

    _fields_ = (
        *(("version", c.c_int), ("size", c.c_int), ("longest", c.c_int), ("next", c.c_void_p)),
        *(("name", c.c_char_p), ("data", c.c_void_p), ("open", c.c_void_p), ("others", c.c_void_p * 15)),
    )


class Methods(c.Structure):
    """`sqlite3_io_methods`: a version and 18 functions, of which the fifth syncs."""

    _fields_ = (("version", c.c_int), ("functions", c.c_void_p * 18))


SYNCS = 4
LIBRARY.sqlite3_vfs_find.restype = c.POINTER(System)
plain = LIBRARY.sqlite3_vfs_find(None)
wrapped = System.from_buffer_copy(plain.contents)
plain_open = OPEN(wrapped.open)
kept: list[object] = []
"""What SQLite holds pointers to."""


def sync_as(plainly: Callable[[int, int], int]) -> Any:
    def sync(file: int, how: int) -> int:
        global left  # noqa: PLW0603 - the main program sets it
        if left:
            left -= 1
            return IOERR_FSYNC
        return int(plainly(file, how))

    return SYNC(sync)


def opens(system: int, name: int, file: int, flags: int, out: int) -> int:
    del system
    answer = int(plain_open(c.addressof(plain.contents), name, file, flags, out))
    if not answer and flags & WAL:
        methods = c.cast(file, c.POINTER(c.c_void_p))
        own = Methods.from_buffer_copy(Methods.from_address(methods[0] or 0))
        sync = sync_as(SYNC(own.functions[SYNCS]))
        own.functions[SYNCS] = c.cast(sync, c.c_void_p).value
        kept.extend((own, sync))
        methods[0] = c.addressof(own)
    return answer


async def main(file: str, times: int) -> None:
    global left  # noqa: PLW0603 - counted down while SQLite syncs
    async with Runs.open(f"sqlite:{file}") as runs:
        await runs.submit("first")
        left = times
        try:
            await runs.submit("second")
        except StoreUnavailable as error:
            print(error, flush=True)  # noqa: T201 - what the test reads
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    wrapper = OPEN(opens)
    wrapped.open = c.cast(wrapper, c.c_void_p).value
    wrapped.name = b"refusing"
    LIBRARY.sqlite3_vfs_register(c.byref(wrapped), 1)
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
