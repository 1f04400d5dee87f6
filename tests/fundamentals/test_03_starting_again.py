"""Whether a start goes on with a run or makes a new one, also beside one that ends or dies just now."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Run, Runs, Status, Worker, flow
from tsuzuki.backends import Backend
from tsuzuki.errors import BadUsage
from tsuzuki.holders import Holders
from tsuzuki.presence import is_gone
from tsuzuki.script import StartOptions, run_here


async def test_a_completed_run_is_started_anew(run: RunFlow) -> None:
    @flow
    async def nothing() -> int:
        return 1

    first, second = await run(nothing), await run(nothing)
    assert first.number < second.number


async def test_fresh_starts_anew(run: RunFlow) -> None:
    @flow
    async def failing() -> int:
        raise RuntimeError("always")

    first = await run(failing)
    second = await run(failing, options=StartOptions(fresh=True))
    third = await run(failing)
    assert first.id != second.id == third.id


async def test_other_params_are_another_run(run: RunFlow) -> None:
    @flow
    async def failing(x: int, y: int = 1) -> int:
        raise RuntimeError("always")

    first, second = await run(failing, x=1), await run(failing, x=2)
    assert first.id != second.id
    assert (await run(failing, y=1, x=1)).id == first.id


class Raced(Runs):
    """Runs where another process is quicker to go on with a run: just before, or just after it may be taken."""

    def __init__(self, runs: Runs, other: Callable[[str], Awaitable[None]], *, before: bool) -> None:
        super().__init__(runs.backend)
        self._other = other
        self._before = before

    async def resume(self, reference: str | int, *, failed: bool = True, by: str = "", share: bool = False) -> Run:
        row = await super().resume(reference, failed=failed, by=by, share=share)
        await self._other(row.id)
        return await super().resume(reference, failed=failed, by=by, share=share) if self._before else row


@pytest.mark.parametrize("before", [True, False])
async def test_a_start_that_comes_too_late_to_go_on_with_a_run_is_one_of_its_own(runs: Runs, before: bool) -> None:
    calls = 0
    going_on, gate = asyncio.Event(), asyncio.Event()

    @flow
    async def failing_once() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no")
        if calls == 2:
            going_on.set()
            await gate.wait()
        return calls

    assert (await run_here(runs, failing_once, {}, signals=False)).status is Status.FAILED
    async with Worker(runs.backend, [failing_once], tags=()) as worker:
        working = set()

        async def other(run_id: str) -> None:
            working.add(asyncio.create_task(worker.carry_out(run_id)))
            await going_on.wait()

        ended = await run_here(Raced(runs, other, before=before), failing_once, {}, signals=False)
        assert (ended.number, ended.result) == (2, 3)
        gate.set()
        [row] = await asyncio.gather(*working)
        assert (row.number, row.status) == (1, Status.COMPLETED)


class Interleaved(Holders):
    """Holders of whom one ends its run, and leaves, while a start looks whether he lives."""

    def __init__(self, backend: Backend, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(backend)
        self._meanwhile = meanwhile

    async def gone(self) -> frozenset[str]:
        holders = await self._backend.workers(holding=True)
        await self._meanwhile()
        return frozenset(record.id for record in holders if is_gone(record, one_machine=True))


async def test_a_start_beside_the_end_of_the_run_before_is_a_new_run(runs: Runs) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    @flow
    async def gated() -> int:
        begun.set()
        await gate.wait()
        return 1

    first = asyncio.create_task(run_here(runs, gated, {}, signals=False))
    await begun.wait()

    async def end_it() -> None:
        gate.set()
        await asyncio.wait({first})

    raced = Runs(runs.backend)
    raced.holders = Interleaved(runs.backend, end_it)
    ended = await run_here(raced, gated, {}, signals=False)
    assert (ended.number, ended.status) == (2, Status.COMPLETED)
    assert (await first).number == 1


class Killed(BaseException):
    """The process is gone."""


async def test_a_run_whose_process_died_as_soon_as_it_was_made_goes_on_at_once(runs: Runs) -> None:
    @flow(key="only")
    async def short() -> int:
        return 1

    made = []

    class Dying(Runs):
        async def submit(self, *args: Any, **kwargs: Any) -> Run:
            made.append(await super().submit(*args, **kwargs))
            raise Killed

    with pytest.raises(Killed):
        await run_here(Dying(runs.backend), short, {}, signals=False)
    assert (made[0].status, made[0].private) == (Status.RUNNING, True)
    ended = await run_here(runs, short, {}, signals=False)
    assert (ended.id, ended.status) == (made[0].id, Status.COMPLETED)


def test_what_to_continue_is_named_and_not_handed_over() -> None:
    @flow
    def nothing() -> int:
        return 1

    with pytest.raises(BadUsage, match=r"run\(continues=…\) is the id or the number of a run, .* not <object"):
        nothing.with_options(continues=object())  # type: ignore[arg-type] # the mistake
