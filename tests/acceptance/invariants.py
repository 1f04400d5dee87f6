"""What must hold of a run's journal whatever happened to the processes that wrote it."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tsuzuki import Run, Runs, Status
from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.testing import builders

Named = Callable[[str, str, Any], str]
"""Says which line of the calls file belongs to a recorded success: from its task, its key and its value."""


def calls_in(folder: Path) -> list[tuple[int, str]]:
    """Gives the calls that were made: the attempt, and the task with its key."""
    file = folder / "calls"
    if not file.exists():
        return []
    lines = file.read_text().splitlines()
    return [(int(attempt), call) for attempt, _, call in (line.partition(" ") for line in lines)]


def repeated(calls: list[tuple[int, str]]) -> int:
    """Counts the calls beyond the first of each."""
    return len(calls) - len({call for _, call in calls})


async def check_journal(backend: Backend, run_id: str) -> list[f.Outcome]:
    """Checks positions, the uniqueness of successes, and that the row is the fold; gives the successes."""
    entries = await builders.journal(backend, run_id)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    successes = [e.fact for e in entries if isinstance(e.fact, f.StepDone | f.ItemDone | f.ItemSkipped)]
    twice = [name for name, times in Counter((s.step, s.key) for s in successes).items() if times > 1]
    assert not twice, f"recorded more than once: {twice}"
    row = await builders.row(backend, run_id)
    assert row.position == len(entries)
    rebuilt = await backend.rebuild(run_id)
    assert rebuilt is not None
    assert _without_times(rebuilt) == _without_times(row)
    return list(successes)


def _without_times(row: Run) -> Run:
    return msgspec.structs.replace(row, updated_at=0.0, heartbeat_at=None)


async def only_run(runs: Runs) -> Run:
    """Gives the one run of a store."""
    [row] = await runs.list()
    return row


def check_nothing_acknowledged_was_called_again(
    calls: list[tuple[int, str]], recorded: Sequence[tuple[str, f.Outcome]]
) -> None:
    """A call whose success was recorded in one attempt is made in no later one."""
    latest: dict[str, int] = {}
    for attempt, call in calls:
        latest[call] = max(latest.get(call, 0), attempt)
    again = [call for call, outcome in recorded if latest.get(call, 0) > outcome.attempt]
    assert not again, f"called again after they had been recorded: {again}"


async def check_disturbed(
    runs: Runs, row: Run, disturbed: Path, undisturbed: Path, *, at_most: int, named: Named
) -> None:
    """A run that was disturbed has done what an undisturbed one does, recorded it once, and repeated little."""
    assert row.status is Status.COMPLETED, row.error
    made = calls_in(disturbed)
    expected = sorted(call for _, call in calls_in(undisturbed))
    assert {call for _, call in made} == set(expected)
    assert repeated(made) <= at_most
    successes = await check_journal(runs.backend, row.id)
    names = await _names(runs, row.id)
    recorded = [
        (named(s.name or names[s.step], s.key, msgspec.json.decode(s.result)), s)
        for s in successes
        if isinstance(s, f.StepDone | f.ItemDone)
    ]
    assert sorted(name for name, _ in recorded) == expected
    check_nothing_acknowledged_was_called_again(made, recorded)


async def _names(runs: Runs, run_id: str) -> dict[str, str]:
    facts = [entry.fact for entry in await builders.journal(runs.backend, run_id)]
    return {fact.step: fact.name for fact in facts if isinstance(fact, f.StepStarted)}


def by_key(task: str, key: str, value: Any) -> str:
    """Names a call of a plain map."""
    return f"{task} {key}"


def in_a_library(task: str, key: str, value: Any) -> str:
    """Names a call of `flows/nested.py`."""
    if task in {"page", "scan"}:
        return f"{task} {value.rstrip('!')}"
    return f"{task} {value.strip('[').partition(':')[0]}"


def in_a_pipeline(task: str, key: str, value: Any) -> str:
    """Names a call of `flows/pipelines.py`."""
    if task == "load":
        return f"load {value[0][:-1]}"
    if task == "clean":
        return f"clean {value.lower()}"
    return f"join {value.partition('+')[0]}"
