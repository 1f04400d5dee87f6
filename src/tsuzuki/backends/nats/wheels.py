"""Wheels in an Object Store bucket, laid out as every client of NATS knows it, and what happened to them in KV.

A wheel is there once its meta message is; that message is written only directly after the last one that the rule about
versions has seen, so that nobody can come between.
"""

import asyncio
import base64
import contextlib
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from nats.aio.msg import Msg

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.objects import ABANDONED, AT_ONCE, DIGEST, Meta, again, decode, digest, subjects
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.records import Records
from tsuzuki.backends.nats.reserve import Reserve
from tsuzuki.backends.nats.servertime import seconds
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.backends.shelf import Admit, Wheel, WheelEvent
from tsuzuki.clock import Clock
from tsuzuki.errors import Conflict, StoreError
from tsuzuki.wheelerrors import WheelNotFound

PIECE: Final = 128 * 1024
TAGS: Final = "Tsuzuki-Tags"


_event: Final = msgspec.json.Decoder(WheelEvent).decode


class NatsWheels:
    """The wheels of a store on NATS."""

    def __init__(self, wire: Wire, names: Topology, options: Options, clock: Clock, reserve: Reserve) -> None:
        self._wire, self._topology, self._clock, self._reserve = wire, names, clock, reserve
        self._objects = Records(wire, names, options, clock, names.objects)
        self._history = Records(wire, names, options, clock, names.history)
        self._heard = 0
        self._listening: asyncio.Task[Any] | None = None
        self.faults: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext

    @property
    def bucket(self) -> str:
        return self._topology.wheels

    async def put(self, wheel: Wheel, pieces: AsyncIterable[bytes], admit: Admit, event: WheelEvent) -> Wheel:
        wheel = replace(wheel, nuid=uuid.uuid4().hex, modified=round(self._clock.now(), 6))
        with self.faults():
            try:
                chunks = await self._write_pieces(wheel.nuid, pieces)
            except BaseException:
                with contextlib.suppress(ApiError, Unclear):  # what stays is swept
                    await self._drop_pieces(wheel.nuid)
                raise
            try:
                replaced = await self._place(wheel, chunks, admit)
            except (Conflict, ApiError):  # nothing else says for certain that nobody refers to the pieces
                await self._drop_pieces(wheel.nuid)
                raise
            if replaced is not None:
                await self._drop_pieces(replaced)
            await self._tell(event.of(wheel, self._clock.now()))
        return wheel

    async def _write_pieces(self, nuid: str, pieces: AsyncIterable[bytes]) -> int:
        """Writes one piece after the other: they are read in the order in which they stand in the stream."""
        subject, size, count, held = self._topology.wheel_pieces(nuid), min(PIECE, self._wire.largest // 2), 0, b""
        async for piece in pieces:
            held += piece
            whole = len(held) - len(held) % size
            for at in range(0, whole, size):
                await self._reserve.spare(surely=True)
                await self._wire.publish(subject, held[at : at + size])
                count += 1
            held = held[whole:]
        if held:
            await self._wire.publish(subject, held)
        return count + bool(held)

    async def _place(self, wheel: Wheel, chunks: int, admit: Admit) -> str | None:
        """Writes the record of a wheel; gives what the pieces of the one before were called."""
        body, names = msgspec.json.encode(_meta_of(wheel, self.bucket, chunks)), self._topology
        while True:
            found, last = await self._metas()
            kept = [_wheel_of(meta) for meta in found if not meta.deleted]
            before = next((other.nuid for other in kept if other.name == wheel.name), None)
            if before == wheel.nuid:  # it was written, and only the acknowledgement got lost
                return None
            admit(kept)
            try:
                await self._wire.publish(names.wheel(wheel.name), body, after=last, among=names.all_wheels, alone=True)
            except ApiError as error:
                await again(error)
                continue
            except Unclear:
                if all(meta.nuid != wheel.nuid for meta in (await self._metas())[0]):
                    raise
            return before

    async def all(self) -> list[Wheel]:
        with self.faults():
            metas, _ = await self._metas()
        return sorted((_wheel_of(meta) for meta in metas if not meta.deleted), key=lambda wheel: wheel.name)

    async def _metas(self) -> tuple[list[Meta], int]:
        found, last = await self._objects.all_and_last(self._topology.all_wheels)
        return [meta for _, data in found if (meta := _read(data))], last

    async def get(self, name: str) -> Wheel | None:
        with self.faults():
            found = await self._objects.all(self._topology.wheel(name))
        metas = [meta for _, data in found if (meta := _read(data))]
        return next((_wheel_of(meta) for meta in metas if not meta.deleted), None)

    async def read(self, wheel: Wheel) -> AsyncIterator[bytes]:
        subject, seq, left = self._topology.wheel_pieces(wheel.nuid), 1, wheel.size
        while left > 0:
            request = {"seq": seq, "next_by_subj": subject, "batch": AT_ONCE}
            with self.faults():
                answers = await self._wire.many(
                    topology.direct_get(self._topology.objects), msgspec.json.encode(request)
                )
            if not answers and left == wheel.size:
                raise WheelNotFound
            if not answers:
                raise StoreError(f"the end of {wheel.name} is missing: it was removed meanwhile, or is damaged")
            for answer in answers:
                left -= len(answer.data)
                yield answer.data
            seq = int((answers[-1].headers or {})["Nats-Sequence"]) + 1

    async def remove(self, name: str, event: WheelEvent) -> Wheel | None:
        with self.faults():
            subject = self._topology.wheel(name)
            while True:
                value, seq = await self._objects.read(subject)
                meta = msgspec.convert(value, Meta) if value else None
                if meta is None or meta.deleted:
                    return None
                gone = Meta(
                    meta.name, bucket=self.bucket, nuid=meta.nuid, mtime=_stamp(self._clock.now()), deleted=True
                )
                try:
                    await self._wire.publish(subject, msgspec.json.encode(gone), after=seq, alone=True)
                    break
                except ApiError as error:
                    await again(error)
            await self._drop_pieces(meta.nuid)
            wheel = _wheel_of(meta)
            await self._tell(event.of(wheel, self._clock.now()))
            return wheel

    async def _drop_pieces(self, nuid: str) -> None:
        stream, subject = self._topology.objects, self._topology.wheel_pieces(nuid)
        await self._wire.api(topology.purge_stream(stream), filter=subject)

    async def sweep(self) -> int:
        """Removes the pieces of uploads that never became wheels; gives of how many."""
        stream = self._topology.objects
        # The pieces are listed before the wheels: those of a wheel are there before it is.
        listed = await subjects(self._wire, stream, self._topology.all_wheel_pieces)
        nuids = {topology.last_token(subject): subject for subject in listed}
        kept = {meta.nuid for meta in (await self._metas())[0] if not meta.deleted}
        swept = 0
        for nuid in sorted(nuids.keys() - kept):
            last = await self._wire.api(topology.leader_get(stream), last_by_subj=nuids[nuid])
            if self._clock.now() - seconds(last["message"]["time"]) > ABANDONED:
                await self._drop_pieces(nuid)
                swept += 1
        return swept

    # What happened

    async def _tell(self, event: WheelEvent) -> None:
        await self._wire.publish(self._topology.event(event.key), msgspec.json.encode(event))

    async def events(
        self, *, since: float, limit: int, wheel: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        with self.faults():
            found = [_event(data) for _, data in await self._history.all(self._topology.all_events)]
        wanted = [e for e in found if e.at >= since and wheel in (None, e.wheel) and action in (None, e.action)]
        return sorted(wanted, key=lambda event: event.key, reverse=True)[:limit]

    async def forget_events(self, before: float) -> None:
        del before  # the bucket forgets by itself

    async def news(self) -> str:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        with self.faults():
            await asyncio.shield(self._listening)
        return str(self._heard)

    async def _listen(self) -> None:
        """Hears of every record that is written; after an outage there may have been some."""
        await self._wire.subscribe(self._topology.all_wheels, self._hear)
        self._wire.on_reconnect.append(self._missed)

    async def _hear(self, message: Msg) -> None:
        del message
        self._missed()

    def _missed(self) -> None:
        self._heard += 1


def _meta_of(wheel: Wheel, bucket: str, chunks: int) -> Meta:
    about = {"package": wheel.package, "version": wheel.version, "requires_python": wheel.requires_python}
    return Meta(
        name=wheel.name,
        bucket=bucket,
        nuid=wheel.nuid,
        size=wheel.size,
        chunks=chunks,
        digest=digest(bytes.fromhex(wheel.sha256)),
        mtime=_stamp(wheel.modified),
        headers={TAGS: [",".join(wheel.tags)]},
        metadata=about,
    )


def _read(data: bytes) -> Meta | None:
    """Reads a record; what another client has put there and is no wheel is left alone."""
    try:
        meta = decode(data)
    except msgspec.MsgspecError:
        return None
    return meta if meta.name.endswith(".whl") else None


def _wheel_of(meta: Meta) -> Wheel:
    """Gives the wheel of a record; what another client did not say is told by its name, or fits nothing."""
    try:
        sha256 = base64.urlsafe_b64decode(meta.digest.removeprefix(DIGEST))
        modified = datetime.fromisoformat(meta.mtime).timestamp() if meta.mtime else 0.0
    except ValueError:
        sha256, modified = b"", 0.0
    package, _, rest = meta.name.partition("-")
    tags = [tag for text in (meta.headers or {}).get(TAGS, []) for tag in text.split(",") if tag]
    about = meta.metadata or {}
    return Wheel(
        name=meta.name,
        package=about.get("package") or package.lower().replace("_", "-"),
        version=about.get("version") or rest.partition("-")[0],
        size=meta.size,
        sha256=sha256.hex(),
        tags=tuple(tags),
        requires_python=about.get("requires_python", ""),
        nuid=meta.nuid,
        modified=round(max(modified, 0.0), 6),
    )


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
