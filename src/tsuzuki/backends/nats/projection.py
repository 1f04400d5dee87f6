"""The rows of all runs in a SQLite database in memory: lists, counts, and what may be claimed.

It follows the journal and is never the truth: what it says of a run may be a moment old, and whoever writes is
fenced by the chain. A process sees its own writes at once.
"""

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Holding, Query
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.frames import ELSEWHERE, Frame, Tip
from tsuzuki.backends.nats.queries import SQL
from tsuzuki.backends.nats.topology import Group
from tsuzuki.backends.nats.work import Candidate
from tsuzuki.clock import Clock
from tsuzuki.lifecycle import Run, Status

TICK: Final = 1e-6
"""The least by which `updated_at` grows from one write to the next."""
_ALWAYS: Final = 1e300
_LEADING: Final = ("number", "holder", "digest", "workflow", "key", "prefix", "flow", "tag")
"""The filters that have an index of their own, the most selective first."""


class Projection:
    """What this process knows of all runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.executescript(SQL["schema"])
        self._updated_at = 0.0

    def close(self) -> None:
        """Leaves."""
        self._database.close()

    def stamp(self) -> float:
        """Gives the time of a write: later than that of any write known here, whatever the wall clock says."""
        self._updated_at = max(self._clock.now(), self._updated_at + TICK)
        return self._updated_at

    # What is written

    def put(self, tip: Tip) -> bool:
        """Takes over a row; tells whether it is news."""
        run = tip.run
        if run is None or self._database.execute(SQL["gone"], (run.id,)).fetchone():
            return False
        if len(run.params) > frames.LARGE_PARAMS:
            self._database.execute(SQL["keep_params"], (run.id, bytes(run.params)))
        return self._put(tip, run, frames.encode_row(run))

    def follow(self, run_id: str, seq: int, frame: Frame) -> Run | None:
        """Takes over a message of the journal; gives the row where it is news."""
        known = self._database.execute(SQL["seq"], (run_id,)).fetchone()
        if known and known[0] >= seq:
            return None
        if frame.row is None:
            self.bury(run_id, seq)
            return None
        tip = frames.tip_of(frame, seq)
        return tip.run if self.put(tip) else None

    def _put(self, tip: Tip, run: Run, row: bytes) -> bool:
        self._updated_at = max(self._updated_at, run.updated_at)
        values = (
            *(run.id, tip.seq, tip.first, run.number, run.position, run.flow, run.digest, run.tag),
            *(f.encode(run.tags).decode(), run.priority, run.key, run.tenant, run.private, run.status.value),
            *(run.holder, run.not_before, run.finished_at, run.updated_at, run.version, run.workflow),
            *(None if run.error is None else run.error.message, row),
        )
        if run.status.terminal:
            self._database.execute(SQL["forget_progress"], (run.id,))
        return self._database.execute(SQL["put"], values).rowcount > 0

    def bury(self, run_id: str, seq: int = 0) -> None:
        """Forgets a run that is gone, for good."""
        self._database.execute(SQL["bury"], (run_id, seq))
        for statement in ("forget", "forget_params", "forget_progress"):
            self._database.execute(SQL[statement], (run_id,))

    def saw(self, worker: str, heartbeat_at: float) -> None:
        """Takes over that a worker was seen."""
        self._database.execute(SQL["seen"], (worker, heartbeat_at))

    def progressed(self, run_id: str, updated_at: float, progress: bytes) -> None:
        """Takes over how far the steps of a run are."""
        self._updated_at = max(self._updated_at, updated_at)
        self._database.execute(SQL["progressed"], (run_id, updated_at, progress))
        self._database.execute(SQL["touch"], (updated_at, run_id))

    # What is read

    def get(self, run_id: str) -> Tip | None:
        """Gives a row, as far as it is known here."""
        rows = self._database.execute(SQL["run"], (run_id,)).fetchall()
        return _tip(rows[0]) if rows else None

    def row(self, run_id: str) -> Run | None:
        """Gives the row of a run, as far as it is known here."""
        tip = self.get(run_id)
        return None if tip is None else tip.run

    def position(self, run_id: str) -> int:
        """Tells how far a run is known to have come."""
        found = self._database.execute(SQL["position"], (run_id,)).fetchone()
        return found[0] if found else 0

    def candidates(
        self, tags: Sequence[str], flows: Collection[str] | None, now: float, dead: frozenset[str], limit: int
    ) -> list[Candidate]:
        """Finds the runs that may be claimed, by priority, then age."""
        found: set[Candidate] = set()
        named = None if flows is None else msgspec.json.encode(list(flows)).decode()
        values = {"now": now, "version": f.VERSION, "flows": named, "limit": limit}
        for tag in tags:
            for priority, number, run_id, of, flow, waits in self._database.execute(
                SQL["waiting"], {**values, "tag": tag}
            ):
                found.add(Candidate(-priority, number, run_id, Group(of, priority, flow), bool(waits)))
        for holder in dead:
            for priority, number, run_id, of, flow in self._database.execute(
                SQL["orphaned"], {**values, "holder": holder}
            ):
                if of in tags:
                    found.add(Candidate(-priority, number, run_id, Group(of, priority, flow), waits=False))
        return sorted(found)[:limit]

    def due(self, now: float) -> float | None:
        """Tells when the next delayed run is due."""
        at: float | None = self._database.execute(SQL["due"], (now,)).fetchone()[0]
        return at

    def held(self, worker: str) -> list[Holding]:
        """Lists what a worker holds."""
        rows = (frames.decode_row(row) for (row,) in self._database.execute(SQL["held"], (worker,)))
        return [Holding(run.id, run.attempt, run.cancel_asked_at is not None) for run in rows]

    def holders(self) -> set[str]:
        """Tells who holds runs."""
        return {holder for (holder,) in self._database.execute(SQL["holders"])}

    def search(self, query: Query) -> list[Tip]:
        """Gives a page of rows, the newest `updated_at` first."""
        values = _values(query)
        leading = next((name for name in _LEADING if values[name] is not None), None)
        statement = SQL[f"list_by_{leading}" if leading else "list"]
        return [_tip(row) for row in self._database.execute(statement, values).fetchall()]

    def counts(self, updated_after: float = 0.0) -> dict[str, int]:
        """Counts the runs by status, those that changed after a time."""
        return dict(self._database.execute(SQL["counts"], (updated_after,)).fetchall())

    def waiting_since(self) -> float | None:
        """Tells since when the run that waits longest has waited."""
        found: float | None = self._database.execute(SQL["waiting_since"]).fetchall()[0][0]
        return found

    def failed(self) -> list[Run]:
        """Lists the runs that failed."""
        return [frames.decode_row(row) for (row,) in self._database.execute(SQL["failed"])]

    def unclaimed(self) -> list[Run]:
        """Lists the shared runs that wait."""
        return [frames.decode_row(row) for (row,) in self._database.execute(SQL["unclaimed"])]

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Tells which of these are runs."""
        return {run_id for (run_id,) in self._database.execute(SQL["known_runs"], (f.encode(run_ids).decode(),))}


