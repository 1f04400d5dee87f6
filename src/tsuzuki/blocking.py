"""How a sync function on its thread waits for the loop, and serves it meanwhile as the one who reads its input.

A generator that a sync flow maps over runs in the flow's own thread: it may block, and may call tasks itself.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final

from tsuzuki.execution import Execution
from tsuzuki.streams import END, Source

_AHEAD: Final = 32


class Bridge:
    """Lets one thread wait for one coroutine of the loop at a time."""

    def __init__(self, run: Execution) -> None:
        self._run = run
        self.loop = run.loop
        self._orders: SimpleQueue[Callable[[], bool]] = SimpleQueue()

    def order(self, work: Callable[[], bool]) -> None:
        """Asks the waiting thread to do something; it waits on while that gives True."""
        self._orders.put(work)

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine on the loop and gives its result; the thread's place is free meanwhile."""
        started: deque[asyncio.Task[Any]] = deque()
        context = copy_context()

        def ended(task: "asyncio.Task[Any]") -> None:
            self._run.calls.bridged.discard(task)
            self._run.threads.give_back()
            self.order(lambda: False)

        def start() -> None:
            self._run.threads.lend()
            task = self.loop.create_task(coroutine, context=context)
            started.append(task)
            self._run.calls.bridged.add(task)
            task.add_done_callback(ended)

        here, waiting = threading.get_ident(), self._run.calls.waiting
        self.loop.call_soon_threadsafe(start)
        going_on = True
        while going_on:
            waiting.add(here)
            order = self._orders.get()
            waiting.discard(here)  # it reads the input of a map now, or goes on
            going_on = order()
        return started[0].result()

    def each(self, results: AsyncIterator[Any]) -> Iterator[Any]:
        """Gives what an async iterator gives, one by one."""
        iterator = aiter(results)
        try:
            while (outcome := self.wait(_next(iterator))) is not END:
                yield outcome
        finally:
            self.wait(_close(iterator))


async def _next(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator, END)


async def _close(iterator: Any) -> None:
    await iterator.aclose()


class Pumped(Source):
    """An input that is read in the thread of the sync function that maps over it."""

    def __init__(self, items: Iterable[Any], bridge: Bridge) -> None:
        super().__init__(())
        self.total = None
        self.distinct = False
        self.plain = None
        self._iterator = iter(items)
        self._bridge = bridge
        self._ready: deque[tuple[Any, BaseException | None]] = deque()
        self._asked = False
        self._over = False
        self._arrived = asyncio.Event()

    async def pull(self) -> Any:
        """Gives the next item, read ahead by a few."""
        while not self._ready:
            if self._over:
                return END
            if not self._asked:
                self._asked = True
                self._bridge.order(self._read)
            self._arrived.clear()
            await self._arrived.wait()
        item, error = self._ready.popleft()
        if error is not None:
            raise error
        return item

    def _read(self) -> bool:
        for _ in range(_AHEAD):
            try:
                found = (next(self._iterator), None)
            except StopIteration:
                self._tell(self._finish)
                return True
            except BaseException as error:  # noqa: BLE001 - raised in the map, where the flow sees it
                self._tell(self._arrive, (END, error))
                self._tell(self._finish)
                return True
            self._tell(self._arrive, found)
        self._tell(self._rest)
        return True

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        self._bridge.loop.call_soon_threadsafe(call, *args)

    def _arrive(self, found: tuple[Any, BaseException | None]) -> None:
        self._ready.append(found)
        self._arrived.set()

    def _rest(self) -> None:
        self._asked = False
        self._arrived.set()

    def _finish(self) -> None:
        self._over = True
        self._arrived.set()
