"""What the tasks of a run are doing, as a fold of its facts."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tsuzuki import facts as f
from tsuzuki.taskfold import MOST_OUTPUT, TaskFold

OOPS = f.Problem("ValueError", "oops", "Traceback …")


def folded(*facts: f.Fact, nodes: tuple[str, ...] = ()) -> TaskFold:
    fold = TaskFold(nodes)
    for position, fact in enumerate([f.Submitted(at=1, flow="x"), f.Claimed(at=2, worker="w"), *facts], start=1):
        fold.feed(position, fact)
    return fold


def started(name: str, **more: Any) -> f.StepStarted:
    return f.StepStarted(at=3, step=f"s-{name}", name=name, **more)


def done(name: str, value: bytes = b"1", **more: Any) -> f.StepDone:
    return f.StepDone(at=5, step=f"s-{name}", name=name, took=1.0, result=msgspec.Raw(value), **more)


def failed(name: str) -> f.StepFailed:
    return f.StepFailed(at=5, step=f"s-{name}", name=name, error=OOPS)


def item(name: str, key: str) -> f.ItemDone:
    return f.ItemDone(at=5, step=f"s-{name}", key=key)


def item_failed(name: str, key: str) -> f.ItemFailed:
    return f.ItemFailed(at=5, step=f"s-{name}", key=key, error=OOPS)


def test_nothing_is_shown_before_the_run_is_claimed() -> None:
    fold = TaskFold(("a",))
    fold.feed(1, f.Submitted(at=1, flow="x"))
    assert fold.states() == {}


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ([started("a")], "RUNNING"),
        ([done("a")], "SUCCEEDED"),
        ([started("a"), done("a")], "SUCCEEDED"),
        ([done("a"), failed("a")], "FAILED"),
        ([started("a"), f.Released(at=6)], "PENDING"),
        ([started("a"), f.Claimed(at=6, worker="v", attempt=2)], "PENDING"),
        ([started("a"), f.RunCancelled(at=6)], "CANCELLED"),
        ([started("a"), f.RunFailed(at=6, error=OOPS)], "CANCELLED"),
        ([failed("a"), f.RunFailed(at=6, error=OOPS)], "FAILED"),
        ([failed("a"), f.RunFailed(at=6, error=OOPS), f.ResumeAsked(at=7)], "PENDING"),
        ([failed("a"), f.RunFailed(at=6, error=OOPS), f.ResumeAsked(at=7, failed=False)], "FAILED"),
        ([started("a", map=True, total=2), item("a", "1")], "RUNNING"),
        ([started("a", map=True, total=2), item("a", "1"), item("a", "2")], "SUCCEEDED"),
        ([started("a", map=True, total=2), item("a", "1"), item_failed("a", "2")], "FAILED"),
        ([started("a", map=True, total=1), item_failed("a", "2"), f.ResumeAsked(at=7), item("a", "2")], "SUCCEEDED"),
        ([started("a", map=True), item("a", "1")], "RUNNING"),
        ([started("a", map=True), item("a", "1"), f.RunCompleted(at=6)], "SUCCEEDED"),
        ([started("a", map=True, total=0)], "SUCCEEDED"),
    ],
)
def test_the_state_of_a_task(facts: list[f.Fact], state: str) -> None:
    assert folded(*facts).states() == {"a": state}


def test_the_tasks_of_a_graph_are_shown_before_they_begin() -> None:
    assert folded(done("a"), failed("b"), nodes=("a", "b", "c")).states() == {
        "a": "SUCCEEDED",
        "b": "FAILED",
        "c": "PENDING",
    }
    assert folded(done("a"), f.RunCancelled(at=9), nodes=("a", "b")).states() == {"a": "SUCCEEDED", "b": "CANCELLED"}


def test_a_record_tells_what_came_of_a_task() -> None:
    record = folded(started("a"), done("a", b'{"x":1}')).records()["a"]
    assert (record["started_at"], record["ended_at"], record["duration_ms"]) == (3, 5, 2000)
    assert (bytes(record["output"]), record["error"], record["done"]) == (b'{"x":1}', None, 1)
    record = folded(failed("a")).records()["a"]
    assert (record["error"], record["traceback"]) == ("ValueError: oops", "Traceback …")


def test_calls_beside_a_map_count_into_the_total() -> None:
    fold = folded(started("a", map=True, total=2), item("a", "1"), item_failed("a", "2"), replace(done("a"), step="t"))
    record = fold.records()["a"]
    assert record["done"] + record["failed"] == record["total"] == 3


def test_the_inputs_of_the_last_call_are_told() -> None:
    fold = folded(done("a", inputs=msgspec.Raw(b'{"n":1}')), done("a", inputs=msgspec.Raw(b'{"n":2}')), done("b"))
    assert [fold.records()[name]["inputs"] for name in "ab"] == [msgspec.Raw(b'{"n":2}'), None]


def test_values_that_are_too_many_are_let_go() -> None:
    fold = folded(done("a", b'"' + b"x" * MOST_OUTPUT + b'"'))
    assert fold.too_large
    assert fold.states() == {"a": "SUCCEEDED"}
    assert fold.weight < MOST_OUTPUT + 10_000


def test_a_million_items_take_no_room() -> None:
    fold = folded(started("a", map=True, total=100_000))
    for number in range(100_000):
        fold.feed(number + 4, item("a", str(number)))
    assert fold.weight < 10_000
    assert fold.states() == {"a": "SUCCEEDED"}


FACTS = st.one_of(
    st.builds(started, st.sampled_from("ab"), map=st.booleans(), total=st.none() | st.integers(0, 3)),
    st.builds(done, st.sampled_from("ab")),
    st.builds(failed, st.sampled_from("ab")),
    st.builds(item, st.sampled_from("ab"), st.sampled_from("xyz")),
    st.builds(item_failed, st.sampled_from("ab"), st.sampled_from("xyz")),
    st.sampled_from(
        [
            f.Claimed(at=6, worker="v", attempt=2),
            f.Released(at=6),
            f.ResumeAsked(at=7),
            f.ResumeAsked(at=7, failed=False),
            f.RunCompleted(at=8),
            f.RunCancelled(at=8),
            f.RunFailed(at=8, error=OOPS),
        ]
    ),
)


@given(st.lists(FACTS, max_size=30))
def test_any_journal_folds_and_the_counters_never_go_below_zero(facts: list[f.Fact]) -> None:
    fold = folded(*facts)
    assert set(fold.states().values()) <= {"PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"}
    assert set(fold.states()) == set(fold.records())
    for record in fold.records().values():
        assert min(record["done"], record["failed"], record["skipped"], record["busy_ms"]) >= 0
    assert msgspec.json.encode(fold.records())
