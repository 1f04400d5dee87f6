"""Real processes for tests: started, watched, killed and always waited for, by the id they were started with."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import tsuzuki
from tests.acceptance.flows.calls import LIMIT
from tsuzuki.testing.stopwatch import Stopwatch

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""How long a condition may take to come true on a machine under load (seconds)."""
ANOTHER_HOST = ("unshare", "--mount") if os.getuid() == 0 else ("unshare", "--map-root-user", "--mount")
"""What makes a process look like one on another host: locks of files beyond its mount namespace tell it nothing."""

_numbers = count(1)


class Child:
    """A process that runs a script of `tests/acceptance/flows` in a folder; what it writes goes to files there.

    `inside` is a command that becomes it in other surroundings: another network, or another host as far as
    the engine can tell (`ANOTHER_HOST`).
    """

    def __init__(self, script: str, *args: object, folder: Path, inside: Sequence[str] = ()) -> None:
        self._out = folder / f"{script}-{next(_numbers)}.out"
        self._err = self._out.with_suffix(".err")
        env = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(Path(tsuzuki.__file__).parents[1])])
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*inside, sys.executable, "-m", f"tests.acceptance.flows.{script}", *map(str, args)],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return self._out.read_text()

    @property
    def complained(self) -> str:
        return self._err.read_text()

    async def speaks(self) -> None:
        """Waits until it has said something."""
        await until(lambda: self.said or not self.running(), "it says something")

    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        if self.running():
            self._process.send_signal(number)

    async def freezes(self) -> None:
        """Freezes it, and waits until all its threads stand still: one may first have to come out of the system."""
        self.send(signal.SIGSTOP)
        threads = Path(f"/proc/{self.pid}/task")

        def still() -> bool:
            try:
                states = [(each / "stat").read_text().rpartition(")")[2].split()[0] for each in threads.iterdir()]
            except OSError:  # a thread ended meanwhile
                return False
            return set(states) == {"T"}

        await until(still, "it stands still")

    def kill(self) -> None:
        """Ends it as a power cut does, and waits for it."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def ended(self, within: float = PATIENCE) -> int:
        """Waits until it has ended by itself; gives its exit code."""
        return self._process.wait(within)


@contextlib.contextmanager
def started(script: str, *args: object, folder: Path, inside: Sequence[str] = ()) -> Iterator[Child]:
    """Starts a process, and kills it at the end if it still runs."""
    child = Child(script, *args, folder=folder, inside=inside)
    try:
        yield child
    finally:
        child.kill()


def held_after(folder: Path, size: int) -> Path:
    """Has the scripts of a folder wait once they have told so many bytes of calls, until the file is removed."""
    limit = folder / LIMIT
    limit.write_text(str(size))
    return limit


async def ended_slowly(child: Child, limit: Path) -> int:
    """Lets a script that waits at its limit make a few calls at a time until it has ended; gives its exit code."""
    size = int(limit.read_text())
    while child.running():
        size += 250
        limit.write_text(str(size))
        await asyncio.sleep(0.2)
    limit.unlink()
    return child.ended()


def finished(script: str, *args: object, folder: Path) -> str:
    """Runs a script to its good end; gives what it said."""
    with started(script, *args, folder=folder) as child:
        assert child.ended() == 0, child.complained
        return child.said


async def until(condition: Callable[[], object], what: str, within: float = PATIENCE) -> None:
    """Waits until something is so; says what it waited for when it never is."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"waited {within:g} s in vain until {what}"
        await asyncio.sleep(0.002)


async def eventually(condition: Callable[[], Awaitable[object]], what: str, within: float = PATIENCE) -> float:
    """Waits until a store says that something is so; gives how long it took on a machine that has time for it."""
    with Stopwatch() as since:
        while not await condition():
            assert since.fair < within, f"waited {within:g} s in vain until {what}"
            await asyncio.sleep(0.01)
        return since.fair
