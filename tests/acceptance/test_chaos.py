"""A process that is killed again and again finishes as if nothing had happened."""

import json
import random
import time
from pathlib import Path

from tests.acceptance.invariants import (
    Named,
    by_key,
    calls_in,
    check_disturbed,
    in_a_library,
    in_a_pipeline,
    only_run,
)
from tests.acceptance.processes import PATIENCE, Child, finished, started
from tsuzuki import Runs


async def test_chaos_does_no_harm_to_a_thousand_items(tmp_path: Path, chaos_kills: int) -> None:
    items = max(1000, 50 * chaos_kills)
    await _chaos(
        tmp_path,
        "thousand",
        items,
        calls=items,
        kills=chaos_kills,
        concurrency=16,
        named=by_key,
    )


async def test_chaos_does_no_harm_to_nested_maps(tmp_path: Path, chaos_kills: int) -> None:
    kills = max(1, chaos_kills // 3)
    books = max(40, 8 * kills)
    await _chaos(tmp_path, "nested", books, calls=books * 8, kills=kills, concurrency=8 * 4, named=in_a_library)


async def test_chaos_does_no_harm_to_gathered_pipelines_in_any_order(tmp_path: Path, chaos_kills: int) -> None:
    kills = max(1, chaos_kills // 3)
    count = max(40, 10 * kills)
    await _chaos(
        tmp_path, "pipelines", count, calls=count * 15 // 2, kills=kills, concurrency=count * 2, named=in_a_pipeline
    )


async def _chaos(
    folder: Path, script: str, size: int, *, calls: int, kills: int, concurrency: int, named: Named
) -> None:
    disturbed, undisturbed = folder / "disturbed", folder / "undisturbed"
    disturbed.mkdir()
    undisturbed.mkdir()
    expected = json.loads(finished(script, size, folder=undisturbed))
    assert len(calls_in(undisturbed)) == calls

    for left in range(kills, 0, -1):
        _kill_one(disturbed, script, size, (calls - _progress(disturbed)) / (left + 1))
    assert json.loads(finished(script, size, folder=disturbed)) == expected

    async with Runs.open(data_dir=str(disturbed / ".tsuzuki")) as runs:
        await check_disturbed(
            runs, await only_run(runs), disturbed, undisturbed, at_most=kills * concurrency, named=named
        )


def _kill_one(folder: Path, script: str, size: int, share: float) -> None:
    """Starts the script and kills it at a random moment: mostly after some progress, at times while it starts."""
    with started(script, size, folder=folder) as child:
        if random.random() < 0.15:
            time.sleep(random.uniform(0.05, 0.3))
        else:
            _wait_for_progress(child, folder, _size(folder) + 10 * int(random.uniform(0, share)))
            time.sleep(random.uniform(0, 0.003))
        assert child.running(), f"it ended before it was killed often enough: {child.complained}"
        child.kill()


def _wait_for_progress(child: Child, folder: Path, size: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while _size(folder) <= size and child.running():
        assert time.monotonic() < deadline, "it makes no progress"
        time.sleep(0.0005)


def _size(folder: Path) -> int:
    file = folder / "calls"
    return file.stat().st_size if file.exists() else 0


def _progress(folder: Path) -> int:
    return len({call for _, call in calls_in(folder)})
