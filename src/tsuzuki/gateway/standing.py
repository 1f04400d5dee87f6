"""How runs stand: whether somebody goes on with those that are under way; the store tells it of no row."""

from collections.abc import Sequence
from typing import Final

from tsuzuki import settings
from tsuzuki.holders import interrupted
from tsuzuki.lifecycle import ACTIVE, Run
from tsuzuki.runs import Runs

FRESH: Final = 1.0
"""For how long what was read of holders is good enough to show (seconds)."""
UNTROUBLED: Final = {"interrupted": False, "worker_lost": False}


class Standings:
    """What is known of those who hold runs, read at most once in a while."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._read_at: float | None = None
        self._gone: frozenset[str] = frozenset()
        self._lost: frozenset[str] = frozenset()

    async def of(self, rows: Sequence[Run]) -> list[dict[str, bool]]:
        """Gives, for each run, whether it was stopped on the way and whether its worker is lost."""
        if any(row.status in ACTIVE and row.holder is not None for row in rows):
            await self._freshen()
        return [await self._one(row) for row in rows]

    async def _one(self, row: Run) -> dict[str, bool]:
        if row.status not in ACTIVE:
            return UNTROUBLED
        waited_for = await self._runs.holders.waited_for([row])
        return {
            "interrupted": interrupted(row, self._gone, waited_for),
            "worker_lost": row.holder is not None and row.holder in self._lost,
        }

    async def _freshen(self) -> None:
        now = self._runs.backend.clock.monotonic()
        if self._read_at is not None and now - self._read_at < FRESH:
            return
        holders, self._read_at = self._runs.holders, now
        self._gone = await holders.gone()
        self._lost = await holders.lost(self._runs.now(), settings.worker_disconnect_timeout())
