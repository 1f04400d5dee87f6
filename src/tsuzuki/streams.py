"""What a map reads from, and what it hands its outcomes to."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sized
from typing import Any, Final, Protocol

from tsuzuki.results import Failure

END: Final = object()
"""What stands for "no more"."""
_SMALL: Final = 100_000
"""Lists of so many texts are looked through at once; larger ones item by item."""


class Sink(Protocol):
    """Takes the outcomes of a map, each under the number of its item."""

    def open(self) -> int:
        """Reserves the next place."""
        ...

    def put(self, number: int, outcome: Any) -> None:
        """Takes an outcome."""
        ...

    @property
    def full(self) -> bool:
        """Whether an item has to wait for room."""
        ...

    async def room(self) -> None:
        """Waits until one more item may begin."""
        ...


class KeepAll:
    """Keeps every outcome, in input order."""

    full = False

    def __init__(self) -> None:
        self.outcomes: list[Any] = []

    def open(self) -> int:
        """Reserves the next place."""
        self.outcomes.append(None)
        return len(self.outcomes) - 1

    def put(self, number: int, outcome: Any) -> None:
        """Takes an outcome."""
        self.outcomes[number] = outcome

    async def room(self) -> None:
        """Has always room."""


class CountOnly:
    """Keeps nothing but the counts."""

    full = False

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0

    def open(self) -> int:
        """Reserves nothing."""
        return 0

    def put(self, number: int, outcome: Any) -> None:
        """Counts an outcome."""
        del number
        if isinstance(outcome, Failure):
            self.failed += 1
        else:
            self.succeeded += 1

    async def room(self) -> None:
        """Has always room."""


class Window:
    """Hands outcomes on in input order, and holds the lanes back when nobody takes them.

    Each place that becomes free wakes one lane: woken all together, all but one would only wait again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._first = 0
        self._slots: deque[Any] = deque()
        self._lanes: deque[asyncio.Future[None]] = deque()
        self._reader: asyncio.Future[None] | None = None
        self.closed = False

    def open(self) -> int:
        """Reserves the next place."""
        self._slots.append(END)
        return self._first + len(self._slots) - 1

    def put(self, number: int, outcome: Any) -> None:
        """Takes an outcome."""
        place = number - self._first
        self._slots[place] = outcome
        if not place:
            self._wake_reader()

    @property
    def full(self) -> bool:
        """Whether the reader has to catch up first."""
        return len(self._slots) >= self._size and not self.closed

    async def room(self) -> None:
        """Waits until the reader has caught up."""
        while self.full:
            waiting = asyncio.get_running_loop().create_future()
            self._lanes.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if not waiting.cancelled():  # the place that it was woken for is another's
                    self._wake_lane()
                raise

    async def take(self, over: Callable[[], bool]) -> Any:
        """Gives the next outcome in order, or END when there will be none."""
        while not (self._slots and self._slots[0] is not END):
            if over():
                return END
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        self._first += 1
        outcome = self._slots.popleft()
        self._wake_lane()
        return outcome

    def close(self) -> None:
        """Lets everybody go who waits."""
        self.closed = True
        self._wake_reader()
        while self._lanes:
            self._wake_lane()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake_lane(self) -> None:
        while self._lanes:
            waiting = self._lanes.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return


class Arrivals(Window):
    """Hands outcomes on as they come: one that takes long keeps no other back; what is under way takes up a place."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._under_way = 0

    def open(self) -> int:
        """Reserves a place; which one is found when the outcome comes."""
        self._under_way += 1
        return 0

    def put(self, number: int, outcome: Any) -> None:
        """Takes an outcome."""
        del number
        self._under_way -= 1
        self._slots.append(outcome)
        self._wake_reader()

    @property
    def full(self) -> bool:
        """Whether the reader has to catch up first."""
        return len(self._slots) + self._under_way >= self._size and not self.closed


class Source:
    """What the lanes pull from: a plain iterator at once, anything else by awaiting."""

    def __init__(self, items: Iterable[Any] | AsyncIterator[Any]) -> None:
        self.total = len(items) if isinstance(items, Sized) else None
        self.distinct = _are_distinct(items)
        self.plain: Iterator[Any] | None = iter(items) if isinstance(items, Iterable) else None
        self._async = None if isinstance(items, Iterable) else items
        self._turn = asyncio.Lock()

    async def pull(self) -> Any:
        """Gives the next item of an async input, or END."""
        assert self._async is not None  # noqa: S101 - plain inputs are pulled directly
        async with self._turn:  # an async generator serves one at a time
            return await anext(self._async, END)


def _are_distinct(items: Iterable[Any] | AsyncIterator[Any]) -> bool:
    """Tells whether no item can come twice, where that is cheap to know."""
    if isinstance(items, range):
        return True
    if isinstance(items, list | tuple) and len(items) <= _SMALL and all(type(item) is str for item in items):
        return len(set(items)) == len(items)
    return False
