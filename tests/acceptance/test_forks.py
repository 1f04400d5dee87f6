"""Processes that the code of a task forks: they are no part of the run, and keep nothing that is its own."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.invariants import calls_in, repeated
from tests.acceptance.processes import finished, started, until


@pytest.fixture
def orphans() -> Iterator[list[int]]:
    """Processes that outlive the one that forked them, ended when the test is over."""
    found: list[int] = []
    yield found
    for process in found:
        os.kill(process, signal.SIGKILL)


def children_of(process: int) -> list[int]:
    threads = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


async def test_children_that_outlive_a_killed_process_do_not_make_it_look_alive(
    tmp_path: Path, orphans: list[int]
) -> None:
    with started("forks", "squares", 300, folder=tmp_path) as child:
        await until(lambda: len(calls_in(tmp_path)) > 20, "it is under way")
        orphans += children_of(child.pid)
        assert orphans
        child.kill()
    assert all(Path(f"/proc/{process}").exists() for process in orphans), "they wait for work that never comes"
    assert int(finished("forks", "squares", 300, folder=tmp_path)) == sum(n * n for n in range(300))
    assert repeated(calls_in(tmp_path)) <= 1


def test_a_forked_child_is_ended_by_sigterm_and_the_run_is_not(tmp_path: Path) -> None:
    assert json.loads(finished("forks", "ends", 3, folder=tmp_path)) == [-signal.SIGTERM] * 3


def test_a_task_that_is_called_in_a_forked_child_is_a_plain_call_and_told_of(tmp_path: Path) -> None:
    with started("forks", "calls", 1, folder=tmp_path) as child:
        assert child.ended() == 0, child.complained
        assert json.loads(child.said) == ["9"]
        assert "plain was called in a process that was forked inside a run" in child.complained
