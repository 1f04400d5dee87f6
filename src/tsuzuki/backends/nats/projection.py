"""The rows of all runs in a SQLite database in memory: lists, counts, and what may be claimed.

It follows the journal and is never the truth: what it says of a run may be a moment old, and whoever writes is
fenced by the chain. A process sees its own writes at once.

Rows gather until somebody asks for more than one run; then only the last one of each run is written. Of two workers
each hears of all that the other does, and needs to know no more of it than what is left to do.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
_LAST: Final = 1 << 63
_SELECTIVE: Final = ("number", "holder", "digest", "workflow", "key", "prefix")
"""The filters that leave few runs, the most selective first."""
FEW: Final = 10_000
"""So many runs of a status or with a label are sorted for a page; of more of them a page is found along an index."""
_UNLISTED: Final = frozenset({"list_unclaimed", "list_by_holder", "list_by_prefix"})
"""The lists that workers ask for all the time; they have indexes of their own."""
MOST_NEWS: Final = 256
"""How many rows gather: whoever asks next waits for them to be written."""


class Projection:
    """What this process knows of all runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.executescript(SQL["schema"])
        self._updated_at = 0.0
        self._news: dict[str, tuple[Tip, Run, bytes | None]] = {}
        self._counts: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._gone: set[str] = set()
        self._progressing: set[str] = set()
        self._lists = False

    def close(self) -> None:
        """Leaves."""
        self._database.close()

    def stamp(self) -> float:
        """Gives the time of a write: later than that of any write known here, whatever the wall clock says."""
        self._updated_at = max(self._clock.now(), self._updated_at + TICK)
        return self._updated_at

    # What is written

    def put(self, tip: Tip) -> None:
        """Takes over a row, unless it is known."""
        if tip.run is not None:
            seq, status = self._known(tip.run.id)
            if seq < tip.seq:
                self._take(tip, tip.run, status)

    def _take(self, tip: Tip, run: Run, before: str, row: bytes | None = None) -> None:
        self._updated_at = max(self._updated_at, run.updated_at)
        self._counts[before] -= 1
        self._counts[run.status.value] += 1
        self._news[run.id] = tip, run, row
        if run.tags and not before:
            self._database.executemany(SQL["label"], [(label, run.id) for label in run.tags])
            self._labels.update(set(run.tags))
        if len(run.params) > frames.LARGE_PARAMS:
            self._database.execute(SQL["keep_params"], (run.id, bytes(run.params)))
        if len(self._news) >= MOST_NEWS:
            self._settle()

    def follow(self, run_id: str, seq: int, frame: Frame) -> Run | None:
        """Takes over a message of the journal; gives the row where it is news."""
        known, status = self._known(run_id)
        if known >= seq:
            return None
        if frame.row is None:
            self.bury(run_id)
            return None
        tip = frames.tip_of(frame, seq)
        if tip.run is not None:
            self._take(tip, tip.run, status, frame.row)
        return tip.run

    def _known(self, run_id: str) -> tuple[int, str]:
        """Tells which message of a chain is known, and its status; nothing can follow on a run that is gone."""
        if run_id in self._gone:
            return _LAST, ""
        if (news := self._news.get(run_id)) is not None:
            return news[0].seq, news[1].status.value
        found: tuple[int, str] | None = self._database.execute(SQL["known"], (run_id,)).fetchone()
        return found or (0, "")

    def _settle(self) -> None:
        """Writes the rows that have gathered."""
        if not self._news:
            return
        news, self._news = self._news, {}
        self._database.execute(SQL["begin"])
        try:
            self._database.executemany(SQL["put"], (_columns(*row) for row in news.values()))
        finally:
            self._database.execute(SQL["commit"])
        for run_id, (_, run, _) in news.items():
            if run_id in self._progressing and run.status.terminal:
                self._forget_progress(run_id)

    def bury(self, run_id: str) -> None:
        """Forgets a run that is gone, for good."""
        self._counts[self._known(run_id)[1]] -= 1
        if (run := self.row(run_id)) is not None:
            self._database.executemany(SQL["forget_label"], [(label, run_id) for label in run.tags])
            self._labels.subtract(set(run.tags))
        self._gone.add(run_id)
        self._news.pop(run_id, None)
        for statement in ("forget", "forget_params"):
            self._database.execute(SQL[statement], (run_id,))
        self._forget_progress(run_id)

    def _forget_progress(self, run_id: str) -> None:
        self._progressing.discard(run_id)
        self._database.execute(SQL["forget_progress"], (run_id,))

    def saw(self, worker: str, heartbeat_at: float) -> None:
        """Takes over that a worker was seen."""
        self._database.execute(SQL["seen"], (worker, heartbeat_at))

    def progressed(self, run_id: str, updated_at: float, progress: bytes) -> None:
        """Takes over how far the steps of a run are."""
        self._settle()  # a row that is written later would take its time back
        self._updated_at = max(self._updated_at, updated_at)
        self._progressing.add(run_id)
        self._database.execute(SQL["progressed"], (run_id, updated_at, progress))
        self._database.execute(SQL["touch"], (updated_at, run_id))

    # What is read

    def get(self, run_id: str) -> Tip | None:
        """Gives a row with its progress and the heartbeat of its holder, as far as it is known here."""
        if run_id in self._news:
            self._settle()
        rows = self._database.execute(SQL["run"], (run_id,)).fetchall()
        return _tip(rows[0]) if rows else None

    def tip(self, run_id: str) -> Tip | None:
        """Gives where a chain is known to end: the row as it was written, where it has just been."""
        news = self._news.get(run_id)
        return self.get(run_id) if news is None else news[0]

    def row(self, run_id: str) -> Run | None:
        """Gives the row of a run, as far as it is known here."""
        tip = self.tip(run_id)
        return None if tip is None else tip.run

    def position(self, run_id: str) -> int:
        """Tells how far a run is known to have come."""
        if (news := self._news.get(run_id)) is not None:
            return news[1].position
        found = self._database.execute(SQL["position"], (run_id,)).fetchone()
        return found[0] if found else 0

    def candidates(
        self,
        tags: Sequence[str],
        flows: Collection[str] | None,
        now: float,
        dead: frozenset[str],
        limit: int,
        *,
        workflows: bool = True,
    ) -> list[Candidate]:
        """Finds the runs that may be claimed, by priority, then age."""
        self._settle()
        found: set[Candidate] = set()
        named = None if flows is None else msgspec.json.encode(list(flows)).decode()
        values = {"now": now, "version": f.VERSION, "flows": named, "workflows": workflows, "limit": limit}
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
        self._settle()
        at: float | None = self._database.execute(SQL["due"], (now,)).fetchone()[0]
        return at

    def held(self, worker: str) -> list[Holding]:
        """Lists what a worker holds."""
        self._settle()
        rows = (frames.decode_row(row) for (row,) in self._database.execute(SQL["held"], (worker,)))
        return [Holding(run.id, run.attempt, run.cancel_asked_at is not None) for run in rows]

    def holders(self) -> set[str]:
        """Tells who holds runs."""
        self._settle()
        return {holder for (holder,) in self._database.execute(SQL["holders"])}

    def search(self, query: Query) -> list[Tip]:
        """Gives a page of rows, the newest `updated_at` first."""
        self._settle()
        values = _values(query)
        kind = self._kind(query, values)
        if kind not in _UNLISTED:
            self._listed()
        return [_tip(row) for row in self._database.execute(SQL[kind], values).fetchall()]

    def _listed(self) -> None:
        """Writes what has gathered, and sees to it that lists have their indexes."""
        self._settle()
        if not self._lists:
            self._database.executescript(SQL["listing"])
            self._lists = True

    def counts(self, updated_after: float = 0.0) -> dict[str, int]:
        """Counts the runs by status, those that changed after a time."""
        if not updated_after:
            return {status: count for status, count in self._counts.items() if count > 0}
        self._listed()
        counts = {
            s.value: self._database.execute(SQL["counts"], (s.value, updated_after)).fetchone()[0] for s in Status
        }
        return {status: count for status, count in counts.items() if count}

    def waiting_since(self, now: float) -> float | None:
        """Tells since when the run that waits longest could have been claimed."""
        self._listed()
        found = self._database.execute(SQL["waiting_since"], (now,)).fetchall()
        return min((since for (since,) in found if since is not None), default=None)

    def _kind(self, query: Query, values: Mapping[str, Any]) -> str:
        """Says which of the lists a query asks for."""
        if query.tag is not None and query.private is False and tuple(query.status) == (Status.PENDING,):
            return "list_unclaimed"
        leading = next((name for name in _SELECTIVE if values[name] is not None), None)
        if leading is None and query.status and sum(self._counts[Status(s).value] for s in set(query.status)) <= FEW:
            leading = "status"
        elif leading is None and query.label is not None and self._labels[query.label] <= FEW:
            leading = "label"
        given = [name for name in ("flow", "tag") if values[name] is not None]
        leading = leading or "_and_".join(given)
        return f"list_by_{leading}" if leading else "list"

    def failed(self) -> list[Run]:
        """Lists the runs that failed."""
        self._settle()
        return [frames.decode_row(row) for (row,) in self._database.execute(SQL["failed"])]

    def unclaimed(self) -> list[Run]:
        """Lists the shared runs that wait."""
        self._settle()
        return [frames.decode_row(row) for (row,) in self._database.execute(SQL["unclaimed"])]

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Tells which of these are runs."""
        self._settle()
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


def _columns(tip: Tip, run: Run, row: bytes | None) -> tuple[Any, ...]:
    return (
        *(run.id, tip.seq, tip.first, run.number, run.position, run.flow, run.digest, run.tag),
        *(f.encode(run.tags).decode(), run.priority, run.key, run.tenant, run.private, run.status.value),
        *(run.holder, run.not_before, run.finished_at, run.updated_at, run.version, run.workflow),
        *(None if run.error is None else run.error.message, row or frames.encode_row(run)),
    )


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
