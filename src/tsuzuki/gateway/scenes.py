"""Runs that somebody watches: one look at the store for all who watch the same run.

Each change is folded and encoded once; five hundred watchers cost five hundred writes to sockets, not looks.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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


class Scene:
    """One run that is watched."""

    def __init__(self, row: Run, overview: Overview, snapshots: Snapshots) -> None:
        self.row = row
        self.version = 1
        self.watchers = 0
        self.changed = asyncio.Event()
        self._overview = overview
        self._snapshots = snapshots
        self._encoded: dict[bool, bytes] = {}
        self._pace = PACE
        self._standing: dict[str, bool] | None = None
        self._lock = asyncio.Lock()

    async def snapshot(self, *, records: bool) -> bytes:
        """Gives the run's document as it is now, encoded once for all."""
        async with self._lock:
            if records not in self._encoded:
                row = self.row
                encoded = msgspec.json.encode(await self._snapshots.document(row, records=records))
                if row is not self.row:  # it changed meanwhile: good for this one, not to be kept
                    return encoded
                self._encoded[records] = encoded
                self._pace = min(max(PACE, len(encoded) / FLUENT), SLOWEST_PACE)
            return self._encoded[records]

    async def look(self) -> None:
        """Looks for changes for as long as it is let."""
        while True:
            try:
                row = await self._overview.news(self.row, LOOK)
                standing = await self._snapshots.standing(row or self.row)
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
        """Tells all who watch of a row that is newer than the one they know; whether it is."""
        if (row.updated_at, row.position) <= (self.row.updated_at, self.row.position):
            return False
        self.row = row
        self._tell()
        return True

    def _tell(self) -> None:
        self.version += 1
        self._encoded.clear()
        self.changed.set()
        self.changed = asyncio.Event()


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
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking
