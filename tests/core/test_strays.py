"""Runs that nobody would ever take: held by a worker that does not know of it, or of a flow that nobody knows."""

import pytest

from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.presence import Watch, this_host
from tsuzuki.strays import PATIENCE, Look, Unattended
from tsuzuki.testing import builders as b

ONE, TWO = ("one", 1), ("two", 1)


def test_a_claim_that_got_lost_on_its_way_is_found_after_a_while() -> None:
    unattended = Unattended()
    assert unattended.look({ONE, TWO}, {TWO}, 0.0) == set()
    assert unattended.look({ONE, TWO}, {TWO}, PATIENCE) == {"one"}


def test_a_claim_that_arrives_is_not_lost() -> None:
    unattended = Unattended()
    unattended.look({ONE}, set(), 0.0)
    unattended.look({ONE}, {ONE}, 1.0)
    assert unattended.look({ONE}, set(), PATIENCE) == set(), "its end is on its way to the store"


def test_another_attempt_is_another_claim() -> None:
    unattended = Unattended()
    unattended.look({ONE}, set(), 0.0)
    assert unattended.look({("one", 2)}, set(), PATIENCE) == set()


@pytest.mark.parametrize(
    ("another", "lost"),
    [
        ({"flows": ("other",)}, True),
        ({"flows": ("crawl",)}, False),
        ({"resolves": True}, False),
        ({"tags": ("x",)}, True),
    ],
)
async def test_a_run_is_lost_where_no_living_worker_may_know_its_flow(another: dict[str, object], lost: bool) -> None:
    """One that finds flows by a resolver may know any: while it is busy, nobody else fails the run."""
    store = MemoryBackend()
    run = await b.submitted(store, flow="crawl")
    told = {"id": "another", "host": this_host(), "tags": ("default",)} | another
    await store.beat(WorkerRecord(**told))  # type: ignore[arg-type] # as the cases say
    look = Look(store, "worker", ("default",), ("mine",), Watch(30.0, one_machine=True), store.clock)
    assert [row.id for row in await look.strays(frozenset())] == ([run.id] if lost else [])
