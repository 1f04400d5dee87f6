"""Processes that belong together: started, kept alive, and ended in order.

A child of ours reads a pipe from its parent and ends when that is closed: so a parent that is killed leaves no orphans.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final

logger: Final = logging.getLogger("tsuzuki.processes")

FIRST_PAUSE: Final = 0.5
"""How long to wait before a process that died is started again (seconds); twice as long each time it dies young."""
LONGEST_PAUSE: Final = 30.0
YOUNG: Final = 5.0
"""A process that lived longer than this (seconds) did well: the pauses begin anew."""
REFUSED: Final = 78
"""The exit code of a `tsuzuki` of ours that cannot work as it was told to: to start it again would change nothing."""
LOOKED_FOR: Final = 3.0
"""How long it is looked for what a process that died has left behind (seconds)."""
SPARE: Final = 5.0
"""How much longer than the grace period an ending may take before the process is killed (seconds)."""
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: a command, and how it is to be called."""

    name: str
    command: Sequence[str]
    ours: bool = True
    """Whether it is a `tsuzuki` that ends with its parent by itself."""


def tsuzuki(name: str, *arguments: str, log_format: str = "") -> Program:
    """Gives a command of ours as a program."""
    first = ["--end-with-parent", *(["--log-format", log_format] if log_format else [])]
    return Program(name, [sys.executable, "-m", "tsuzuki.cli", *first, *arguments])


def end_with_parent() -> None:
    """Lets this process end as by SIGTERM when whoever started it is gone: its end of our stdin is closed then."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 1024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class Child:
    """One program, kept alive until it is told to end."""

    def __init__(
        self,
        program: Program,
        tell: Callable[[str], None],
        clock: Callable[[], float],
        refused: Callable[[], None] = lambda: None,
        left: Callable[[int], Coroutine[None, None, str]] | None = None,
    ) -> None:
        self.program = program
        self._tell, self._clock, self._refused, self._left = tell, clock, refused, left
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def keep(self) -> None:
        """Starts the program, and again whenever it died, until it is told to end."""
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            began = self._clock()
            code = await self._run()
            if self._ending.is_set():
                return
            if code == REFUSED and not self.restarts:  # later it may be the store that is away for a while
                self._tell(f"{self.program.name} cannot start: the line above says why")
                self._refused()
                return
            pause = FIRST_PAUSE if self._clock() - began > YOUNG else pause
            self._tell(f"{self.program.name} died ({_how(code)}); it is started again in {pause:g} s")
            await self._tell_what_it_left()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()
            pause = min(pause * 2, LONGEST_PAUSE)
            self.restarts += 1

    async def _tell_what_it_left(self) -> None:
        """Tells what the process was at when it died, where that can be found out; it is started again anyway."""
        if self._left is None or self._process is None:
            return
        looking = asyncio.create_task(self._left(self._process.pid))
        await asyncio.wait({looking}, timeout=LOOKED_FOR)
        if not looking.done():
            looking.cancel()
        elif (error := looking.exception()) is not None:
            logger.debug("what %s left cannot be looked for: %s", self.program.name, error)
        elif left := looking.result():
            self._tell(f"{self.program.name} {left}")

    async def _run(self) -> int:
        self._process = await asyncio.create_subprocess_exec(
            *self.program.command,
            stdin=asyncio.subprocess.PIPE if self.program.ours else asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal reaches us alone: we end the children in order
            preexec_fn=None if self.program.ours else _die_with_parent,
        )
        if self._ending.is_set():  # told while it was being started
            self.signal(signal.SIGTERM)
        return await self._process.wait()

    def signal(self, number: int) -> None:
        """Sends a signal to the process, if there is one."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def end(self, grace: float) -> None:
        """Tells the process to end, and kills it when it does not within the grace period (seconds) and some more."""
        self._ending.set()
        self.signal(signal.SIGTERM)
        if self._process is None:
            return
        try:
            async with asyncio.timeout(grace + SPARE):
                await self._process.wait()
        except TimeoutError:
            self._tell(f"{self.program.name} did not end within {grace + SPARE:g} s; it is killed")
            self.signal(signal.SIGKILL)
            await self._process.wait()


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _die_with_parent() -> None:
    """Asks Linux to end this process when its parent is gone; a program that is not ours cannot watch a pipe."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
