"""The table of the lifecycle, cell by cell, and what folding and asking make of it."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from tsuzuki import facts as f
from tsuzuki.errors import MoveRefused
from tsuzuki.lifecycle import (
    ACTIVE,
    MOST_CLAIMS,
    MOVES,
    TERMINAL,
    Run,
    RunUpdateResult,
    Status,
    cancel_facts,
    claim_facts,
    claimable,
    counted,
    fold,
    fold_all,
    holder_facts,
    holds_up,
    moment,
    move,
    must_be_alone,
    only_outcomes,
    request_facts,
    resume_facts,
    stamp,
)
from tsuzuki.testing.builders import a_run

AT = 1_750_000_000.0
OOPS = f.Problem("ValueError", "oops")
NOBODY: frozenset[str] = frozenset()

P, R, G, C, F, X = (
    Status.PENDING,
    Status.RUNNING,
    Status.CANCELLING,
    Status.COMPLETED,
    Status.FAILED,
    Status.CANCELLED,
)

# Written anew from the table in the design, so that a change of MOVES is noticed here.
COLUMNS = (
    "Claimed",
    "Released",
    "CancelAsked",
    "CancelSeen",
    "ResumeAsked",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
)
TABLE: dict[Status, tuple[Status | None, ...]] = {
    P: (R, None, G, None, P, None, F, X),
    R: (R, P, G, None, None, C, F, X),
    G: (G, None, G, G, None, C, F, X),
    C: (None, None, None, None, P, None, None, None),
    F: (None, None, None, None, P, None, None, None),
    X: (None, None, None, None, P, None, None, None),
}
CELLS = [
    pytest.param(status, kind, target, id=f"{status}-{kind}")
    for status, row in TABLE.items()
    for kind, target in zip(COLUMNS, row, strict=True)
]
MOVERS: dict[str, f.Fact] = {
    "Claimed": f.Claimed(at=AT, worker="w"),
    "Released": f.Released(at=AT),
    "CancelAsked": f.CancelAsked(at=AT),
    "CancelSeen": f.CancelSeen(at=AT),
    "ResumeAsked": f.ResumeAsked(at=AT),
    "RunCompleted": f.RunCompleted(at=AT),
    "RunFailed": f.RunFailed(at=AT, error=OOPS),
    "RunCancelled": f.RunCancelled(at=AT),
}


@pytest.mark.parametrize(("status", "kind", "target"), CELLS)
def test_the_table_has_exactly_these_moves(status: Status, kind: str, target: Status | None) -> None:
    assert MOVES[status].get(kind) is target
    if target is None:
        with pytest.raises(MoveRefused, match=f"{status}.*{kind}"):
            move(status, kind)
    else:
        assert move(status, kind) is target


@pytest.mark.parametrize(("status", "kind", "target"), CELLS)
def test_folding_follows_the_table(status: Status, kind: str, target: Status | None) -> None:
    run = a_run(status=status, position=7)
    if target is None:
        with pytest.raises(MoveRefused):
            fold(run, MOVERS[kind])
    else:
        after = fold(run, MOVERS[kind])
        assert (after.status, after.position) == (target, 8)


def test_the_table_knows_every_status_and_no_other_fact() -> None:
    assert set(MOVES) == set(Status)
    assert {kind for moves in MOVES.values() for kind in moves} == set(COLUMNS)


def test_a_run_has_ended_in_exactly_three_states() -> None:
    assert {C, F, X} == TERMINAL
    assert {P, R, G} == ACTIVE
    assert [status for status in Status if status.terminal] == [C, F, X]


def test_an_update_has_exactly_three_answers() -> None:
    assert {answer.name: answer.value for answer in RunUpdateResult} == {
        "UPDATED": "updated",
        "NOT_FOUND": "not_found",
        "ALREADY_TERMINAL": "terminal",
    }


def test_statuses_are_written_as_their_names() -> None:
    assert [status.value for status in Status] == [status.name for status in Status]


# Times


def test_a_stamp_is_utc_with_seconds_and_an_offset() -> None:
    assert stamp(0) == "1970-01-01T00:00:00+00:00"
    assert stamp(1_750_000_000.999) == "2025-06-15T15:06:40+00:00"


def test_stamps_sort_as_their_times_do() -> None:
    times = [0.0, 999_999_999.0, 1_000_000_000.0, AT, AT + 1]
    assert sorted(stamp(time) for time in times) == [stamp(time) for time in times]


def test_a_naive_datetime_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"not_before must be timezone-aware"):
        moment(datetime(2025, 6, 15, 12), "not_before")  # noqa: DTZ001 - that is the point


def test_other_offsets_are_converted() -> None:
    tokyo = datetime(2025, 6, 16, 0, 6, 40, tzinfo=timezone(timedelta(hours=9)))
    assert moment(tokyo, "at") == moment(tokyo.astimezone(UTC), "at") == AT
    assert stamp(moment(tokyo, "at")) == "2025-06-15T15:06:40+00:00"


# Folding


def running(**fields: object) -> Run:
    return a_run(status=R, holder="w", position=2, **fields)


def test_a_claim_sets_the_holder_and_keeps_the_first_start() -> None:
    first = fold(a_run(not_before=5.0), f.Claimed(at=AT, worker="w1", fingerprint="v1"))
    second = fold(first, f.Claimed(at=AT + 60, attempt=2, worker="w2"))
    assert (first.holder, first.started_at, first.heartbeat_at, first.not_before) == ("w1", stamp(AT), AT, 0.0)
    assert (second.holder, second.attempt, second.started_at) == ("w2", 2, stamp(AT))
    assert (first.barren, second.barren, second.fingerprint) == (1, 2, "v1")


def test_a_release_frees_the_run_for_the_next_attempt() -> None:
    run = fold(running(barren=3), f.Released(at=AT, not_before=AT + 60))
    assert (run.status, run.holder, run.attempt, run.not_before, run.barren) == (P, None, 2, AT + 60, 0)


def test_handing_back_a_run_that_is_being_cancelled_cancels_it() -> None:
    run = fold(running(), f.CancelAsked(at=AT, by="ann"))
    [fact] = holder_facts(run, [f.Released(at=AT, not_before=AT + 60)])
    run = fold(run, fact)
    assert (run.status, run.holder, run.attempt, run.finished_at) == (X, None, 1, stamp(AT))
    assert run.cancel_asked_by == "ann"


def test_an_outcome_is_counted_and_proves_progress() -> None:
    run = fold(running(barren=3), f.ItemDone(at=AT, step="s", key="k"))
    assert (run.status, run.done, run.barren, run.position) == (R, 1, 0, 3)


def test_a_started_step_proves_nothing() -> None:
    run = fold(running(barren=3), f.StepStarted(at=AT, step="s"))
    assert (run.barren, run.position) == (3, 3)


def test_an_end_frees_the_holder_and_clears_the_progress() -> None:
    run = running(progress=msgspec.Raw(b"[1]"), error=OOPS)
    completed = fold(run, f.RunCompleted(at=AT, result=msgspec.Raw(b"1"), blob="b"))
    failed = fold(run, f.RunFailed(at=AT, error=OOPS))
    cancelled = fold(run, f.RunCancelled(at=AT))
    for ended in (completed, failed, cancelled):
        assert (ended.holder, ended.finished_at, bytes(ended.progress)) == (None, stamp(AT), b"[]")
    assert (completed.result, completed.blob, completed.error) == (msgspec.Raw(b"1"), "b", None)
    assert (failed.error, failed.result) == (OOPS, None)
    assert cancelled.error is None


def test_a_resume_keeps_the_work_and_clears_the_end() -> None:
    ended = fold_all(
        running(done=4, failed=2),
        [f.CancelAsked(at=AT, by="ann", reason="late"), f.RunFailed(at=AT, error=OOPS)],
    )
    run = fold(ended, f.ResumeAsked(at=AT))
    assert (run.status, run.attempt, run.done, run.failed) == (P, 2, 4, 0)
    assert (run.error, run.result, run.finished_at, run.barren) == (None, None, None, 0)
    assert (run.cancel_asked_at, run.cancel_asked_by, run.cancel_reason) == (None, "", "")
    assert fold(ended, f.ResumeAsked(at=AT, failed=False)).failed == 2


def test_an_unknown_fact_marks_the_run_as_one_of_a_newer_version() -> None:
    run = fold(a_run(), f.Unknown(kind="RunPaused"))
    assert (run.status, run.position) == (P, 1)
    assert not claimable(run, AT, NOBODY)


def test_counting_a_batch_is_the_same_as_folding_it() -> None:
    batch: list[f.Fact] = [
        f.ItemDone(at=AT, step="s", key="a"),
        f.ItemFailed(at=AT, step="s", key="b", error=OOPS),
        f.ItemSkipped(at=AT, step="s", key="c"),
        f.StepDone(at=AT, step="t"),
    ]
    folded = fold_all(running(barren=3), batch)
    at_once = counted(running(id=folded.id, barren=3), f.tally(batch))
    assert msgspec.structs.replace(at_once, position=6) == folded


def test_a_batch_without_moves_is_told_from_one_with() -> None:
    outcome = f.ItemDone(at=AT, step="s", key="a")
    assert only_outcomes([outcome, f.StepStarted(at=AT, step="s")])
    for mover in MOVERS.values():
        assert not only_outcomes([outcome, mover])


# Asking


def test_a_waiting_run_is_claimable_when_its_time_has_come() -> None:
    assert claimable(a_run(), AT, NOBODY)
    assert claimable(a_run(not_before=AT), AT, NOBODY)
    assert not claimable(a_run(not_before=AT + 1), AT, NOBODY)


@pytest.mark.parametrize("status", [R, G])
def test_a_held_run_is_claimable_when_its_holder_is_dead(status: Status) -> None:
    run = a_run(status=status, holder="w")
    assert not claimable(run, AT, frozenset({"other"}))
    assert claimable(run, AT, frozenset({"w"}))


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_an_ended_run_is_never_claimable(status: Status) -> None:
    assert not claimable(a_run(status=status), AT, frozenset({"w"}))


def test_a_claim_takes_a_new_attempt_from_a_dead_holder_only() -> None:
    assert claim_facts(a_run(attempt=3), "w", AT, "v1") == [
        f.Claimed(at=AT, attempt=3, worker="w", fingerprint="v1"),
    ]
    assert claim_facts(running(attempt=3), "w2", AT) == [f.Claimed(at=AT, attempt=4, worker="w2")]


def test_a_run_that_kills_its_workers_is_failed_instead_of_claimed() -> None:
    assert isinstance(claim_facts(running(barren=4), "w", AT)[0], f.Claimed)
    (fact,) = claim_facts(running(barren=5, attempt=20), "w", AT)
    assert isinstance(fact, f.RunFailed)
    assert (fact.reason, fact.attempt) == ("max_claims", 21)
    assert isinstance(claim_facts(running(barren=3), "w", AT, most=3)[0], f.RunFailed), "a lower limit is kept"


def test_a_private_run_endangers_no_other_and_has_more_claims() -> None:
    assert isinstance(claim_facts(running(private=True, barren=MOST_CLAIMS - 1), "w", AT)[0], f.Claimed)
    (fact,) = claim_facts(running(private=True, barren=MOST_CLAIMS), "w", AT)
    assert isinstance(fact, f.RunFailed)
    assert not must_be_alone(running(private=True, barren=2))


def test_only_claims_alone_count_after_the_second() -> None:
    run = running(barren=1)
    for alone, barren in ((False, 2), (False, 2), (True, 3), (False, 3), (True, 4)):
        run = fold(run, f.Claimed(at=AT, worker="w", alone=alone))
        assert run.barren == barren


def test_a_suspect_holds_up_busy_workers_half_of_the_time_and_for_longer_each_time() -> None:
    run = running(heartbeat_at=AT)
    held_up = [second for second in range(70) if holds_up(run, AT + second)]
    assert held_up == [*range(2), *range(4, 8), *range(16, 32), *range(64, 70)]
    assert holds_up(run, AT - 3600), "the clock was set back"


def test_a_cancel_is_settled_at_once_where_nobody_lives_to_see_it() -> None:
    ask = f.CancelAsked(at=AT, by="ann")
    settled = [ask, f.RunCancelled(at=AT, attempt=1)]
    assert cancel_facts(a_run(), ask, NOBODY) == settled
    assert cancel_facts(running(), ask, frozenset({"w"})) == settled
    assert cancel_facts(running(), ask, NOBODY) == [ask]
    assert cancel_facts(a_run(status=G, holder="w"), ask, NOBODY) == []
    for status in TERMINAL:
        assert cancel_facts(a_run(status=status), ask, NOBODY) == []


def test_what_cannot_be_resumed_is_refused_with_the_reason() -> None:
    ask = f.ResumeAsked(at=AT)
    for status in ACTIVE:
        with pytest.raises(MoveRefused, match=f"run 7 is {status}: it goes on by itself"):
            resume_facts(a_run(status=status, number=7), ask, frozenset())
    with pytest.raises(MoveRefused, match="no failed item"):
        resume_facts(a_run(status=C), ask, frozenset())
    with pytest.raises(MoveRefused, match="no failed item"):
        resume_facts(a_run(status=C, failed=1), f.ResumeAsked(at=AT, failed=False), frozenset())
    for run in (a_run(status=C, failed=1), a_run(status=F), a_run(status=X)):
        assert resume_facts(run, ask, frozenset()) == [ask]


@pytest.mark.parametrize("kind", sorted(set(MOVERS) - {"CancelAsked", "ResumeAsked"}))
def test_only_cancel_and_resume_can_be_asked_for(kind: str) -> None:
    with pytest.raises(MoveRefused, match=kind):
        request_facts(running(), MOVERS[kind], NOBODY)
