"""What is written about a run that nobody holds yet: submissions, claims, requests, and rows folded anew.

The rules are those of `lifecycle`; here they are stored and put in order. Whatever refuses a job does so
before the job has written anything, since the transaction goes on with the others.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Claim, key_held
from tsuzuki.backends.sqlite.journal import FAR, insert, read_run, write
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import (
    entry_from,
    fact_columns,
    folded,
    newly_claimed,
    numbers,
    run_from,
    submitted,
    text,
)
from tsuzuki.backends.sqlite.writer import Transaction
from tsuzuki.errors import Conflict, KeyHeld
from tsuzuki.lifecycle import (
    CLOCKS_APART,
    Run,
    RunUpdateResult,
    choose,
    claim_facts,
    claimable,
    fold,
    fold_all,
    must_be_alone,
    precedence,
    refold,
    request_facts,
)

_ALL: Final = 2**62


def submit(transaction: Transaction, run: Run, facts: Sequence[f.Fact]) -> Run:
    """Accepts a run, or gives the one that its idempotency key made; a run that is not made takes no number."""
    if (first := _instead(transaction, run)) is not None:
        return first
    row = fold_all(msgspec.structs.replace(run, position=0, updated_at=transaction.stamp()), facts)
    inserted = transaction.execute(
        SQL["insert_run"], (*submitted(row, shelf_of(transaction.execute, run)), *folded(row))
    ).fetchall()
    if not inserted:
        raise Conflict(f"run {run.id} is there already; give every run an id of its own")
    number = inserted[0][0]
    transaction.execute(SQL["insert_params"], (number, bytes(run.params).decode()))
    transaction.executemany(SQL["insert_label"], [(label, row.updated_at, number) for label in run.tags])
    insert(transaction, number, 0, [fact_columns(fact) for fact in facts])
    transaction.runs.add(run.id)
    transaction.rings = transaction.work = True
    return msgspec.structs.replace(row, number=number)


def shelf_of(execute: Callable[..., sqlite3.Cursor], run: Run) -> int:
    """Gives the shelf of runs that agree with this one in what lists filter by; makes it for the first of them."""
    alike = (run.flow, run.tag, run.tenant, run.private)
    found = execute(SQL["shelf"], alike).fetchall() or execute(SQL["put_up_shelf"], alike).fetchall()
    number: int = found[0][0]
    return number


def _instead(transaction: Transaction, run: Run) -> Run | None:
    """Gives the run that was made for an idempotency key, and refuses a key that is held; an index would say no."""
    if run.idempotency_key is not None:
        key = (run.tenant, run.idempotency_key)
        if first := transaction.execute(SQL["run_by_idempotency_key"], key).fetchall():
            return run_from(first[0])
    if run.key is not None and (holder := _key_held(transaction, run)):
        raise holder
    return None


def _key_held(transaction: Transaction, run: Run) -> KeyHeld | None:
    found = transaction.execute(SQL["run_holding_key"], (run.tenant, run.key)).fetchall()
    if not found:
        return None
    run_id, number, status = found[0]
    return key_held(run.key, number, status, run_id)


class Wanted(msgspec.Struct, frozen=True):
    """Who asks for which runs, and how many."""

    worker: str
    tags: Sequence[str]
    limit: int
    dead: frozenset[str]
    run_id: str | None
    fingerprints: Mapping[str, str]
    flows: Collection[str] | None
    workflows: bool
    wheels: Mapping[str, str]
    alone: bool


Candidate: TypeAlias = tuple[int, int, str]
"""A run that may be claimed: its urgency, its number, its flow."""


def candidates(execute: Callable[..., sqlite3.Cursor], wanted: Wanted, now: float, limit: int) -> list[Candidate]:
    """Finds runs that may be claimed, those of the dead first, then by priority and age; a list per tag, merged."""
    flows = None if wanted.flows is None else text(list(wanted.flows))
    values = {"now": now, "version": f.VERSION, "flows": flows, "workflows": wanted.workflows, "limit": limit}
    values["ahead"] = now + CLOCKS_APART
    waiting = [row for tag in wanted.tags for row in execute(SQL["waiting"], {**values, "tag": tag}).fetchall()]
    if len(wanted.tags) == 1 and not wanted.dead:
        return waiting
    rows: dict[int, Run] = {}
    for holder in wanted.dead:
        for row in map(run_from, execute(SQL["orphaned"], {**values, "holder": holder})):
            if row.tag in wanted.tags and claimable(row, now, wanted.dead, patient=True):
                rows[row.number] = row
    # Several lists: put in order, each run once.
    ranked = {(1, *candidate) for candidate in waiting} | {(*precedence(row), row.flow) for row in rows.values()}
    found = [(candidate[1:], rows.get(candidate[2])) for candidate in sorted(ranked)]
    return choose(found, now, alone=wanted.alone)[:limit]


def claim(transaction: Transaction, wanted: Wanted) -> list[Claim]:
    """Claims what may be claimed; a run that only kills its workers is ended, and the next one taken instead."""
    if wanted.run_id is not None:
        run = read_run(transaction, wanted.run_id)
        return [] if run is None else _claim_again(transaction, [run], wanted)
    claims: list[Claim] = []
    while (room := wanted.limit - len(claims)) > 0:
        found = candidates(transaction.execute, wanted, transaction.now, room)
        taken = _claim_new(transaction, found, wanted)
        if len(taken) < len(found):
            others = {number for _, number, _ in found} - {claim.run.number for claim in taken}
            rows = transaction.execute(SQL["runs_by_number"], (numbers([*others]),)).fetchall()
            taken += _claim_again(transaction, map(run_from, rows), wanted)
            place = {number: at for at, (_, number, _) in enumerate(found)}
            taken.sort(key=lambda claim: place[claim.run.number])
        claims += taken
        if len(found) < room:
            break
        wanted = msgspec.structs.replace(wanted, alone=wanted.alone and not claims)
    return claims


def _in_order(claim: Claim) -> tuple[int, int]:
    return -claim.run.priority, claim.run.number


def _claim_new(transaction: Transaction, found: Sequence[Candidate], wanted: Wanted) -> list[Claim]:
    """Claims those that nobody has claimed before; they are most, and there is nothing to read or to fold."""
    flows: dict[str, list[int]] = {}
    for _, number, flow in found:
        flows.setdefault(flow, []).append(number)
    claims = [claim for flow, some in flows.items() for claim in _claim_new_of(transaction, flow, some, wanted)]
    if len(flows) > 1:
        claims.sort(key=_in_order)
    return claims


def _claim_new_of(transaction: Transaction, flow: str, some: Sequence[int], wanted: Wanted) -> Iterator[Claim]:
    lowest, highest = min(some), max(some)
    if highest - lowest > FAR:
        return
    now, worker, fingerprint = transaction.now, wanted.worker, wanted.fingerprints.get(flow, "")
    fact = f.Claimed(at=now, attempt=1, worker=worker, fingerprint=fingerprint, wheels=dict(wanted.wheels))
    plain = fold(Run(id="", flow=flow, created_at="", tag=wanted.tags[0], position=1), fact)
    rows = transaction.execute(SQL["new_runs"], {"numbers": numbers(some), "tag": plain.tag}).fetchall()
    first = transaction.stamps(highest - lowest + 1)
    values = {
        "numbers": numbers([row[0] for row in rows]),
        "holder": worker,
        "now": now,
        "started_at": plain.started_at,
        "fingerprint": fingerprint,
        "first": first,
        "lowest": lowest,
        "body": text(fact),
    }
    transaction.execute(SQL["claim_new"], values)
    transaction.execute(SQL["insert_claims"], values)
    for run in newly_claimed(rows, plain, first, lowest):
        transaction.runs.add(run.id)
        if run.tags:
            transaction.execute(SQL["move_labels"], (run.updated_at, run.number))
        yield Claim(run, wanted.worker, 1)


def _claim_again(transaction: Transaction, found: Iterable[Run], wanted: Wanted) -> list[Claim]:
    claims: list[Claim] = []
    for run in found:
        if claimable(run, transaction.now, wanted.dead):
            fingerprint = wanted.fingerprints.get(run.flow, "")
            alone = wanted.alone and (wanted.run_id is not None or must_be_alone(run))
            facts = claim_facts(run, wanted.worker, transaction.now, fingerprint, wheels=wanted.wheels, alone=alone)
            row = write(transaction, run, facts)
            if row.holder == wanted.worker:
                claims.append(Claim(row, wanted.worker, row.attempt, run.fingerprint))
    return claims


def ask(
    transaction: Transaction, run_id: str, fact: f.Fact, dead: frozenset[str]
) -> tuple[RunUpdateResult, Run | None]:
    """Appends the request of somebody who does not hold the run."""
    run = read_run(transaction, run_id)
    if run is None:
        return RunUpdateResult.NOT_FOUND, None
    facts = request_facts(run, fact, dead)
    if not facts:
        return (RunUpdateResult.ALREADY_TERMINAL if run.status.terminal else RunUpdateResult.UPDATED), run
    try:
        row = write(transaction, run, facts)
    except sqlite3.IntegrityError:
        # The row is the first thing that is written: the index refused it, and nothing has changed.
        holder = _key_held(transaction, run)
        if holder is None:
            raise
        raise holder from None
    if run.private and not row.private:
        shared = (shelf_of(transaction.execute, row), row.number)
        transaction.execute(SQL["share_run"], shared)
    transaction.rings = transaction.work = True
    return RunUpdateResult.UPDATED, row


def rebuild(transaction: Transaction, run_id: str) -> Run | None:
    """Folds a journal anew and writes the row; what is shown of the progress stays."""
    transaction.flush()
    run = read_run(transaction, run_id)
    if run is None:
        return None
    entries = (entry_from(row) for row in transaction.execute(SQL["facts"], (run_id, 0, _ALL)))
    row = refold(run, (entry.fact for entry in entries))
    row = msgspec.structs.replace(row, updated_at=transaction.stamp())
    transaction.execute(SQL["write_run"], (*folded(row), run.number))
    if run.tags:
        transaction.execute(SQL["move_labels"], (row.updated_at, run.number))
    transaction.runs.add(run_id)
    return row
