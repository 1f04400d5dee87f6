"""What this process knows of all runs: lists and counts out of a file, and in memory what a worker may claim.

It follows the journal and is never the truth: what it says of a run may be a moment old, and whoever writes is
fenced by the chain. A process sees its own writes at once.

News gather until somebody asks for more than one run; then only the last of each run is written, and all in one
transaction.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import ALWAYS, Holding, Query
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.frames import Frame, Tip
from tsuzuki.backends.nats.kept import Kept
from tsuzuki.backends.nats.recent import LAST, Recent
from tsuzuki.backends.nats.rows import News, Rows, values_of
from tsuzuki.backends.nats.saving import Saving
from tsuzuki.backends.nats.topology import Group
from tsuzuki.backends.nats.work import Candidate
from tsuzuki.clock import Clock
from tsuzuki.lifecycle import CLOCKS_APART, MOST_CLAIMS, Run, Status, choose, claimable, precedence

TICK: Final = 1e-6
"""The least by which `updated_at` grows from one write to the next."""
_SELECTIVE: Final = ("number", "holder", "digest", "workflow", "key", "prefix")
"""The filters that leave few runs, the most selective first."""
FEW: Final = 10_000
"""So many runs of a status or with a label are looked through for a page; of more of them another index may lead."""
MOST_PUNCTUAL: Final = 10_000
MOST_UNSETTLED: Final = 256
"""How many rows gather for what may be claimed: whoever asks next waits for them to be written."""


class Projection:
    """What this process knows of all runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._updated_at = 0.0
        self._given = 0.0
        """The latest `updated_at` that a list may have shown."""
        self._punctual: dict[str, int] = {}
        """Messages that were known before they came, and were later than all that was known then."""
        self._live: Rows | None = None
        self._unsettled: dict[str, News] = {}
        self._tally: Counter[str] | None = None
        self._applied = 0
        self._recent = Recent()
        self.file = Saving(clock)

    def open(self, kept: Kept) -> int:
        """Goes on with a file; gives the sequence up to which it knows the journal."""
        about = self.file.open(kept)
        self._updated_at = max(self._updated_at, about.latest)
        self._applied = max(self._applied, about.seq)
        return self.read_again()

    def read_again(self, *, sparse: bool = False) -> int:
        """Gathers anew for the file; gives the sequence up to which it knows the journal.

        What this process has written itself and heard beside the journal is not waited for.
        """
        about = self.file.kept.about
        self.file.read_again(about, sparse=sparse or not about.seq)
        self._given = 0.0 if sparse else about.latest
        for run_id, tip in self._recent.ours():
            self.file.gather(run_id, News(tip.seq, tip=tip), needed=True)
        for run_id, at in self._recent.touched():
            self.file.touch(run_id, at)
        return about.seq

    def close(self) -> None:
        """Leaves."""
        self.file.close()
        if self._live is not None:
            self._live.close()

    # What is written

    def stamp(self) -> float:
        """Gives the time of a write: later than that of any write known here, whatever the wall clock says."""
        self._updated_at = max(self._clock.now(), self._updated_at + TICK)
        self.file.stamped(self._updated_at)
        return self._updated_at

    def put(self, tip: Tip, *, ours: bool = False) -> None:
        """Takes over a row that was read or, where it is ours, written, unless it is known."""
        if tip.run is not None and self._last(tip.run.id) < tip.seq:
            if tip.run.updated_at > self._given:
                self._given = tip.run.updated_at
                self._punctual[tip.run.id] = tip.seq
                if len(self._punctual) > MOST_PUNCTUAL:
                    self._punctual.clear()  # whoever is forgotten is at worst shown once more
            self._take(tip.run.id, News(tip.seq, tip=tip), tip, tip.run, ours=ours)

    def heard(self, run_id: str, seq: int, frame: Frame) -> bool:
        """Takes over for the file what the journal says, in its order; tells whether it was not heard before."""
        self.file.heard(run_id, News(seq, frame=frame), frame.mark, needed=self._live is None)
        self._put_in_order(run_id, seq, frame)
        fresh = seq > self._applied
        self._applied = max(self._applied, seq)
        return fresh

    def _put_in_order(self, run_id: str, seq: int, frame: Frame) -> None:
        """Lets a message that comes late count as later than all that was shown before it came.

        Its writer said the time before it was written, and may have been cut off since: whoever follows the list asks
        for what is later than what it has seen, and would never learn of it.
        """
        at = frames.updated_at(frame)
        if at is None or self._punctual.get(run_id, 0) > seq:
            return
        if self._punctual.pop(run_id, 0) == seq:
            return
        if at <= self._given:
            at = self._given + TICK
            self.file.touch(run_id, at)
        self._given = at
        self._updated_at = max(self._updated_at, at)
        self.file.stamped(at)

    def follow(self, run_id: str, seq: int, frame: Frame) -> Run | None:
        """Takes over a message of the journal; gives the row where it is news."""
        if self._last(run_id) >= seq:
            return None
        news = self.file.get(run_id)
        if news is None or news.seq != seq:
            news = News(seq, frame=frame)
        tip = news.tip
        if tip is None or tip.run is None:
            self._bury(run_id, seq)
            return None
        self._take(run_id, news, tip, tip.run)
        return tip.run

    def _take(self, run_id: str, news: News, tip: Tip, run: Run, *, ours: bool = False) -> None:
        if self._tally is not None:
            self._recount(tip, run)
        self._updated_at = max(self._updated_at, run.updated_at)
        self.file.stamped(run.updated_at)
        self._recent.take(tip, run, ours=ours)
        self.file.add_params(run)
        self.file.gather(run_id, news, needed=self._live is None)
        if self._live is not None:
            self._unsettled[run_id] = news
            if len(self._unsettled) >= MOST_UNSETTLED:
                self._settle(self._live)

    def _recount(self, tip: Tip, run: Run) -> None:
        """Moves a run from one status to another in what is counted; of one that had ended we do not know it."""
        before = self._recent.status(run.id)
        if not before and tip.seq != tip.first:
            known = self._live.all("known", (run.id,)) if self._live is not None else []
            before = known[0][1] if known else ""
            if not before:
                self._tally = None
                return
        if self._tally is not None:
            self._tally[before] -= 1
            self._tally[run.status.value] += 1

    def _settle(self, live: Rows) -> None:
        """Writes to memory what has gathered of the runs that may be claimed."""
        if not self._unsettled:
            return
        gathered, self._unsettled = self._unsettled, {}
        rows: list[tuple[Any, ...]] = []
        ended: list[tuple[str, int]] = []
        for run_id, news in gathered.items():
            columns = None if news.run is None or news.run.status.terminal else news.columns()
            if columns is None:
                ended.append((run_id, news.seq))
            else:
                rows.append(columns)
        with live.transaction():
            live.put(rows)
            live.forget(ended)

    def _last(self, run_id: str) -> int:
        """Tells which message of a chain is known."""
        if (last := self._recent.last(run_id)) or self._live is None:
            return last
        return int(self._live.one("known", (run_id,)) or 0)

    def bury(self, run_id: str) -> None:
        """Forgets a run that this process has removed, for good."""
        self._bury(run_id, LAST)

    def _bury(self, run_id: str, seq: int) -> None:
        self._recent.bury(run_id)
        self._tally = None
        gone = News(seq)
        self.file.gather(run_id, gone, needed=self._live is None)
        if self._live is not None:
            self._unsettled[run_id] = gone

    def saw(self, worker: str, heartbeat_at: float) -> None:
        """Takes over that a worker was seen."""
        self._recent.saw(worker, heartbeat_at)

    def progressed(self, run_id: str, updated_at: float, progress: bytes) -> None:
        """Takes over how far the steps of a run are."""
        self._updated_at = max(self._updated_at, updated_at)
        self._given = max(self._given, updated_at)
        self._recent.progressed(run_id, updated_at, progress)
        self.file.stamped(updated_at)
        self.file.touch(run_id, updated_at)

    # What is read of one run

    def get(self, run_id: str) -> Tip | None:
        """Gives a row with its progress and the heartbeat of its holder, as far as it is known here."""
        tip = self.tip(run_id)
        return None if tip is None else self._recent.shown(tip)

    def shown(self, tip: Tip) -> Tip:
        """Adds to a row its progress and the heartbeat of its holder."""
        return self._recent.shown(tip)

    def tip(self, run_id: str) -> Tip | None:
        """Gives where a chain is known to end: the row as it was written, where it has just been."""
        if (held := self._recent.held(run_id)) is not None:
            return held
        news = self._unsettled.get(run_id) or self.file.get(run_id)
        if news is not None:
            return self.file.whole(news.tip)
        if self._live is not None and (tip := self._live.tip(run_id)) is not None:
            return tip
        found: Tip | None = None if self.file.behind else self.file.ask("tip", run_id)
        return found

    def row(self, run_id: str) -> Run | None:
        """Gives the row of a run, as far as it is known here."""
        tip = self.get(run_id)
        return None if tip is None else tip.run

    def position(self, run_id: str) -> int:
        """Tells how far a run is known to have come."""
        if recent := self._recent.position(run_id):
            return recent
        if self._live is not None and (found := self._live.one("position", (run_id,))):
            return int(found)
        return 0 if self._recent.gone(run_id) else int(self.file.ask("one", "position", (run_id,)) or 0)

    # What may be claimed

    def _claims(self) -> Rows:
        """Gives what may be claimed and who holds what; a process that claims has it in memory."""
        if self._live is not None:
            self._settle(self._live)
            return self._live
        self.file.save()
        return self.file.kept

    def begin_to_claim(self) -> None:
        """Reads what may be claimed, and who holds what, into memory."""
        if self._live is None:
            self.file.save()
            live = Rows.in_memory()
            with live.transaction():
                live.put(self.file.kept.all("active"))
            self._live = live
            self._count()

    def candidates(
        self,
        tags: Sequence[str],
        flows: Collection[str] | None,
        now: float,
        dead: frozenset[str],
        limit: int,
        *,
        most: int = MOST_CLAIMS,
        workflows: bool = True,
        alone: bool = False,
    ) -> list[Candidate]:
        """Finds the runs that may be claimed: those of dead holders, then by priority and age.

        `most` is how many claims without an outcome end a run, `alone` says that the worker executes nothing.
        """
        self.begin_to_claim()
        rows = self._claims()
        found: set[Candidate] = set()
        named = None if flows is None else msgspec.json.encode(list(flows)).decode()
        values = {"now": now, "version": f.VERSION, "flows": named, "workflows": workflows, "limit": limit}
        values["ahead"] = now + CLOCKS_APART
        for tag in tags:
            for priority, number, run_id, of, flow, waits in rows.all("waiting", {**values, "tag": tag}):
                found.add(Candidate(1, -priority, number, run_id, Group(of, priority, flow), bool(waits)))
        orphans: dict[str, Run] = {}
        for holder in dead:
            for priority, _, run_id, of, flow, row in rows.all("orphaned", {**values, "holder": holder}):
                if of in tags and claimable(run := self._recent.seen(frames.decode_row(row)), now, dead, patient=True):
                    orphans[run_id] = run
                    found.add(Candidate(*precedence(run), run_id, Group(of, priority, flow), waits=False))
        ranked = [(candidate, orphans.get(candidate.id)) for candidate in sorted(found)]
        return choose(ranked, now, alone=alone, most=most)[:limit]

    def due(self, now: float) -> float | None:
        """Tells when the next delayed run is due."""
        if self._live is None:
            return None  # nothing was claimed here yet
        at: float | None = self._claims().one("due", (now,))
        return at

    def held(self, worker: str) -> list[Holding]:
        """Lists what a worker holds."""
        runs = self._claims().runs("held", (worker,))
        return [Holding(run.id, run.attempt, run.cancel_asked_at is not None) for run in runs]

    def holders(self) -> set[str]:
        """Tells who holds runs."""
        return {holder for (holder,) in self._claims().all("holders")}

    # Lists

    def search(self, query: Query) -> list[Tip]:
        """Gives a page of rows, the newest `updated_at` first."""
        values = values_of(query)
        kind = self._kind(query, values)
        rows = self._claims() if self.of_claims(query) else self.file.listable()
        if kind != "list_by_status":
            return [self.shown(tip) for tip in rows.list(kind, values)]
        found = [tip for status in set(query.status) for tip in rows.list(kind, {**values, "status": status})]
        found.sort(key=lambda tip: (tip.run.updated_at, tip.run.id) if tip.run else (0.0, ""), reverse=True)
        return [self.shown(tip) for tip in found[: query.limit]]

    def of_claims(self, query: Query) -> bool:
        """Tells whether a list is answered by what is in memory of the runs that have not ended."""
        return self._live is not None and (_unclaimed(query) or (query.holder is not None and query.number is None))

    def _kind(self, query: Query, values: Mapping[str, Any]) -> str:
        """Says which of the lists a query asks for."""
        if _unclaimed(query):
            return "list_unclaimed"
        leading = next((name for name in _SELECTIVE if values[name] is not None), None)
        leading = leading or ("spent" if query.spent else None)
        if leading is None and query.failures and query.status == (Status.COMPLETED,):
            leading = "failures"
        if leading is None and query.status and self._with_status(query.status) <= FEW:
            leading = "status"
        elif leading is None and query.label is not None:
            leading = "label" if self.file.listable().one("labelled", (query.label, FEW + 1)) <= FEW else None
        given = [name for name in ("flow", "tag") if values[name] is not None]
        leading = leading or "_and_".join(given)
        return f"list_by_{leading}" if leading else "list"

    def _with_status(self, statuses: Collection[Status]) -> int:
        counts = self.counts()
        return sum(counts.get(Status(status).value, 0) for status in set(statuses))

    def counts(self, updated_after: float = 0.0, updated_by: float = ALWAYS) -> dict[str, int]:
        """Counts the runs by status, those that changed after a time, by another."""
        if updated_after or updated_by != ALWAYS:
            rows = self.file.listable()
            since = {s.value: int(rows.one("counts_since", (s.value, updated_after, updated_by))) for s in Status}
            return {status: count for status, count in since.items() if count}
        if self._tally is not None:
            return {status: count for status, count in self._tally.items() if status and count > 0}
        self.file.needed = True
        return self._count()

    def counts_of(self, wanted: Mapping[str, Any]) -> dict[str, int]:
        """Count the runs of a flow, tag or tenant by status, those that changed after a time and by another."""
        ranged = wanted["after"] or wanted["by"] != ALWAYS
        return dict(self.file.listable().all("counts_of_since" if ranged else "counts_of", wanted))

    def counted(self, updated_after: float, updated_by: float = ALWAYS) -> bool:
        """Tells whether a count is known without the file."""
        return self._tally is not None and not updated_after and updated_by == ALWAYS

    def _count(self) -> dict[str, int]:
        """Counts what is in the file; a process that claims goes on counting by itself, if it has heard all of that."""
        counts = self.file.counts()
        if self._live is not None and self.file.kept.about.seq <= self._applied:
            self._tally = Counter(counts)
        return counts

    def waiting_since(self, now: float) -> float | None:
        """Tells since when the run that waits longest could have been claimed."""
        found = self.file.listable().all("waiting_since", (now,))
        return min((since for (since,) in found if since is not None), default=None)

    def failed(self) -> list[Run]:
        """Lists the runs that failed."""
        return self.file.listable().runs("failed")

    def unclaimed(self) -> list[Run]:
        """Lists the shared runs that wait."""
        return self.file.listable().runs("unclaimed")

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Tells which of these are runs."""
        return {run_id for (run_id,) in self.file.listable().all("known_runs", (f.encode(run_ids).decode(),))}

    def intact(self) -> bool:
        """Looks the file over."""
        return self.file.kept.intact()


def _unclaimed(query: Query) -> bool:
    return query.tag is not None and query.private is False and tuple(query.status) == (Status.PENDING,)