def _tip(row: tuple[Any, ...]) -> Tip:
    seq, first, body, holder, updated_at, params, heartbeat_at, progressed_at, progress = row
    run = frames.decode_row(body)
    changed: dict[str, Any] = {}
    if params is not None and run.params == ELSEWHERE:
        changed["params"] = msgspec.Raw(params)
    if holder is not None and heartbeat_at is not None and heartbeat_at > (run.heartbeat_at or 0.0):
        changed["heartbeat_at"] = heartbeat_at
    if progressed_at is not None:
        changed["progress"] = msgspec.Raw(progress)
    if updated_at > run.updated_at:
        changed["updated_at"] = updated_at
    return Tip(seq, first, "", msgspec.structs.replace(run, **changed) if changed else run)


def _values(query: Query) -> dict[str, Any]:
    before, before_id = (_ALWAYS, "") if query.before is None else query.before
    return {
        "statuses": f.encode([Status(status).value for status in query.status]).decode() if query.status else None,
        "flow": query.flow,
        "tag": query.tag,
        "label": query.label,
        "key": query.key,
        "tenant": query.tenant,
        "private": query.private,
        "digest": query.digest,
        "number": query.number,
        "prefix": query.id_prefix or None,
        "workflow": query.workflow or None,
        "text": None if query.text is None else query.text.lower(),
        "holder": query.holder,
        "finished_before": query.finished_before,
        "updated_after": -_ALWAYS if query.updated_after is None else query.updated_after,
        "before": before,
        "before_id": before_id,
        "limit": query.limit,
    }
