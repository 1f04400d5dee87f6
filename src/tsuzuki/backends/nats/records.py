"""Small shared records that change by compare and set; a lost acknowledgement is made up for."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends.nats import leaders, topology
from tsuzuki.backends.nats.faults import IN_FLIGHT, PASSED, ApiError, Unclear, fault
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock

Value = dict[str, Any]
_MARK: Final = "mark"
_AGAIN: Final = 0.02
_MOST: Final = 1000
_LOOKS: Final = 50
"""How often a replica that lags behind is asked again."""


class Records:
    """The records of one store; a record that is not there reads as an empty one."""

    def __init__(self, wire: Wire, topology_: Topology, options: Options, clock: Clock, stream: str = "") -> None:
        self._wire, self._options, self._clock = wire, options, clock
        self._stream = stream or topology_.state
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def read(self, subject: str) -> tuple[Value, int]:
        """Reads a record and its sequence."""
        request = {"last_by_subj": subject}
        if self._options.replicas > 1:
            found = await leaders.message(self._wire, self._stream, self._options.timeout, **request)
            return ({}, 0) if found is None else (msgspec.json.decode(leaders.body(found)), int(found["seq"]))
        answer = await self._wire.ask(topology.direct_get(self._stream), msgspec.json.encode(request))
        return _read(answer)

    async def all(self, subjects: str) -> list[tuple[str, bytes]]:
        """Reads records with their subjects."""
        return (await self.all_and_last(subjects))[0]

    async def all_and_last(self, subjects: str) -> tuple[list[tuple[str, bytes]], int]:
        """Reads records with their subjects, and the sequence of the last of them.

        Any replica gives them, one too that has lost the others: their leader says up to where they must come.
        """
        for _ in range(_LOOKS):
            _, newest = await self.read(subjects)
            if not newest:
                return [], 0
            found, last = await self._all_there(subjects)
            if last >= newest:
                return found, last
            await asyncio.sleep(_AGAIN)
        raise Unclear("a replica lags behind")

    async def _all_there(self, subjects: str) -> tuple[list[tuple[str, bytes]], int]:
        found: list[tuple[str, bytes]] = []
        seq = 1
        while True:  # the bucket keeps one message of each subject: the last one
            request = {"seq": seq, "next_by_subj": subjects, "batch": _MOST}
            answers = await self._wire.many(topology.direct_get(self._stream), msgspec.json.encode(request))
            told = [answer.headers or {} for answer in answers]
            found += [
                (said["Nats-Subject"], answer.data) for said, answer in zip(told, answers, strict=True) if answer.data
            ]
            seq = int(told[-1]["Nats-Sequence"]) + 1 if told else seq
            if len(answers) < _MOST:
                return found, seq - 1

    async def drop(self, subject: str) -> bool:
        """Removes a record; tells whether there was one."""
        told = await self._wire.api(topology.purge_stream(self._stream), filter=subject)
        return int(told["purged"]) > 0

    async def put(self, subject: str, value: Value) -> None:
        """Writes a record that only its owner writes."""
        await self._wire.publish(subject, msgspec.json.encode(value))

    async def change(
        self, subject: str, change: Callable[[Value], Value | None], patience: float | None = None
    ) -> Value:
        """Changes a record by a function of its value; None leaves it. Gives the value after."""
        async with self._alone(subject):
            return await self._change(subject, change, self._options.timeout if patience is None else patience)

    async def _change(self, subject: str, change: Callable[[Value], Value | None], patience: float) -> Value:
        mark = uuid.uuid4().hex
        until = self._clock.monotonic() + patience
        while True:
            doubt, beaten = Unclear("others change it all the time"), True
            try:
                value, seq = await self.read(subject)
                if value.get(_MARK) == mark:  # it was written, and only the acknowledgement got lost
                    return value
                changed = change({name: told for name, told in value.items() if name != _MARK})
                if changed is None:
                    return value
                if await self.swap(subject, {**changed, _MARK: mark}, seq):
                    return changed
            except Unclear as error:
                doubt, beaten = error, False
            left = until - self._clock.monotonic()
            if left <= 0 or not await self._wire.connected(left):
                raise fault(doubt, self._options.url) from doubt
            if not beaten:
                await asyncio.sleep(_AGAIN)

    async def swap(self, subject: str, value: Value, seq: int) -> bool:
        """Writes a record directly after a sequence; tells whether nobody else was quicker."""
        until = self._clock.monotonic() + self._options.timeout
        while True:
            try:
                await self._wire.publish(subject, msgspec.json.encode(value), after=seq)
                return True
            except ApiError as error:
                if error.error == PASSED:
                    return False
                if error.error != IN_FLIGHT:
                    raise fault(error, self._options.url) from error
                if self._clock.monotonic() > until:  # a leader that lost the others keeps it in flight for long
                    raise Unclear("another write to the record does not end") from error
                await asyncio.sleep(_AGAIN)

    @asynccontextmanager
    async def _alone(self, subject: str) -> AsyncIterator[None]:
        """Lets the calls of this process change a record one after the other."""
        lock, users = self._locks.get(subject, (asyncio.Lock(), 0))
        self._locks[subject] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(subject)
            if users > 1:
                self._locks[subject] = lock, users - 1


def _read(answer: Msg) -> tuple[Value, int]:
    headers = answer.headers or {}
    if headers.get("Status") == "404":
        return {}, 0
    if "Status" in headers:
        raise Unclear(f"the server answered {headers['Status']}")
    value: Value = msgspec.json.decode(answer.data) if answer.data else {}
    return value, int(headers["Nats-Sequence"])
