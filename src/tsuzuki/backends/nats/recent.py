"""What this process remembers of single runs: the last messages it knows, what it holds, progress and heartbeats."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from tsuzuki.backends.nats.frames import ELSEWHERE, LARGE_PARAMS, Tip
from tsuzuki.lifecycle import Run

Known = TypeVar("Known")

MOST: Final = 10_000
"""Of so many runs it is remembered which of their messages was the last, or that they are gone; and as many workers."""
MOST_OURS: Final = 1000
"""So many runs that this process has written are listed at once, however far away the server that gives lists is."""
LAST: Final = 1 << 62
"""Comes after all messages."""


class Recent:
    """What is remembered; it needs no list of all runs, and grows with what is held and under way alone."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[int, int, str]] = OrderedDict()
        self._ours: OrderedDict[str, Tip] = OrderedDict()
        self._held: dict[str, Tip] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._progress: dict[str, tuple[float, bytes]] = {}

    def take(self, tip: Tip, run: Run, *, ours: bool) -> None:
        """Remembers where the chain of a run ends; the whole row where this process has claimed it."""
        _keep(self._last, run.id, (tip.seq, run.position, run.status.value))
        if ours:
            _keep(self._ours, run.id, tip if len(run.params) <= LARGE_PARAMS else _lighter(tip, run), MOST_OURS)
        else:
            self._ours.pop(run.id, None)
        if run.holder is None or run.status.terminal:
            self._held.pop(run.id, None)
        elif ours or run.id in self._held:
            self._held[run.id] = tip
        if run.status.terminal:
            self._progress.pop(run.id, None)

    def bury(self, run_id: str) -> None:
        """Remembers only that a run is gone."""
        _keep(self._gone, run_id, None)
        for known in (self._held, self._ours, self._last, self._progress):
            known.pop(run_id, None)

    def saw(self, worker: str, heartbeat_at: float) -> None:
        """Remembers that a worker was seen."""
        _keep(self._seen, worker, heartbeat_at)

    def progressed(self, run_id: str, updated_at: float, progress: bytes) -> None:
        """Remembers how far the steps of a run are."""
        if self._progress.get(run_id, (0.0, b""))[0] <= updated_at:
            self._progress[run_id] = updated_at, progress

    def ours(self) -> Iterable[tuple[str, Tip]]:
        """Gives what this process has written of late."""
        return list(self._ours.items())

    def touched(self) -> Iterable[tuple[str, float]]:
        """Gives when runs have last told how far they are."""
        return [(run_id, at) for run_id, (at, _) in self._progress.items()]

    def gone(self, run_id: str) -> bool:
        """Tells whether a run was removed."""
        return run_id in self._gone

    def held(self, run_id: str) -> Tip | None:
        """Gives where the chain of a run that is held here ends."""
        return self._held.get(run_id)

    def last(self, run_id: str) -> int:
        """Tells which message of a chain is known, 0: none; nothing can follow on a run that is gone."""
        if run_id in self._gone:
            return LAST
        if (found := self._last.get(run_id)) is not None:
            return found[0]
        return held.seq if (held := self._held.get(run_id)) is not None else 0

    def status(self, run_id: str) -> str:
        """Gives the status that a run is known to have; empty where it is not known."""
        return found[2] if (found := self._last.get(run_id)) is not None else ""

    def position(self, run_id: str) -> int:
        """Tells how far a run is known to have come, 0: nothing is known."""
        if (found := self._last.get(run_id)) is not None:
            return found[1]
        held = self._held.get(run_id)
        return held.run.position if held is not None and held.run is not None else 0

    def shown(self, tip: Tip) -> Tip:
        """Adds to a row what is only heard of: its progress, and the heartbeat of its holder."""
        if tip.run is None or tip.run.status.terminal:
            return tip
        run = self.seen(tip.run)
        if (progress := self._progress.get(run.id)) is not None:
            at, told = progress
            run = msgspec.structs.replace(run, progress=msgspec.Raw(told), updated_at=max(run.updated_at, at))
        return tip if run is tip.run else msgspec.structs.replace(tip, run=run)

    def seen(self, run: Run) -> Run:
        """Return a row with the last heartbeat of its holder."""
        heartbeat_at = self._seen.get(run.holder) if run.holder is not None else None
        if heartbeat_at is None or heartbeat_at <= (run.heartbeat_at or 0.0):
            return run
        return msgspec.structs.replace(run, heartbeat_at=heartbeat_at)


def _keep(known: OrderedDict[str, Known], name: str, what: Known, most: int = MOST) -> None:
    """Remembers something, and forgets what was remembered longest ago where that is too much."""
    known[name] = what
    known.move_to_end(name)
    if len(known) > most:
        known.popitem(last=False)


def _lighter(tip: Tip, run: Run) -> Tip:
    """Leaves large params where they are: in the first message of the chain."""
    return msgspec.structs.replace(tip, run=msgspec.structs.replace(run, params=ELSEWHERE))
