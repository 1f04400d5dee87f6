"""Reads journals out of chains: pages of facts, outcomes without values, facts by position."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tsuzuki.backends import Entry, Mark
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.chain import MOST_AT_ONCE, Chain, Spans, sequences
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.frames import Frame

Read = TypeVar("Read", Entry, Mark)

_FIRST: Final = 8
"""How many messages of a run are asked for when nothing is known of it."""
_LOOKS: Final = 50
"""How often a replica that lags behind is asked again."""


class Journals:
    """The journals of all runs; `known` tells how far a run is known to have come."""

    def __init__(self, chain: Chain, known: Callable[[str], int]) -> None:
        self._chain, self._known = chain, known
        self._asked: dict[str, list[tuple[set[int], asyncio.Future[list[Entry]]]]] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}

    async def page(self, run_id: str, after: int, limit: int, of: Callable[[Frame], list[Read]]) -> list[Read]:
        """Reads what messages hold, after a position and up to a number."""
        spans = self._chain.spans(run_id)
        at = bisect_right(spans.positions, after)
        seq = spans.sequences[at - 1] if at else 0
        position = spans.positions[at - 1] if at else 0
        page: list[Read] = []
        looks = 0
        while len(page) < limit:
            found = await self._chain.after(run_id, seq, _batch(limit - len(page), spans))
            for at, frame in found:
                spans.add(frame.position, at)
                page += [read for read in of(frame) if read.position > after]
            if found:
                seq, position = found[-1][0], found[-1][1].position
                continue
            if position >= self._known(run_id):
                break
            if looks >= _LOOKS:  # less than is known to be there must not look like all there is
                raise Unclear("a replica lags behind")
            looks += 1
            await asyncio.sleep(0.01 * looks)  # a replica that has not caught up: what is known to be there will come
        return page[:limit]

    async def fetch(self, run_id: str, positions: Sequence[int]) -> list[Entry]:
        """Reads the facts at positions; those who ask at the same time share what is read.

        The results of a thousand calls at once lie in few large messages: to read one for each of them would overrun
        the connection.
        """
        wanted = {position for position in positions if position > 0}
        if not wanted:
            return []
        answer: asyncio.Future[list[Entry]] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(run_id, []).append((wanted, answer))
        if run_id not in self._readers:
            self._readers[run_id] = asyncio.create_task(self._read_for_all(run_id))
        return await answer

    async def _read_for_all(self, run_id: str) -> None:
        try:
            while asked := self._asked.pop(run_id, None):
                await self._answer(run_id, asked)
        finally:
            del self._readers[run_id]

    async def _answer(self, run_id: str, asked: list[tuple[set[int], "asyncio.Future[list[Entry]]"]]) -> None:
        try:
            entries = await self._fetch(run_id, set().union(*(wanted for wanted, _ in asked)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who asked
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        found = {entry.position: entry for entry in entries}
        for wanted, answer in asked:
            if not answer.done():
                answer.set_result([found[position] for position in sorted(wanted) if position in found])

    async def _fetch(self, run_id: str, wanted: set[int]) -> list[Entry]:
        spans = self._chain.spans(run_id)
        if not spans.positions or spans.positions[-1] < max(wanted):
            await self.page(run_id, spans.positions[-1] if spans.positions else 0, 1 << 62, _nothing)
        where = _messages(spans.positions, sorted(wanted))
        found: list[Entry] = []
        for start, last in sequences(where) if where else ():
            found += await self._between(run_id, spans.sequences[start : last + 1], wanted)
        return found

    async def _between(self, run_id: str, where: list[int], wanted: set[int]) -> list[Entry]:
        found: list[Entry] = []
        seq, left, looks = where[0] - 1, len(where), 0
        while left > 0:
            messages = await self._chain.after(run_id, seq, left)
            for _, frame in messages:
                found += frames.entries(frame, wanted)
            if messages:
                seq, left = messages[-1][0], left - len(messages)
                continue
            if not self._known(run_id):  # it was purged meanwhile
                break
            if looks >= _LOOKS:
                raise Unclear("a replica lags behind")
            looks += 1
            await asyncio.sleep(0.01 * looks)
        return found


def _batch(missing: int, spans: Spans) -> int:
    """Says how many messages to ask for: as many as the run's have held what is missing, so far."""
    if not spans.positions:
        return _FIRST
    each = spans.positions[-1] // len(spans.positions) or 1
    return max(1, min(MOST_AT_ONCE, missing // each + 1))


def _messages(ends: list[int], positions: list[int]) -> list[int]:
    """Says which messages hold positions, given where each message ends; most are in the same as the one before."""
    found: list[int] = []
    end = 0
    for position in positions:
        if position > end:
            at = bisect_left(ends, position)
            if at == len(ends):
                break
            found.append(at)
            end = ends[at]
    return found


def _nothing(frame: Frame) -> list[Entry]:
    """Only where the positions are is of interest."""
    del frame
    return []
