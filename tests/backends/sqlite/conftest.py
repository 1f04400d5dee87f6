"""A store in a file of the test's own, and a way to run pieces of code in other processes."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tsuzuki.backends.sqlite import SqliteBackend

Start = Callable[..., "subprocess.Popen[str]"]

PRELUDE = """
import asyncio, sys
from tsuzuki import facts as f
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.testing import builders as b
path, *arguments = sys.argv[1:]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tsuzuki.db"


@pytest_asyncio.fixture
async def backend(path: Path) -> AsyncIterator[SqliteBackend]:
    store = await SqliteBackend.open(path)
    yield store
    await store.close()


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts a process that runs a piece of code on the same file; prints are its answer."""
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object) -> "subprocess.Popen[str]":
        program = PRELUDE + textwrap.dedent(code)
        command = [sys.executable, "-c", program, str(path), *map(str, arguments)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


async def answer(process: "subprocess.Popen[str]") -> str:
    """Waits for a process and gives what it printed."""
    output, _ = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 0
    return str(output).strip()
