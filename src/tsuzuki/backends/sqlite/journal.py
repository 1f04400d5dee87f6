"""What the holder of a run writes: its facts, fenced, in order, the first write of an outcome winning.

The rules are those of `lifecycle`; here they are fenced, stored and put in order. Whatever refuses a job
does so before the job has written anything, since the transaction goes on with the others.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki import settled as futures
from tsuzuki.backends import Claim, claim_lost, dead_letter
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import (
    Columns,
    fact_columns,
    folded,
    run_from,
    spent_from,
    spent_text,
    text,
)
from tsuzuki.backends.sqlite.writer import REFUSALS, Job, Settled, Transaction, Writer
from tsuzuki.lifecycle import Run, fold_all, holder_facts, only_outcomes, stamp
from tsuzuki.spending import added

FAR: Final = 10_000
"""Numbers further apart are not stamped by their distance: a microsecond each, that would be in the future."""
SMALL: Final = 4096
"""Runs with larger results end each by itself: to write these as JSON, for one statement, would take longer."""


class Errand:
    """A job of its own: a function of the transaction."""

    __slots__ = ("future", "heavy", "work")

    def __init__(self, work: Callable[[Transaction], Any], future: asyncio.Future[Any], *, heavy: bool) -> None:
        self.work, self.future, self.heavy = work, future, heavy


class Append(msgspec.Struct, eq=False):
    """A batch of facts of a holder."""

    claim: Claim
    facts: Sequence[f.Fact]
    columns: Sequence[Columns]
    only_outcomes: bool
    future: asyncio.Future[Any]
    first: bool
    """Whether nothing was appended under this claim before: its row is known."""
    end: int
    """Where the journal ended, when it was last seen, or 0."""
    heavy: bool = False

    def drop_recorded(self, transaction: Transaction, number: int) -> None:
        """Leaves out the outcomes that are there already: the first write wins, inside one batch too."""
        fresh: list[tuple[f.Fact, Columns]] = []
        seen: set[Columns] = set()
        for fact, columns in zip(self.facts, self.columns, strict=True):
            identity = columns[1:4]
            if columns[0] in f.OUTCOMES:
                if identity in seen or transaction.execute(SQL["outcome"], (number, *identity)).fetchall():
                    continue
                seen.add(identity)
            fresh.append((fact, columns))
        self.facts, self.columns = [fact for fact, _ in fresh], [columns for _, columns in fresh]


class Holders:
    """Brings what holders append to the writer, and remembers where they have left their journals."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._ends: dict[tuple[str, str, int], int] = {}
        """Where the journals ended of the claims under which something was appended; 0 where that is not known yet."""

    def append(self, claim: Claim, facts: Sequence[f.Fact], *, alone: bool) -> asyncio.Future[int]:
        """Writes facts; where the holder is alone, at once."""
        future = futures.Settled(loop=self._loop)
        name = (claim.worker, claim.run.id, claim.attempt)
        try:
            columns = [fact_columns(fact) for fact in facts]
        except Exception as error:  # noqa: BLE001 - what cannot be written down belongs to whoever waits for it
            future.set_exception(error)
            return future
        end = self._ends.get(name)
        known = claim.run.position if end is None else end
        job = Append(claim, facts, columns, only_outcomes(facts), future, end is None, known)
        if job.only_outcomes:
            self._ends[name] = 0
        elif not job.first:
            del self._ends[name]
        self._writer.put(job, alone=alone and len(self._ends) == 1)
        if job.only_outcomes and future.done() and future.exception() is None:
            self._ends[name] = future.result()
        return future

    def forget_lost(self, worker: str, held: Collection[tuple[str, int]]) -> None:
        """Forgets the journals that a worker does not hold any more: nobody would be alone again."""
        for name in [name for name in self._ends if name[0] == worker and name[1:] not in held]:
            del self._ends[name]


def perform(transaction: Transaction, jobs: Sequence[Job]) -> list[Settled]:
    """Does the jobs of a group in their order; runs that did nothing but complete are ended after them, together."""
    settled: list[Settled] = []
    completed: list[Append] = []
    for job in jobs:
        try:
            if not isinstance(job, Append):
                assert isinstance(job, Errand)  # noqa: S101 - there are two kinds of jobs
                answer = job.work(transaction)
            elif job.only_outcomes:
                answer = append_outcomes(transaction, job)
            elif job.first and not transaction.careful and _only_completed(job.facts):
                completed.append(job)
                continue
            else:
                answer = append_moves(transaction, job)
        except REFUSALS as refusal:
            settled.append((job, None, refusal))
        else:
            settled.append((job, answer, None))
    if completed:
        _complete(transaction, completed, settled)
    return settled


# The journal


def append_outcomes(transaction: Transaction, batch: Append) -> int:
    """Appends facts that cannot change the status; gives the last position. An outcome twice is an IntegrityError.

    The journal of a step ends where its holder has left it, unless somebody asked for something meanwhile; only then
    it is looked up. To update takes 4 µs, a look 2 more; `RETURNING` the position 5 more, since SQLite keeps what it
    returns in a table.
    """
    claim, number = batch.claim, batch.claim.run.number
    if transaction.careful:
        batch.drop_recorded(transaction, number)
    position, count, tally = batch.end, len(batch.facts), f.tally(batch.facts)
    counted = (count, tally.done, tally.failed, tally.skipped, tally.steps, tally.outcomes, transaction.stamp())
    values = (*counted, number, claim.worker, claim.attempt)
    if not (position and transaction.execute(SQL["count_outcomes"], (*values, position)).rowcount):
        position = _end_of(transaction, claim)
        transaction.execute(SQL["count_outcomes"], (*values, position))
    if tally.spent:
        _spend(transaction, number, tally.spent)
    insert(transaction, number, position, batch.columns)
    transaction.runs.add(claim.run.id)
    return position + count


