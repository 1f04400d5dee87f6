"""The wheels of the store in memory."""

import uuid
from collections.abc import AsyncIterable, AsyncIterator

from msgspec.structs import replace

from tsuzuki import settings
from tsuzuki.backends.shelf import Admit, Wheel, WheelEvent
from tsuzuki.clock import Clock
from tsuzuki.wheelerrors import WheelNotFound


class MemoryWheels:
    """Keeps wheels in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[Wheel, list[bytes]]] = {}
        self._events: list[WheelEvent] = []
        self._changes = 0

    @property
    def bucket(self) -> str:
        return settings.wheel_bucket()

    async def put(self, wheel: Wheel, pieces: AsyncIterable[bytes], admit: Admit, event: WheelEvent) -> Wheel:
        content = [piece async for piece in pieces]
        admit([kept for kept, _ in self._kept.values()])
        wheel = replace(wheel, nuid=uuid.uuid4().hex, modified=self._clock.now())
        self._kept[wheel.name] = wheel, content
        self._tell(event.of(wheel, self._clock.now()))
        return wheel

    async def all(self) -> list[Wheel]:
        return sorted((wheel for wheel, _ in self._kept.values()), key=lambda wheel: wheel.name)

    async def get(self, name: str) -> Wheel | None:
        return self._kept[name][0] if name in self._kept else None

    async def read(self, wheel: Wheel) -> AsyncIterator[bytes]:
        kept, content = self._kept.get(wheel.name, (None, []))
        if kept is None or kept.nuid != wheel.nuid:
            raise WheelNotFound
        for piece in content:
            yield piece

    async def remove(self, name: str, event: WheelEvent) -> Wheel | None:
        if name not in self._kept:
            return None
        wheel, _ = self._kept.pop(name)
        self._tell(event.of(wheel, self._clock.now()))
        return wheel

    def _tell(self, event: WheelEvent) -> None:
        self._events.append(event)
        self._changes += 1

    async def events(
        self, *, since: float, limit: int, wheel: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        found = [event for event in reversed(self._events) if event.at >= since]
        return [e for e in found if wheel in (None, e.wheel) and action in (None, e.action)][:limit]

    async def forget_events(self, before: float) -> None:
        self._events = [event for event in self._events if event.at >= before]

    async def news(self) -> str:
        return str(self._changes)
