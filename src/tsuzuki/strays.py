"""Runs that nobody would ever take: of flows that no living worker knows, or held by one that does not know of it."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from tsuzuki.backends import Backend, Query, WorkerRecord
from tsuzuki.clock import Clock
from tsuzuki.lifecycle import Run, Status, claimable
from tsuzuki.presence import Watch

PATIENCE: Final = 2.0
"""How long a claim may be on its way from the store to its worker (seconds)."""


class Unattended:
    """Runs that we hold by the store's word, but do not carry out: their claim was lost on its way to us."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def look(self, held: AbstractSet[tuple[str, int]], ours: AbstractSet[tuple[str, int]], now: float) -> set[str]:
        """Gives those that have been so for a while."""
        self._since = {claim: self._since.get(claim, now) for claim in held - ours}
        return {run_id for (run_id, _), since in self._since.items() if now - since >= PATIENCE}


@dataclass(slots=True)
class Look:
    """A look at the queue by a worker, who knows some flows and serves some tags."""

    backend: Backend
    worker: str
    tags: Sequence[str]
    flows: Collection[str]
    watch: Watch
    clock: Clock

    async def strays(self, dead: frozenset[str]) -> list[Run]:
        """Gives shared runs of these tags whose flow neither this worker nor another living one knows.

        As long as wheels may still bring a flow to one of them, it is not lost.
        """
        unknown = [row for row in await self._waiting(dead) if row.flow not in self.flows and not row.workflow]
        workers = await self._alive() if unknown else []
        return [row for row in unknown if not any(self._may_take(worker, row) for worker in workers)]

    def _may_take(self, worker: WorkerRecord, row: Run) -> bool:
        another = worker.id != self.worker
        return (another and worker.takes(row)) or (row.tag in worker.tags and worker.may_learn(row.updated_at))

    async def _waiting(self, dead: frozenset[str]) -> list[Run]:
        """Gives shared runs of these tags that wait, or whose holder is dead."""
        rows: list[Run] = []
        for tag in self.tags:
            rows += await self.backend.search(Query(status=(Status.PENDING,), tag=tag, private=False, params=False))
        for holder in dead:
            rows += await self.backend.search(Query(holder=holder, private=False, params=False))
        return [row for row in rows if row.tag in self.tags and claimable(row, self.clock.now(), dead)]

    async def _alive(self) -> list[WorkerRecord]:
        """Gives the workers that live, this one among them."""
        records = await self.backend.workers()
        others = [record for record in records if record.id != self.worker]
        dead = self.watch.dead(others, self.clock.monotonic())
        return [record for record in records if record.id not in dead]
