"""Large values in pieces under their run: written whole before the fact that refers to them, purged by subject.

Where room is scarce a process writes them one after the other.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import ApiError
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import StoreError

PIECE: Final = 256 * 1024
AT_ONCE: Final = 16


class Blobs:
    """The blobs of all runs. The last piece is written last and has another name: without it, the blob is not there."""

    def __init__(self, wire: Wire, topology_: Topology, reserve: Reserve) -> None:
        self._wire, self._topology, self._reserve = wire, topology_, reserve
        self._tight = False
        self._turn = asyncio.Lock()

    async def put(self, run_id: str, data: bytes) -> str:
        """Keeps a value and gives its name, the digest of its content; the same value twice is kept once."""
        blob = hashlib.sha256(data).hexdigest()
        if await self._end(run_id, blob):
            return blob
        size = min(PIECE, self._wire.largest // 2)
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        async with self._turn if self._tight else contextlib.nullcontext():
            await self._put(run_id, blob, pieces)
        self._tight = False
        return blob

    async def _put(self, run_id: str, blob: str, pieces: list[bytes]) -> None:
        """Writes a value whole or not at all: where pieces of several took the last room, none would ever be whole."""
        try:
            for number, piece in enumerate(pieces):
                await self._reserve.spare(surely=True)
                await self._wire.publish(self._topology.blob(run_id, blob, f"{number:06d}"), piece)
            await self._wire.publish(self._topology.blob(run_id, blob, "end"), str(len(pieces)).encode())
        except ApiError as error:
            if error.full:
                self._tight = True
                await self._wire.api(
                    topology.purge_stream(self._topology.blobs), filter=self._topology.blob(run_id, blob)
                )
            raise

    async def get(self, run_id: str, blob: str) -> bytes:
        """Reads a value, and makes sure that it is the one that was kept."""
        if not await self._end(run_id, blob):
            raise StoreError(f"blob {blob} of run {run_id} is not there; was the run purged?")
        pieces: dict[str, bytes] = {}
        seq = 1
        while True:
            request = {"seq": seq, "next_by_subj": self._topology.blob(run_id, blob), "batch": AT_ONCE}
            answers = await self._wire.many(topology.direct_get(self._topology.blobs), msgspec.json.encode(request))
            for answer in answers:
                headers = answer.headers or {}
                pieces[topology.last_token(headers["Nats-Subject"])] = answer.data
                seq = int(headers["Nats-Sequence"]) + 1
            if not answers:
                break
        data = b"".join(piece for name, piece in sorted(pieces.items()) if name != "end")
        if hashlib.sha256(data).hexdigest() != blob:
            raise StoreError(f"blob {blob} of run {run_id} is damaged: it is not what was written; restore a copy")
        return data

    async def purge(self, run_id: str) -> None:
        """Removes the blobs of a run."""
        await self._wire.api(topology.purge_stream(self._topology.blobs), filter=self._topology.blobs_of(run_id))

    async def sweep(self, projection: Projection, fenced: Callable[[str], Awaitable[bool]]) -> int:
        """Removes the blobs of runs that are gone, once those are fenced off; gives of how many runs."""
        told = await self._wire.api(
            topology.stream_info(self._topology.blobs), subjects_filter=self._topology.all_blobs
        )
        # The blobs are listed before the runs are asked for. A run is there before its first blob, except for one that
        # is just being submitted with huge params.
        subjects = (told.get("state") or {}).get("subjects") or {}
        runs = sorted({topology.run_of_blob(subject) for subject in subjects})
        unknown = [run_id for run_id in sorted(set(runs) - projection.known(runs)) if await fenced(run_id)]
        for run_id in unknown:
            await self.purge(run_id)
        return len(unknown)

    async def _end(self, run_id: str, blob: str) -> bool:
        request = msgspec.json.encode({"last_by_subj": self._topology.blob(run_id, blob, "end")})
        answer = await self._wire.ask(topology.direct_get(self._topology.blobs), request)
        return "Status" not in (answer.headers or {})
