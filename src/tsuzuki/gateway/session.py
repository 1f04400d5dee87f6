"""Who asks, and what they may see: the only way from a route to the store.

A route that wants the gateway asks for a `Session`, and there is none without a key where keys are asked for. So a
route cannot forget to be protected.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Request

from tsuzuki.catalogue import Catalogue
from tsuzuki.errors import KeyRefused, KeyRequired, RightMissing, RunNotFound
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.scenes import Scenes
from tsuzuki.gateway.snapshots import Snapshots
from tsuzuki.gateway.standing import Standings
from tsuzuki.gateway.streams import Streams
from tsuzuki.keyring import Keyring
from tsuzuki.lifecycle import Run
from tsuzuki.overview import Overview
from tsuzuki.runs import Runs
from tsuzuki.wheels.registry import Registry

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,14}")


@dataclass(slots=True)
class Gateway:
    """What all routes share."""

    runs: Runs
    overview: Overview
    snapshots: Snapshots
    standings: Standings
    streams: Streams
    scenes: Scenes
    keyring: Keyring
    catalogue: Catalogue
    wheels: Registry
    options: Options
    data_dir: Path
    """Where applications keep their files."""
    writes_refused: bool = False
    """Whether the store did not take a write: until it does again, the gateway is not ready."""


@dataclass(frozen=True, slots=True)
class Session:
    """One request's view of the store: that of a tenant, or of everybody where no keys are asked for."""

    gateway: Gateway
    tenant: str | None = None
    key_id: str = ""
    rights: tuple[str, ...] = ()

    @property
    def runs(self) -> Runs:
        """The runs of the store."""
        return self.gateway.runs

    @property
    def overview(self) -> Overview:
        """The wider view of the store."""
        return self.gateway.overview

    @property
    def by(self) -> str:
        """Who asks, as it is kept with what was asked for."""
        return f"key:{self.key_id}" if self.key_id else "http"

    def may_see(self, row: Run) -> bool:
        """Tells whether a run is there for who asks."""
        return self.tenant is None or row.tenant == self.tenant

    def may(self, right: str) -> bool:
        """Tells whether who asks has a right; where no keys are asked for, everybody has all."""
        return self.tenant is None or right in self.rights

    def need(self, right: str) -> None:
        """Refuses who does not have a right."""
        if not self.may(right):
            raise RightMissing(f"this api key may not do that: make one with `tsuzuki keys create --right {right}`")

    async def run(self, reference: str) -> Run:
        """Finds a run by its id or number; one of another tenant is not there."""
        if not _ID.fullmatch(reference) and not _NUMBER.fullmatch(reference):
            raise RunNotFound
        row = await self.runs.get(reference.lower())
        if not self.may_see(row):
            raise RunNotFound
        return row


async def session_of(request: Request) -> Session:
    """Opens the session of a request, or refuses it."""
    gateway: Gateway = request.app.state.gateway
    if not gateway.options.auth:
        return Session(gateway)
    text = request.headers.get(gateway.options.api_key_header)
    if not text:
        raise KeyRequired
    record = await gateway.keyring.holder(text)
    if record is None:
        raise KeyRefused
    return Session(gateway, record.tenant, record.id, record.rights)


InSession = Annotated[Session, Depends(session_of)]
