"""What workers share: who is there, rates and places, dead letters, and the time of the server."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends import DeadLetter, WorkerRecord
from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import NO_MESSAGE_AT, ApiError
from tsuzuki.backends.nats.records import Records, Value
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.servertime import AGREED, seconds
from tsuzuki.backends.nats.topology import Topology, last_token, unescaped
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock

MOST: Final = 1000
DROPPED: Final = "dropped-letter"
"""The kind of the documents that tell which dead letters people have dropped."""


class Hidden(msgspec.Struct):
    """Whether a worker is to be shown."""

    id: str
    hidden: bool


_hidden: Final = msgspec.json.Decoder(Hidden).decode
_worker: Final = msgspec.json.Decoder(WorkerRecord).decode


class _Letter(msgspec.Struct, omit_defaults=True):
    """A dead letter as it stands in the stream, by the names that others know; none of them is missed."""

    timestamp: float = 0.0
    reason: str = ""
    error: str = ""
    run_id: str = ""
    number: int = 0
    flow_name: str = ""
    tag: str = ""
    tags: tuple[str, ...] = ()
    worker_id: str = ""
    num_delivered: int = 0
    subject: str = ""
    tenant: str = ""


_letter: Final = msgspec.json.Decoder(_Letter).decode


class Places(msgspec.Struct):
    """Who has taken how many places of a limit."""

    taken: dict[str, int] = {}


_places: Final = msgspec.json.Decoder(Places).decode


class Workers:
    """The records of workers: none expires by itself, so that one that is gone can still be seen."""

    def __init__(self, wire: Wire, topology_: Topology, records: Records, reserve: Reserve) -> None:
        self._wire, self._topology, self._records, self._reserve = wire, topology_, records, reserve
        self._beats: dict[str, int] = {}

    async def beat(self, worker: WorkerRecord) -> WorkerRecord:
        """Records that a worker lives."""
        subject = self._topology.worker(worker.id)
        if worker.id not in self._beats:
            before, _ = await self._records.read(subject)
            self._beats[worker.id] = int(before.get("beats", 0))
        self._beats[worker.id] += 1
        beaten = msgspec.structs.replace(worker, beats=self._beats[worker.id], hidden=False)
        await self._reserve.urgently(lambda: self._wire.publish(subject, msgspec.json.encode(beaten)))
        return beaten

    async def hide(self, worker: str, hidden: bool) -> bool:
        """Sets whether a worker is to be shown; tells whether there is such a worker."""
        known, _ = await self._records.read(self._topology.worker(worker))
        if known:
            await self._records.put(self._topology.hidden(worker), {"id": worker, "hidden": hidden})
        return bool(known)

    async def all(self, *, hidden: bool = True) -> list[WorkerRecord]:
        """Reads the records from the server: what is only remembered here would look dead after an outage."""
        found = [_worker(data) for _, data in await self._records.all(self._topology.all_workers)]
        told = [_hidden(data) for _, data in await self._records.all(self._topology.all_hidden)] if hidden else []
        unseen = {record.id for record in told if record.hidden}
        found = [msgspec.structs.replace(worker, hidden=worker.id in unseen) for worker in found]
        return sorted(found, key=lambda worker: (-worker.heartbeat_at, worker.id))

    async def forget(self, workers: Sequence[str]) -> None:
        """Removes records; one whose worker lives all the same comes back with its next heartbeat."""
        for worker in workers:
            for subject in (self._topology.worker(worker), self._topology.hidden(worker)):
                await self._wire.api(topology.purge_stream(self._topology.state), filter=subject)


class Limits:
    """Rates and places that the whole store shares, in the server's time: clocks of hosts differ.

    Only those who hold a run ask for them, and wait for the server as patiently as with what they write.
    """

    def __init__(self, wire: Wire, topology_: Topology, records: Records, clock: Clock, patience: float) -> None:
        self._wire, self._topology, self._records, self._clock = wire, topology_, records, clock
        self._patience = patience
        self._ahead = 0.0
        self._asked_at = -AGREED

    async def take(self, limit: str, interval: float, burst: int) -> float:
        """Takes the next turn of a rate; gives how long to wait for it."""
        now = await self._now()

        def turn(record: Value) -> Value:
            return {"due": max(record.get("due", now), now) + interval}

        due: float = (await self._records.change(self._topology.limit("rate", limit), turn, self._patience))["due"]
        return max(0.0, due - burst * interval - now)

    async def enter(self, limit: str, places: int, worker: str, dead: frozenset[str]) -> bool:
        """Takes a place, if one is free."""
        entered = False

        def enter(record: Value) -> Value | None:
            nonlocal entered
            taken = {name: count for name, count in record.get("taken", {}).items() if name not in dead}
            entered = sum(taken.values()) < places
            return {"taken": {**taken, worker: taken.get(worker, 0) + 1}} if entered else None

        await self._records.change(self._topology.limit("places", limit), enter, self._patience)
        return entered

    async def holders(self) -> set[str]:
        """Gives who has taken a place."""
        records = await self._records.all(self._topology.all_places)
        return {name for _, data in records for name, count in _places(data).taken.items() if count > 0}

    async def leave(self, limit: str, worker: str) -> None:
        """Gives a place back."""

        def leave(record: Value) -> Value | None:
            taken = dict(record.get("taken", {}))
            if not taken.get(worker):
                return None
            taken[worker] -= 1
            return {"taken": {name: count for name, count in taken.items() if count}}

        await self._records.change(self._topology.limit("places", limit), leave, self._patience)

    async def _now(self) -> float:
        """Gives the server's time, as far as we know it."""
        elapsed = self._clock.elapsed()
        if elapsed - self._asked_at >= AGREED:
            subject = self._topology.probe
            await self._wire.publish(subject, b"{}")
            elapsed = self._clock.elapsed()
            told = await self._wire.api(topology.leader_get(self._topology.state), last_by_subj=subject)
            self._ahead = seconds(told["message"]["time"]) - elapsed
            self._asked_at = elapsed
        return self._clock.elapsed() + self._ahead


