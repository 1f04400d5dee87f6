"""Whatever happens to a run, in whatever order: it stays in the table, and its row is the fold of its journal."""

import asyncio
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tsuzuki import facts as f
from tsuzuki.backends import Claim
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import ClaimLost, KeyHeld, MoveRefused
from tsuzuki.lifecycle import (
    ACTIVE,
    MOVES,
    TERMINAL,
    Run,
    Status,
    claim_facts,
    claimable,
    fold,
    fold_all,
    request_facts,
)
from tsuzuki.testing import FakeClock
from tsuzuki.testing.builders import AT, OOPS, a_run, item, item_failed

MOVERS = st.sampled_from(
    [
        f.Claimed(at=AT, worker="w"),
        f.Released(at=AT),
        f.CancelAsked(at=AT),
        f.CancelSeen(at=AT),
        f.ResumeAsked(at=AT),
        f.RunCompleted(at=AT),
        f.RunFailed(at=AT, error=OOPS),
        f.RunCancelled(at=AT),
        f.StepStarted(at=AT, step="s"),
        f.StepDone(at=AT, step="s"),
        item("a"),
        item_failed("b"),
        f.Unknown(kind="FromTheFuture"),
    ]
)
DEAD = frozenset({"w1", "w2"})


@given(st.lists(MOVERS, max_size=60))
def test_folding_any_facts_never_leaves_the_table(facts: list[f.Fact | f.Unknown]) -> None:
    run = a_run()
    for fact in facts:
        before = run
        try:
            run = fold(run, fact)
        except MoveRefused:
            assert f.kind(fact) not in MOVES[before.status]
            continue
        assert run.status is MOVES[before.status].get(f.kind(fact), before.status)
        assert run.position == before.position + 1
        assert (run.finished_at is not None) == run.status.terminal
        assert (run.holder is None) or run.status in ACTIVE


ACTS = st.sampled_from(["claim", "outcome", "release", "complete", "fail", "settle", "cancel", "cancel dead", "resume"])


@given(st.lists(ACTS, max_size=80))
def test_terminal_facts_are_unique_per_attempt_in_every_legal_life(acts: list[str]) -> None:
    run = fold(a_run(), f.Submitted(at=AT, flow="crawl"))
    journal: list[f.Fact] = []
    ends: list[int] = []
    for number, act in enumerate(acts):
        try:
            facts = legal(run, act, number)
        except MoveRefused:
            continue
        journal += facts
        ended, run = run.status.terminal, fold_all(run, facts)
        if run.status.terminal and not ended:
            ends.append(facts[-1].attempt)
    claims = [fact.attempt for fact in journal if isinstance(fact, f.Claimed)]
    assert len(ends) == len(set(ends)), "one attempt ended twice"
    assert claims == sorted(set(claims)), "two claims share an attempt, or attempts go back"
    assert run.position == len(journal) + 1
    assert run.done == sum(isinstance(fact, f.ItemDone) for fact in journal)


def legal(run: Run, act: str, number: int) -> list[f.Fact]:
    """What the pure rules let happen: a holder writes, others ask, the dead lose their claim."""
    worker = f"w{1 + number % 2}"
    if act == "claim":
        return claim_facts(run, worker, AT) if claimable(run, AT, DEAD) else []
    if act in {"cancel", "cancel dead"}:
        return request_facts(run, f.CancelAsked(at=AT), DEAD if act == "cancel dead" else frozenset())
    if act == "resume":
        return request_facts(run, f.ResumeAsked(at=AT), frozenset())
    if run.holder is None:
        return []
    held: dict[str, f.Fact] = {
        "outcome": item(str(number), attempt=run.attempt),
        "release": f.Released(at=AT, attempt=run.attempt),
        "complete": f.RunCompleted(at=AT, attempt=run.attempt),
        "fail": f.RunFailed(at=AT, attempt=run.attempt, error=OOPS),
        "settle": f.RunCancelled(at=AT, attempt=run.attempt),
    }
    fold(run, held[act])
    return [held[act]]


