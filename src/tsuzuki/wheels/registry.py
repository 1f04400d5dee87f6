"""What one can do with the wheels of a store: upload, list, download, delete, and see who did."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import IO, Final

from tsuzuki import settings
from tsuzuki.backends import Backend
from tsuzuki.backends.shelf import DELETE, UPLOAD, Wheel, WheelEvent
from tsuzuki.wheelerrors import BadWheel, WheelNotFound
from tsuzuki.wheels import checking, examining, naming

PIECE: Final = 1 << 20
ACTIONS: Final = (UPLOAD, DELETE)
NOBODY: Final[Mapping[str, str]] = {}


class Arrived:
    """A wheel that has arrived in a file, with its size and digest; the file is read in pieces."""

    def __init__(self, name: str, file: IO[bytes], size: int, sha256: str) -> None:
        self.name, self.file, self.size, self.sha256 = name, file, size, sha256

    async def pieces(self) -> AsyncIterator[bytes]:
        """Gives the content."""
        await asyncio.to_thread(self.file.seek, 0)
        while piece := await asyncio.to_thread(self.file.read, PIECE):
            yield piece


class Registry:
    """The wheels of a store, under the rules about names, tags, versions and contents."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._wheels = backend, backend.wheels

    @property
    def bucket(self) -> str:
        """What the place is called where they are kept."""
        return self._wheels.bucket

    async def upload(
        self,
        arrived: Arrived,
        tags: Sequence[str] = (),
        *,
        replace: bool = True,
        tenant: str = "",
        api_key: str = "",
        source: Mapping[str, str] = NOBODY,
    ) -> Wheel:
        """Takes a wheel in: name, tags and version are looked at first, then the file itself.

        `replace` is kept in the history and changes nothing: that versions only go up counts more.
        """
        name = naming.parse_name(arrived.name)
        wanted = naming.parse_tags(tags)
        if not arrived.size:
            raise BadWheel("invalid wheel file: it is empty")
        admit = naming.only_upwards(name)
        admit(await self._wheels.all())  # asked again when it is written; here it spares the work
        found = await asyncio.to_thread(examining.examine, arrived.file, name)
        await checking.compile_sources(arrived.file, name, found)
        wheel = Wheel(
            name=arrived.name,
            package=name.package,
            version=str(name.version),
            size=arrived.size,
            sha256=arrived.sha256,
            tags=wanted,
            requires_python=found.requires_python,
        )
        event = _event(UPLOAD, tenant, api_key, source, replace=replace)
        kept = await self._wheels.put(wheel, arrived.pieces(), admit, event)
        await self._forget()
        return kept

    async def all(self) -> list[Wheel]:
        """Lists the wheels by name."""
        return await self._wheels.all()

    async def get(self, name: str) -> Wheel:
        """Gives a wheel by its name."""
        wheel = await self._wheels.get(name) if name.endswith(".whl") else None
        if wheel is None:
            raise WheelNotFound
        return wheel

    def read(self, wheel: Wheel) -> AsyncIterator[bytes]:
        """Gives the content of a wheel in pieces."""
        return self._wheels.read(wheel)

    async def delete(
        self, name: str, *, tenant: str = "", api_key: str = "", source: Mapping[str, str] = NOBODY
    ) -> Wheel:
        """Removes a wheel; workers forget it before their next claim."""
        event = _event(DELETE, tenant, api_key, source)
        wheel = await self._wheels.remove(name, event) if name.endswith(".whl") else None
        if wheel is None:
            raise WheelNotFound
        await self._forget()
        return wheel

    async def history(
        self, *, limit: int = 100, wheel: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        """Tells who brought wheels and who took them away, the newest first."""
        if wheel is not None:
            naming.checked_name(wheel)
        if action is not None and action not in ACTIONS:
            raise BadWheel("invalid action")
        since = self._backend.clock.now() - settings.wheel_history_ttl()
        return await self._wheels.events(since=since, limit=limit, wheel=wheel, action=action)

    async def _forget(self) -> None:
        await self._wheels.forget_events(self._backend.clock.now() - settings.wheel_history_ttl())


def _event(
    action: str, tenant: str, api_key: str, source: Mapping[str, str], *, replace: bool | None = None
) -> WheelEvent:
    return WheelEvent(
        id=uuid.uuid4().hex,
        action=action,
        wheel="",
        replace=replace,
        tenant=tenant,
        api_key=api_key,
        source=dict(source),
    )
