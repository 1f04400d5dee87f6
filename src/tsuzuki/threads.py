"""The threads that sync functions run on: our own, daemon, and woken in bursts.

A function that was given up (timed out, cancelled for good) keeps its thread until it really ends; what it
returns then is refused and told. Futures here cannot be cancelled: who waits learns of a cancellation when
the function has ended, so that finished work is recorded.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from itertools import count
from queue import SimpleQueue
from typing import Any, Final

from tsuzuki.settled import Settled

_names: Final = count(1)


class Work(Settled):
    """A call that runs on a thread."""

    def __init__(
        self,
        context: Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        late: Callable[[], None],
    ) -> None:
        super().__init__()
        self.context = context
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.late = late
        self.ended = False
        self.what = ""
        """What people know the function by."""
        self.thread = 0
        """The thread that it runs on, once it has begun."""
        self.then: Callable[[], None] | None = None

    def abandon(self, error: BaseException) -> None:
        """Ends the wait; the thread goes on, and its result will be refused."""
        if not self.done():
            self.set_exception(error)


class Threads:
    """Runs sync functions; belongs to one event loop."""

    def __init__(self, most: int = 64) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._ended: deque[tuple[Work, bool, Any]] = deque()
        self._waking = False
        self._most = most
        self._threads = 0
        self._busy = 0
        self._lent = 0

    def at_least(self, most: int) -> None:
        """Makes room for so many functions at once."""
        self._most = max(self._most, most)

    def start(
        self,
        context: Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        late: Callable[[], None],
    ) -> Work:
        """Starts a call in a context; `late` is told when it ends after it was given up."""
        work = Work(context, function, args, kwargs, late)
        self._busy += 1
        self._spawn()
        self._queue.put(work)
        return work

    def lend(self) -> None:
        """A function on a thread waits for others: its place is free meanwhile."""
        self._lent += 1
        self._spawn()

    def give_back(self) -> None:
        """The waiting function goes on."""
        self._lent -= 1

    def close(self) -> None:
        """Lets the idle threads end; those that still work end after their function."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _spawn(self) -> None:
        if self._busy > self._threads and self._threads < self._most + self._lent:
            self._threads += 1
            name = f"tsuzuki-{next(_names)}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work.thread = threading.get_ident()
            try:
                value, succeeded = work.context.run(work.function, *work.args, **work.kwargs), True
            except BaseException as error:  # noqa: BLE001 - handed to the loop, which raises it where it belongs
                value, succeeded = error, False
            self._ended.append((work, succeeded, value))
            del work, value
            if not self._waking:
                self._waking = True
                self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            return  # the loop has been closed: nobody waits for this result any more

    def _drain(self) -> None:
        self._waking = False
        while self._ended:
            work, succeeded, value = self._ended.popleft()
            self._busy -= 1
            work.ended = True
            if work.then is not None:
                work.then()
            if work.done():
                work.late()
            elif succeeded:
                work.set_result(value)
            elif isinstance(value, StopIteration | GeneratorExit):  # they mean something else to who awaits
                work.set_exception(RuntimeError(f"{work.what} raised {value!r}"))
            else:
                work.set_exception(value)