def _end_of(transaction: Transaction, claim: Claim) -> int:
    found = transaction.execute(SQL["fenced"], (claim.run.number, claim.worker, claim.attempt)).fetchall()
    if not found:
        raise claim_lost(claim)
    position: int = found[0][0]
    return position


def _spend(transaction: Transaction, number: int, spent: tuple[f.Spent, ...]) -> None:
    [(before,)] = transaction.execute(SQL["spent"], (number,)).fetchall()
    transaction.execute(SQL["spend"], (spent_text(added((*spent_from(before), *spent))), number))


def append_moves(transaction: Transaction, batch: Append) -> int:
    """Appends facts of which some change the status; gives the last position."""
    claim = batch.claim
    if transaction.careful:
        batch.drop_recorded(transaction, claim.run.number)
    run = read_run(transaction, claim.run.id)
    if run is None or (run.holder, run.attempt) != (claim.worker, claim.attempt):
        raise claim_lost(claim)
    return write(transaction, run, holder_facts(run, batch.facts)).position


class NotAsClaimed(Exception):
    """A run has changed since it was claimed, so that its end must be folded from its row: each job by itself."""


def _only_completed(facts: Sequence[f.Fact]) -> bool:
    if len(facts) != 1 or type(fact := facts[0]) is not f.RunCompleted:
        return False
    return not fact.blob and len(fact.result) <= SMALL


def _complete(transaction: Transaction, batches: Sequence[Append], settled: list[Settled]) -> None:
    """Ends runs that did nothing but complete, all that are alike together; if one of them is not as it was, none."""
    alike: dict[tuple[Any, ...], list[Append]] = {}
    for batch in batches:
        claim, run = batch.claim, batch.claim.run
        common = (claim.worker, claim.attempt, run.position, stamp(batch.facts[0].at), run.number // FAR)
        alike.setdefault(common, []).append(batch)
    for (worker, attempt, position, finished_at, _), some in alike.items():
        end = {"holder": worker, "attempt": attempt, "position": position + 1, "finished_at": finished_at}
        _complete_alike(transaction, some, end)
        settled += [(batch, position + 1, None) for batch in some]
    transaction.rings = True


def _complete_alike(transaction: Transaction, batches: Sequence[Append], end: dict[str, Any]) -> None:
    results, facts = {}, {}
    for batch in batches:
        number, fact = batch.claim.run.number, batch.facts[0]
        assert isinstance(fact, f.RunCompleted)  # noqa: S101 - `_only_completed` has looked
        results[number], facts[number] = str(fact.result, "utf-8"), batch.columns[0][-1]
        transaction.runs.add(batch.claim.run.id)
    lowest, highest = min(facts), max(facts)
    first = transaction.stamps(highest - lowest + 1)
    end |= {"first": first, "lowest": lowest, "results": text(results), "facts": text(facts)}
    if transaction.execute(SQL["complete_runs"], end).rowcount != len(batches):
        raise NotAsClaimed
    transaction.execute(SQL["insert_completed"], end)
    for run in (batch.claim.run for batch in batches if batch.claim.run.tags):
        transaction.execute(SQL["move_labels"], (first + 1e-6 * (run.number - lowest), run.number))


def write(transaction: Transaction, run: Run, facts: Sequence[f.Fact], columns: Sequence[Columns] = ()) -> Run:
    """Folds facts into a row and writes both; gives the row."""
    row = msgspec.structs.replace(fold_all(run, facts), updated_at=transaction.stamp())
    transaction.execute(SQL["write_run"], (*folded(row), run.number))
    _follow(transaction, run, row.updated_at, facts, columns or [fact_columns(fact) for fact in facts])
    transaction.rings |= row.holder is None  # it waits or has ended: somebody may claim it, or was waiting for it
    transaction.work |= row.holder is None and not row.status.terminal
    return row


def _follow(
    transaction: Transaction, run: Run, updated_at: float, facts: Sequence[f.Fact], columns: Sequence[Columns]
) -> None:
    """Writes what follows from a new row: its facts, its labels, its dead letter, and whom it concerns."""
    insert(transaction, run.number, run.position, columns)
    if run.tags:
        transaction.execute(SQL["move_labels"], (updated_at, run.number))
    for fact in facts:
        if isinstance(fact, f.RunFailed):
            transaction.execute(SQL["insert_dead_letter"], (text(dead_letter(run, fact)),))
    transaction.runs.add(run.id)


def insert(transaction: Transaction, number: int, position: int, columns: Sequence[Columns]) -> None:
    """Adds facts to a journal, after a position."""
    transaction.facts += [(number, at, *fact) for at, fact in enumerate(columns, position + 1)]


def read_run(transaction: Transaction, run_id: str) -> Run | None:
    """Reads a row inside the transaction."""
    rows = transaction.execute(SQL["run_by_id"], (run_id,)).fetchall()
    return run_from(rows[0]) if rows else None