class Lives(RuleBasedStateMachine):
    """Drives the memory store as workers, crashes and people do, and compares it with the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = FakeClock()
        self.backend = MemoryBackend(self.clock)
        self.runs: dict[str, Run] = {}
        self.claims: list[Claim] = []
        self.dead: set[str] = set()
        self.workers = 0
        self.highest: dict[str, int] = {}

    def teardown(self) -> None:
        self.runner.close()

    def wait(self, awaitable: Any) -> Any:
        async def call() -> Any:
            return await awaitable()

        return self.runner.run(call())

    @initialize()
    def open(self) -> None:
        self.submit(None)

    @rule(key=st.sampled_from([None, "a", "b"]))
    def submit(self, key: str | None) -> None:
        run = a_run(id=f"run-{len(self.runs) + 1}", key=key)  # the same in every replay of Hypothesis
        taken = any(row.key == key and row.status in ACTIVE for row in self.rows()) and key is not None
        try:
            stored = self.wait(lambda: self.backend.submit(run, f.Submitted(at=AT, flow=run.flow)))
        except KeyHeld:
            assert taken
            return
        assert not taken
        self.runs[run.id] = stored

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        self.workers += 1
        worker = f"w{self.workers}"
        claims = self.wait(
            lambda: self.backend.claim(worker, tags=("default",), limit=limit, dead=frozenset(self.dead))
        )
        for claim in claims:
            assert claim.attempt > self.highest.get(claim.run.id, 0), "an attempt was given twice"
            self.highest[claim.run.id] = claim.attempt
        self.claims += claims

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), act=st.sampled_from(["outcome", "release", "complete", "fail", "settle"]))
    def append(self, data: st.DataObject, act: str) -> None:
        claim: Claim = data.draw(st.sampled_from(self.claims))
        row = self.row(claim.run.id)
        holds = (row.holder, row.attempt) == (claim.worker, claim.attempt) and row.status in ACTIVE
        facts: dict[str, f.Fact] = {
            "outcome": item(data.draw(st.sampled_from("abc")), attempt=claim.attempt),
            "release": f.Released(at=AT, attempt=claim.attempt),
            "complete": f.RunCompleted(at=AT, attempt=claim.attempt),
            "fail": f.RunFailed(at=AT, attempt=claim.attempt, error=OOPS),
            "settle": f.RunCancelled(at=AT, attempt=claim.attempt),
        }
        try:
            position = self.wait(lambda: self.backend.append(claim, [facts[act]]))
        except ClaimLost:
            assert not holds
        else:
            assert holds
            assert position == self.row(claim.run.id).position

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        self.dead.add(data.draw(st.sampled_from(self.claims)).worker)

    @rule(data=st.data(), ask=st.sampled_from([f.CancelAsked(at=AT), f.ResumeAsked(at=AT)]), informed=st.booleans())
    def ask(self, data: st.DataObject, ask: f.Fact, informed: bool) -> None:
        run_id = data.draw(st.sampled_from(list(self.runs)))
        before = self.row(run_id)
        dead = frozenset(self.dead) if informed else frozenset()
        try:
            self.wait(lambda: self.backend.ask(run_id, ask, dead=dead))
        except (MoveRefused, KeyHeld):
            assert self.row(run_id) == before

    @rule(seconds=st.floats(-7200, 7200))
    def set_the_clock(self, seconds: float) -> None:
        self.clock.jump(seconds)

    @rule(data=st.data())
    def rebuild(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(list(self.runs)))
        self.wait(lambda: self.backend.rebuild(run_id))

    @invariant()
    def every_row_is_the_fold_of_its_journal(self) -> None:
        for row in self.rows():
            entries = self.wait(lambda run_id=row.id: self.backend.read(run_id, limit=10_000))
            assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
            fresh = a_run(id=row.id, number=row.number, key=row.key)
            folded = fold_all(fresh, (entry.fact for entry in entries))
            assert msgspec.structs.replace(folded, updated_at=row.updated_at) == row

    @invariant()
    def a_key_has_one_active_run(self) -> None:
        held = [row.key for row in self.rows() if row.key is not None and row.status in ACTIVE]
        assert len(held) == len(set(held))

    @invariant()
    def a_run_has_one_holder_while_it_is_executed_and_none_else(self) -> None:
        for row in self.rows():
            assert (row.holder is not None) == (row.status in {Status.RUNNING, Status.CANCELLING})
            assert (row.finished_at is not None) == (row.status in TERMINAL)

    @invariant()
    def updates_are_told_apart(self) -> None:
        times = [row.updated_at for row in self.rows()]
        assert len(times) == len(set(times))

    def rows(self) -> list[Run]:
        return [self.row(run_id) for run_id in self.runs]

    def row(self, run_id: str) -> Run:
        row: Run = self.wait(lambda: self.backend.get(run_id))
        return row


Lives.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLives = Lives.TestCase
