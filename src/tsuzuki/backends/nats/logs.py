"""The logs of runs: lossy, numbered, the oldest lines go."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends import Line
from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import IN_FLIGHT, PASSED, ApiError
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire

MOST_LINES: Final = 20_000
"""How many log lines a run keeps."""
_BATCH: Final = 256
_REMEMBERED: Final = 1000
_PART: Final = 256 * 1024
_TRIES: Final = 20


class Page(msgspec.Struct, frozen=True, array_like=True):
    """A message of a log: its lines, the first of which has this number."""

    first: int
    lines: list[Line]

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.first + len(self.lines) - 1


_decode: Final = msgspec.msgpack.Decoder(Page).decode


class _Log:
    """What this process knows of a log: its end, and where its messages begin."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.seq = -1
        self.last = 0
        self.pages: deque[tuple[int, int]] = deque()


class Logs:
    """The logs of all runs."""

    def __init__(self, wire: Wire, topology_: Topology) -> None:
        self._wire, self._topology = wire, topology_
        self._logs: OrderedDict[str, _Log] = OrderedDict()

    async def write(self, run_id: str, lines: Sequence[Line]) -> None:
        """Adds lines, in messages that the server takes."""
        log = self._log(run_id)
        async with log.lock:
            for part in _parts(lines):
                await self._write(run_id, log, part)
            await self._cut(run_id, log)

    async def _write(self, run_id: str, log: _Log, lines: list[Line]) -> None:
        subject = self._topology.lines(run_id)
        for _ in range(_TRIES):
            if log.seq < 0:
                await self._look(subject, log)
            page = Page(log.last + 1, lines)
            try:
                log.seq = await self._wire.publish(subject, msgspec.msgpack.encode(page), after=log.seq)
            except ApiError as error:
                if error.error not in (PASSED, IN_FLIGHT):
                    raise
                log.seq = -1  # somebody else wrote: number the lines after his
            except BaseException:
                log.seq = -1
                raise
            else:
                log.last = page.last
                log.pages.append((log.seq, page.first))
                return

    async def _look(self, subject: str, log: _Log) -> None:
        request = msgspec.json.encode({"last_by_subj": subject})
        answer = await self._wire.ask(topology.direct_get(self._topology.log), request)
        headers = answer.headers or {}
        if "Status" in headers:
            log.seq, log.last = 0, 0
        else:
            log.seq, log.last = int(headers["Nats-Sequence"]), _decode(answer.data).last
        log.pages.clear()
        if log.seq:
            first = await self._pages(subject, 1, 1)
            log.pages.extend((seq, page.first) for seq, page in first)

    async def _cut(self, run_id: str, log: _Log) -> None:
        """Removes the oldest messages beyond the cap."""
        keep = 0
        while len(log.pages) > 1 and log.last - log.pages[0][1] >= MOST_LINES:
            log.pages.popleft()
            keep = log.pages[0][0]
        if keep:
            subject = self._topology.lines(run_id)
            await self._wire.api(topology.purge_stream(self._topology.log), filter=subject, seq=keep)

    async def read(self, run_id: str, after: int, limit: int) -> list[Line]:
        """Reads lines in order of number, those after a number."""
        subject = self._topology.lines(run_id)
        found: list[Line] = []
        seq = self._start(run_id, after)
        while len(found) < limit and (pages := await self._pages(subject, seq, _BATCH)):
            for _, page in pages:
                numbered = enumerate(page.lines, page.first)
                found += [msgspec.structs.replace(line, number=at) for at, line in numbered if at > after]
            seq = pages[-1][0] + 1
        return found[:limit]

    def _start(self, run_id: str, after: int) -> int:
        """Where reading may begin: the last message known to begin at or before the line."""
        log = self._logs.get(run_id)
        starts = [seq for seq, first in log.pages if first <= after + 1] if log and log.seq > 0 else []
        return starts[-1] if starts else 1

    async def _pages(self, subject: str, seq: int, most: int) -> list[tuple[int, Page]]:
        request = {"seq": seq, "next_by_subj": subject, "batch": most, "max_bytes": 8 << 20}
        answers = await self._wire.many(topology.direct_get(self._topology.log), msgspec.json.encode(request))
        return [(_sequence(answer), _decode(answer.data)) for answer in answers]

    async def purge(self, run_id: str) -> None:
        """Removes a log."""
        self._logs.pop(run_id, None)
        await self._wire.api(topology.purge_stream(self._topology.log), filter=self._topology.lines(run_id))

    def _log(self, run_id: str) -> _Log:
        log = self._logs.pop(run_id, None) or _Log()
        self._logs[run_id] = log
        if len(self._logs) > _REMEMBERED:
            self._logs.popitem(last=False)
        return log


def _parts(lines: Sequence[Line]) -> list[list[Line]]:
    """Splits lines so that each part fits into a message."""
    parts: list[list[Line]] = []
    size = _PART
    for line in lines:
        length = 4 * len(line.text) + 200
        if size + length > _PART:
            parts.append([])
            size = 0
        parts[-1].append(line)
        size += length
    return parts


def _sequence(answer: Msg) -> int:
    return int((answer.headers or {})["Nats-Sequence"])
