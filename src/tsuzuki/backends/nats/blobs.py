"""Large values in an Object Store bucket: written whole before the fact that refers to them, purged by subject.

An object is called `RUN/DIGEST`. Its pieces lie under `RUN.DIGEST.ONCE`, so that those of a run are one filter, and
tell by themselves which records it has: records are removed first, pieces last, and whoever was killed in between is
made up for by doing it again. Where room is scarce a process writes values one after the other.
"""

import asyncio
import contextlib
import hashlib
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from tsuzuki.backends.nats import objects, topology
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.objects import Meta
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.servertime import seconds
from tsuzuki.backends.nats.topology import Blob, Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError

PIECE: Final = 256 * 1024
AT_ONCE: Final = 32
"""How many records are removed at a time."""

Told = Callable[[str], Awaitable[bool]]


class Swept(msgspec.Struct, frozen=True):
    """What was removed that belonged to nothing: of how many runs, and how many values that never became whole."""

    runs: int
    parts: int

    @property
    def text(self) -> str:
        """Tells it to people."""
        return f"those of {self.runs} runs left behind by a crash and swept, and {self.parts} that never became whole"


class Blobs:
    """The blobs of all runs."""

    def __init__(self, wire: Wire, topology_: Topology, reserve: Reserve, clock: Clock) -> None:
        self._wire, self._topology, self._reserve, self._clock = wire, topology_, reserve, clock
        self._stream = topology_.blobs
        self._tight = False
        self._turn = asyncio.Lock()
        self._cut: dict[tuple[str, str], str] = {}

    async def put(self, run_id: str, data: bytes) -> str:
        """Keeps a value and gives its name, the digest of its content; the same value twice is kept once."""
        digest = hashlib.sha256(data)
        blob = digest.hexdigest()
        if await self._found(run_id, blob):
            return blob
        if cut := self._cut.pop((run_id, blob), None):
            await self._drop(cut)
        size = min(PIECE, self._wire.largest // 2)
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]  # they tell that it is there
        meta = Meta(
            name=topology.blob_name(run_id, blob),
            bucket=self._topology.blobs_bucket,
            nuid=topology.blob_nuid(run_id, blob, uuid.uuid4().hex),
            size=len(data),
            chunks=len(pieces),
            digest=objects.digest(digest.digest()),
        )
        async with self._turn if self._tight else contextlib.nullcontext():
            await self._put(run_id, blob, meta, pieces)
        self._tight = False
        return blob

    async def _put(self, run_id: str, blob: str, meta: Meta, pieces: list[bytes]) -> None:
        """Writes a value whole or not at all: where pieces of several took the last room, none would ever be whole."""
        subject = self._topology.blob_pieces(meta.nuid)
        try:
            try:
                for piece in pieces:
                    await self._reserve.spare(surely=True)
                    await self._wire.publish(subject, piece)
            except Unclear:
                self._cut[run_id, blob] = meta.nuid  # whoever asks again removes it: no record will ever name it
                raise
            if not await self._placed(run_id, blob, meta):
                await self._drop(meta.nuid)
        except ApiError as error:
            self._tight = self._tight or error.full
            await self._drop(meta.nuid)
            raise

    async def _placed(self, run_id: str, blob: str, meta: Meta) -> bool:
        """Writes the record of a value; False where somebody else was quicker with the same one."""
        subject, body, seq = self._topology.blob_record(run_id, blob), msgspec.json.encode(meta), 0
        while True:
            try:
                await self._wire.publish(subject, body, after=seq, alone=True)
                return True
            except ApiError as error:
                await objects.again(error)
            found, seq = await objects.record(self._wire, self._stream, subject)
            if found is not None and not found.deleted:
                return found.nuid == meta.nuid

    async def get(self, run_id: str, blob: str) -> bytes:
        """Reads a value, and makes sure that it is the one that was kept."""
        meta = await self._found(run_id, blob)
        if meta is None:  # a replica that lags behind does not know it yet
            meta, _ = await objects.record(self._wire, self._stream, self._topology.blob_record(run_id, blob))
        if meta is None or meta.deleted:
            raise StoreError(f"blob {blob} of run {run_id} is not there; was the run purged?")
        subject = self._topology.blob_pieces(meta.nuid)
        data = b"".join(await objects.pieces(self._wire, self._stream, subject, meta.chunks))
        if hashlib.sha256(data).hexdigest() != blob:
            raise StoreError(f"blob {blob} of run {run_id} is damaged: it is not what was written; restore a copy")
        return data

    async def _found(self, run_id: str, blob: str) -> Meta | None:
        """Reads the record of a value from any replica."""
        request = msgspec.json.encode({"last_by_subj": self._topology.blob_record(run_id, blob)})
        answer = await self._wire.ask(topology.direct_get(self._stream), request)
        meta = None if "Status" in (answer.headers or {}) else objects.decode(answer.data)
        return None if meta is None or meta.deleted else meta

    async def _drop(self, nuid: str) -> None:
        await self._wire.api(topology.purge_stream(self._stream), filter=self._topology.blob_pieces(nuid))

    async def purge(self, run_id: str) -> None:
        """Removes the blobs of a run."""
        await remove(self._wire, self._topology, run_id)

    # What a crash left

    async def sweep(self, projection: Projection, fenced: Told, over: Told) -> Swept:
        """Removes the blobs of runs that are gone, once those are fenced off, and pieces that no record names."""
        # The blobs are listed before the runs are asked for. A run is there before its first blob, except for one that
        # is just being submitted with huge params.
        listed = await objects.subjects(self._wire, self._stream, self._topology.all_of_blobs)
        named = [blob for subject in listed if (blob := topology.blob_in(subject))]
        runs = {each.run for each in named}
        unknown = [run_id for run_id in sorted(runs - projection.known(sorted(runs))) if await fenced(run_id)]
        for run_id in unknown:
            await remove(self._wire, self._topology, run_id, {each.digest for each in named if each.run == run_id})
        lone = _perhaps_nameless([each for each in named if each.run not in unknown])
        return Swept(len(unknown), sum([await self._swept(each, over) for each in lone]))

    async def _swept(self, each: Blob, over: Told) -> bool:
        """Removes pieces that no record names and nobody is about to name: their run has ended, and long since.

        A worker on a machine that slept may write the record the next day, as long as the run is its own.
        """
        if not await over(each.run):
            return False
        meta, _ = await objects.record(self._wire, self._stream, self._topology.blob_record(each.run, each.digest))
        if meta is not None and meta.nuid == each.nuid:
            return False
        subject = self._topology.blob_pieces(each.nuid)
        last = await self._wire.api(topology.leader_get(self._stream), last_by_subj=subject)
        if self._clock.now() - seconds(last["message"]["time"]) <= objects.ABANDONED:
            return False
        await self._drop(each.nuid)
        return True


def _perhaps_nameless(named: Iterable[Blob]) -> list[Blob]:
    """Picks pieces whose value has no record, or has been written more than once."""
    values = defaultdict[tuple[str, str], list[Blob]](list)
    for each in named:
        values[each.run, each.digest].append(each)
    written = [([each for each in of_one if each.nuid], of_one) for of_one in values.values()]
    return [each for pieces, of_one in written if len(pieces) > 1 or len(pieces) == len(of_one) for each in pieces]


async def remove(wire: Wire, names: Topology, run_id: str, known: Iterable[str] = ()) -> None:
    """Removes all blobs of a run: their records, of which the pieces tell, and then these."""
    stream = names.blobs
    listed = await objects.subjects(wire, stream, names.blobs_of(run_id))
    blobs = {named.digest for subject in listed if (named := topology.blob_in(subject))} | set(known)
    records = [names.blob_record(run_id, blob) for blob in sorted(blobs)]
    for at in range(0, len(records), AT_ONCE):
        some = records[at : at + AT_ONCE]
        await asyncio.gather(*(wire.api(topology.purge_stream(stream), filter=subject) for subject in some))
    if listed:
        await wire.api(topology.purge_stream(stream), filter=names.blobs_of(run_id))