class Letters:
    """Dead letters: runs that failed, for those who look after the system."""

    def __init__(self, wire: Wire, topology_: Topology, records: Records, reserve: Reserve) -> None:
        self._wire, self._topology, self._records, self._reserve = wire, topology_, records, reserve

    async def write(self, letter: DeadLetter, once: str = "") -> None:
        """Keeps a letter; one that bears a name is kept once."""
        kept = _Letter(
            timestamp=letter.at,
            reason=letter.reason,
            error=letter.error,
            run_id=letter.run_id,
            number=letter.number,
            flow_name=letter.flow,
            tag=letter.tag,
            tags=letter.tags,
            worker_id=letter.worker,
            num_delivered=letter.attempt,
            subject=letter.subject,
            tenant=letter.tenant,
        )
        subject, data = self._topology.letter(letter.run_id), msgspec.json.encode(kept)
        await self._reserve.urgently(lambda: self._wire.publish(subject, data, once=once))

    async def read(self, limit: int, before: int | None = None) -> list[DeadLetter]:
        """Reads the newest letters, or those older than one."""
        state = (await self._wire.api(topology.stream_info(self._topology.letters)))["state"]
        last = int(state["last_seq"]) if before is None else min(before - 1, int(state["last_seq"]))
        found: list[DeadLetter] = []
        while last >= int(state["first_seq"]) and len(found) < limit:  # where letters were dropped there are gaps
            first = max(int(state["first_seq"]), last - max(limit, MOST) + 1)
            found += (await self._between(first, last))[::-1]
            last = first - 1
        return found[:limit]

    async def count(self) -> int:
        """Counts the letters."""
        return int((await self._wire.api(topology.stream_info(self._topology.letters)))["state"]["messages"])

    async def _between(self, first: int, last: int) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        while first <= last:
            request = {"seq": first, "next_by_subj": self._topology.all_letters, "batch": min(last - first + 1, MOST)}
            answers = await self._wire.many(topology.direct_get(self._topology.letters), msgspec.json.encode(request))
            if not answers:
                break
            found += [letter for answer in answers if int((letter := _letter_in(answer)).id) <= last]
            first = int(_sequence(answers[-1])) + 1
        return found

    async def get(self, letter: int) -> DeadLetter | None:
        """Reads a letter."""
        found = await self._between(letter, letter) if letter else []
        return found[0] if found else None

    async def drop(self, letter: int) -> bool:
        """Removes a letter; tells whether there was one. It is noted before: otherwise it would be made up for."""
        if (found := await self.get(letter)) is None:
            return False
        note, attempt = self._topology.document(DROPPED, found.run_id), msgspec.json.encode(found.attempt)
        await self._reserve.urgently(lambda: self._wire.publish(note, attempt))
        try:
            await self._wire.api(topology.delete_message(self._topology.letters), seq=letter, no_erase=True)
        except ApiError as error:
            if error.error in NO_MESSAGE_AT:
                return False
            raise
        return True

    async def dropped(self) -> dict[str, int]:
        """Gives the runs whose letters were dropped, and which attempt the last one told of."""
        found = await self._records.all(self._topology.documents(DROPPED))
        return {unescaped(last_token(subject)): msgspec.json.decode(body, type=int) for subject, body in found}

    async def forget_dropped(self, run_ids: Iterable[str]) -> None:
        """Forgets that letters were dropped, of runs that are gone or go on."""
        for run_id in run_ids:
            await self._records.drop(self._topology.document(DROPPED, run_id))


def _letter_in(message: Msg) -> DeadLetter:
    kept = _letter(message.data)
    return DeadLetter(
        id=_sequence(message),
        run_id=kept.run_id,
        number=kept.number,
        flow=kept.flow_name,
        tag=kept.tag,
        reason=kept.reason,
        error=kept.error,
        at=kept.timestamp,
        tags=kept.tags,
        worker=kept.worker_id,
        attempt=kept.num_delivered,
        tenant=kept.tenant,
        subject=kept.subject,
    )


def _sequence(message: Msg) -> str:
    return (message.headers or {})["Nats-Sequence"]
