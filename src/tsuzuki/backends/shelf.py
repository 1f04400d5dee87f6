"""The port for wheels: where they are kept, as values and a small protocol beside that of the store.

Which wheel may be put is decided above (`tsuzuki.wheels`): a store calls that rule where nobody can come between.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

UPLOAD: Final = "upload"
DELETE: Final = "delete"


class Wheel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wheel that is kept; the store gives it `nuid`, which differs with every upload, and when it came."""

    name: str
    package: str
    """The normalised name of the package."""
    version: str
    size: int
    sha256: str
    tags: tuple[str, ...] = ()
    requires_python: str = ""
    nuid: str = ""
    modified: float = 0.0


class WheelEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """That a wheel came or went, and by whom; the store says when."""

    id: str
    action: str
    wheel: str
    at: float = 0.0
    tags: tuple[str, ...] = ()
    size: int = 0
    sha256: str = ""
    replace: bool | None = None
    tenant: str = ""
    api_key: str = ""
    source: Mapping[str, str] = {}

    def of(self, wheel: Wheel, at: float) -> "WheelEvent":
        """Gives the event with what it is about, at a time."""
        return msgspec.structs.replace(
            self, wheel=wheel.name, tags=wheel.tags, size=wheel.size, sha256=wheel.sha256, at=at
        )

    @property
    def key(self) -> str:
        """The name it is kept under, by which events are in order: milliseconds, then its id."""
        return f"{key_since(self.at)}_{self.id}"


def key_since(at: float) -> str:
    """Gives the name that no event from a time on comes before."""
    return f"{int(max(at, 0.0) * 1000):013d}"


Admit: TypeAlias = Callable[[Sequence[Wheel]], None]
"""Says whether a wheel may join those that are kept; raises where it may not."""


class Wheels(Protocol):
    """The wheels of a store. Every method may raise `StoreError`."""

    @property
    def bucket(self) -> str:
        """What the place is called where they are kept."""
        ...

    async def put(self, wheel: Wheel, pieces: AsyncIterable[bytes], admit: Admit, event: WheelEvent) -> Wheel:
        """Keeps a wheel, whole or not at all, if it is admitted; gives it as it is kept now.

        `admit` is asked in the moment that decides, with what is kept then. One of the same name is replaced.
        """
        ...

    async def all(self) -> list[Wheel]:
        """Lists the wheels by name."""
        ...

    async def get(self, name: str) -> Wheel | None:
        """Gives a wheel by its name."""
        ...

    def read(self, wheel: Wheel) -> AsyncIterator[bytes]:
        """Gives the bytes of a wheel in pieces; raises `WheelNotFound` where it is gone meanwhile."""
        ...

    async def remove(self, name: str, event: WheelEvent) -> Wheel | None:
        """Removes a wheel; gives what it was, None where there was none."""
        ...

    async def events(
        self, *, since: float, limit: int, wheel: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        """Reads what happened since a time, the newest first."""
        ...

    async def forget_events(self, before: float) -> None:
        """Removes what happened before a time, where the store does not do that by itself."""
        ...

    async def news(self) -> str:
        """Gives a mark that differs after every wheel that came or went; it costs next to nothing."""
        ...
