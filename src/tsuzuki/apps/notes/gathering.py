"""What many items do at the same moment, done together: lines in one write, notes in one call on a thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from tsuzuki.apps.notes.outputs import Kept
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.errors import StoreClosed

CALLS: Final = 2
"""How many calls are under way at once: one computes while the other waits for the disk."""
MOST: Final = 64
"""How many go into one call."""
_encode: Final = msgspec.json.Encoder().encode
Given = TypeVar("Given")
Got = TypeVar("Got")


class Gathering:
    """Writes for a stage whose items end on the loop; one write for each file, the outputs before the lines."""

    def __init__(self, kept: Kept, log: Lines) -> None:
        self._kept, self._log = kept, log
        self._outputs: list[tuple[str, bytes]] = []
        self._records: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def write(self, item_id: str, plain: dict[str, Any], record: dict[str, Any]) -> bytes:
        """Writes the output of an item and its line; both are in their files when this gives the output as JSON."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._written)
        done: asyncio.Future[None] = loop.create_future()
        output = _encode({"item_id": item_id, **plain})
        self._outputs.append((item_id, output))
        self._records.append(_encode(record))
        self._waiting.append(done)
        await done
        return output

    def _written(self) -> None:
        outputs, records, waiting = self._outputs, self._records, self._waiting
        self._outputs, self._records, self._waiting = [], [], []
        error: OSError | StoreClosed | None = None
        try:
            self._kept.put_all(outputs)
            self._log.extend(records)
        except (OSError, StoreClosed) as raised:
            error = raised
        for done in waiting:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)


class _Asked(Generic[Given, Got]):
    """Something that was asked for, and who waits for it."""

    __slots__ = ("done", "given")

    def __init__(self, given: Given, done: "asyncio.Future[Got]") -> None:
        self.given, self.done = given, done

    def settle(self, outcome: Got | Exception) -> None:
        if self.done.done():  # who has waited is gone
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class Together(Generic[Given, Got]):
    """Does on a thread, in one call, what was asked for in the meantime."""

    def __init__(self, work: Callable[[Sequence[Given]], Sequence[Got | Exception]]) -> None:
        self._work = work
        self._waiting: deque[_Asked[Given, Got]] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    async def put(self, given: Given) -> Got:
        """Does it with what comes beside it; who is cancelled meanwhile waits all the same, since it will be done."""
        loop = asyncio.get_running_loop()
        asked: _Asked[Given, Got] = _Asked(given, loop.create_future())
        self._waiting.append(asked)
        if len(self._waiting) in (1, MOST):
            loop.call_soon(self._begin)
        try:
            return await asked.done
        except asyncio.CancelledError:
            if asked.done.cancelled():
                asked.done = loop.create_future()
            return await asked.done

    def _begin(self) -> None:
        """Begins calls: one at once, another beside it only where it is a full one, since few cost as much as many."""
        while self._waiting and len(self._calls) < (CALLS if len(self._waiting) >= MOST else 1):
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]
            call = asyncio.get_running_loop().create_task(self._called(group))
            self._calls.add(call)
            call.add_done_callback(self._ended)

    def _ended(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        self._begin()

    async def _called(self, group: list[_Asked[Given, Got]]) -> None:
        outcomes: Sequence[Got | Exception]
        try:
            outcomes = await asyncio.to_thread(self._work, [asked.given for asked in group])
        except Exception as error:  # noqa: BLE001 - told to all who wait
            outcomes = [error] * len(group)
        for asked, outcome in zip(group, outcomes, strict=True):
            asked.settle(outcome)
