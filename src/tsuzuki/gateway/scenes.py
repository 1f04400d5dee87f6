"""Runs that somebody watches: one look at the store for all who watch the same run.

Each change is folded and encoded once; five hundred watchers cost five hundred writes to sockets, not looks. Whoever
comes brings a row that may be newer than the one the others know. It is told at the pace of all changes: otherwise five
hundred who come at once would be told of five hundred changes each.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from tsuzuki.errors import StoreError
from tsuzuki.gateway.snapshots import Snapshots
from tsuzuki.lifecycle import Run
from tsuzuki.overview import Overview

logger: Final = logging.getLogger("tsuzuki.gateway")

LOOK: Final = 2.0
"""Without news the row is looked at this often (seconds)."""
PACE: Final = 0.05
"""Changes within so many seconds are one change to those who watch."""
SLOWEST_PACE: Final = 0.15
"""The same where documents are large: a change is still seen within 0.2 s."""
FLUENT: Final = 2_000_000
"""So many bytes a second are sent to each who watches without slowing down."""
BREATH: Final = 0.005
"""After a look that found nothing new the next comes no sooner (seconds)."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A run's document as those who watch are told of it, encoded once for all."""

    version: int
    updated_at: float
    document: bytes


class Scene:
    """One run that is watched."""

    def __init__(self, row: Run, overview: Overview, snapshots: Snapshots) -> None:
        self.row = row
        """The run as those who watch know it."""
        self.version = 1
        self.watchers = 0
        self.changed = asyncio.Event()
        self._overview = overview
        self._snapshots = snapshots
        self._newest = row
        self._untold = False
        self._resting: asyncio.TimerHandle | None = None
        self._pictures: dict[bool, Picture] = {}
        self._pace = PACE
        self._standing: dict[str, bool] | None = None
        self._lock = asyncio.Lock()

    async def picture(self, version: int, *, records: bool) -> Picture:
        """Gives the run's document as of a version or a later one: the same to all who wait for it."""
        async with self._lock:
            kept = self._pictures.get(records)
            if kept is None or kept.version < version:
                kept = self._pictures[records] = await self._made(records)
            return kept

    async def _made(self, records: bool) -> Picture:
        row, version = self.row, self.version  # it may change meanwhile: who was told of that asks again
        encoded = msgspec.json.encode(await self._snapshots.document(row, records=records))
        self._pace = min(max(PACE, len(encoded) / FLUENT), SLOWEST_PACE)
        if self._snapshots.behind(row.id):  # nobody else may ever bring news of a run that has ended
            self._tell()
        return Picture(version, row.updated_at, encoded)

    async def look(self) -> None:
        """Looks for changes for as long as it is let."""
        while True:
            try:
                row = await self._overview.news(self._newest, LOOK)
                standing = await self._snapshots.standing(row or self._newest)
            except StoreError as error:
                logger.warning("cannot look at run %s: %s", self.row.id, error, extra={"run_id": self.row.id})
                await asyncio.sleep(LOOK)
                continue
            shown = row is not None and self.show(row)
            if not shown and self._standing not in (None, standing):  # whoever held it may be gone without a word
                self._tell()
            self._standing = standing
            await asyncio.sleep(self._pace if shown else BREATH)

    def show(self, row: Run) -> bool:
        """Takes a row that is newer than the newest, and tells all who watch of it; whether it is."""
        if (row.updated_at, row.position) <= (self._newest.updated_at, self._newest.position):
            return False
        self._newest = row
        self._tell()
        return True

    async def told(self) -> None:
        """Waits until those who watch know the newest row: no longer than the pace lets them wait."""
        if self._untold:
            await self.changed.wait()

    def close(self) -> None:
        """Tells nobody any more."""
        if self._resting is not None:
            self._resting.cancel()

    def _tell(self) -> None:
        """Tells of a change, and of all that come before the pace is over together: whoever brings them."""
        self._untold = True
        if self._resting is None:
            self._tell_now()

    def _tell_now(self) -> None:
        self._untold = False
        self.row, self.version = self._newest, self.version + 1
        self._resting = asyncio.get_running_loop().call_later(self._pace, self._rested)
        self.changed.set()
        self.changed = asyncio.Event()

    def _rested(self) -> None:
        self._resting = None
        if self._untold:
            self._tell_now()


class Scenes:
    """All runs that are watched."""

    def __init__(self, overview: Overview, snapshots: Snapshots) -> None:
        self._overview = overview
        self._snapshots = snapshots
        self._scenes: dict[str, tuple[Scene, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def watching(self, row: Run) -> AsyncIterator[Scene]:
        """Lets one more watch a run."""
        if row.id not in self._scenes:
            scene = Scene(row, self._overview, self._snapshots)
            self._scenes[row.id] = (scene, asyncio.create_task(scene.look(), name="gateway-scene"))
        scene, looking = self._scenes[row.id]
        scene.watchers += 1
        scene.show(row)
        try:
            yield scene
        finally:
            scene.watchers -= 1
            if not scene.watchers:
                del self._scenes[row.id]
                scene.close()
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking
