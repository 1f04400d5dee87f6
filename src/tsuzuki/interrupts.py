"""How Ctrl-C reaches a run: the first one stops it in order, the second one leaves at once."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Final

from tsuzuki.context import in_async_code
from tsuzuki.forks import keep_from_children
from tsuzuki.leaving import run_to_the_end


class _Background(threading.Thread):
    """A thread that carries out what the thread that waits for it was asked to; that one gets Ctrl-C for both."""

    def __init__(self, start: Callable[[], Any]) -> None:
        super().__init__(name="tsuzuki-script", daemon=True)
        self._start_work = start
        self.ask: Callable[[], object] | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.over = threading.Event()  # a `join` that Ctrl-C interrupts takes the thread for ended (Python 3.11)

    def run(self) -> None:
        """Runs the async code on a loop of its own."""
        try:
            self.value = run_to_the_end(self._start_work())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self.error = error
        finally:
            self.over.set()


def run_blocking(start: Callable[[], Any]) -> Any:
    """Runs async code to its end from sync code, also where an event loop is running already (a notebook)."""
    if not in_async_code():
        return run_to_the_end(start())
    thread = _Background(start)
    thread.start()
    try:
        thread.over.wait()
    except KeyboardInterrupt:
        if thread.ask is None:
            raise
        thread.ask()
        thread.over.wait()  # a second Ctrl-C leaves at once
    if thread.error is not None:
        raise thread.error
    return thread.value


ENDING: Final = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""What tells a process to end: somebody asks for it, or its terminal is gone."""


class OwnSignals:
    """That SIGTERM stops a run, which is so in this process alone: a child that user code forks ends of it.

    Ctrl-C goes to all processes of a terminal: in a child it is left as it is, so that what it does can end in order.
    """

    def __init__(self) -> None:
        self._before = {number: signal.getsignal(number) for number in ENDING}
        self._heard = True
        keep_from_children(self)

    def let_go(self) -> None:
        """Lets a child hear SIGTERM as before, and tell us of no signal: it shares the pipe that wakes our loop."""
        if self._heard:
            signal.set_wakeup_fd(-1)
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def over(self) -> None:
        """Changes nothing any more: signals are as they were before."""
        self._heard = False


def hears_of_a_lost_terminal() -> bool:
    """Tells whether a process is to stop when its terminal is gone; `nohup` and the like say that it is not."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


@contextlib.contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Makes the first Ctrl-C (SIGTERM, SIGHUP) call `stop` on the loop and the second one leave at once.

    That a terminal is gone may be told twice, by the system and by a shell, and means the same.
    """
    loop = asyncio.get_running_loop()
    thread = threading.current_thread()
    if isinstance(thread, _Background):
        thread.ask = partial(loop.call_soon_threadsafe, stop)
    if thread is not threading.main_thread():
        yield
        return
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        nonlocal asked
        if asked and number in (signal.SIGINT, signal.SIGTERM):
            os._exit(128 + number)
        asked = True
        loop.call_soon_threadsafe(stop)

    own = OwnSignals()
    heard = ENDING if hears_of_a_lost_terminal() else (signal.SIGTERM,)
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, *heard)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        own.over()
