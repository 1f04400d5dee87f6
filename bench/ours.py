"""The works, done by Tsuzuki through its public API."""

import asyncio
import random
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, Final

from bench.process import Figures, Stopwatch, peak_mb
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.flow import Flow
from tsuzuki.script import EndedRun, run_here

IN_FLIGHT: Final = 100


@task
async def no_op(item: int) -> int:
    return item


@task
def sync_no_op(item: int) -> int:
    return item


@task
async def short_nap(item: int) -> int:
    await asyncio.sleep(random.uniform(0.005, 0.05))
    return item


@flow
async def steps_flow(count: int) -> int:
    for item in range(count):
        await no_op(item)
    return count


@flow
async def sync_steps_flow(count: int) -> int:
    for item in range(count):
        await sync_no_op(item)  # type: ignore[misc] # in an async flow every call is awaited
    return count


@flow
async def map_flow(count: int, in_flight: int = IN_FLIGHT) -> int:
    return len(await no_op.map(range(count), concurrency=in_flight))


@flow
async def sync_map_flow(count: int) -> int:
    return len(await sync_no_op.map(range(count), concurrency=IN_FLIGHT))


@flow
async def nap_flow(count: int) -> int:
    return len(await short_nap.map(range(count), concurrency=IN_FLIGHT))


@flow
async def million_flow(count: int) -> int:
    counts = await no_op.map(range(count), concurrency=IN_FLIGHT, keep_results=False)
    return counts.succeeded


def address(folder: Path) -> str:
    """Gives the store of a measurement: the one that the file `address` in its folder names, or a SQLite file."""
    named = folder / "address"
    return named.read_text() if named.exists() else f"sqlite:{folder / 'tsuzuki.db'}"


async def ended(folder: Path, work: Flow[..., Any], count: int, **more: int) -> tuple[EndedRun[Any], Figures]:
    """Runs a flow here; the time is that of the whole run, from its submission to its recorded end."""
    async with Runs.open(address(folder)) as runs:
        watch = Stopwatch()
        run = await run_here(runs, work, {"count": count, **more})
        return run, watch.figures(count)


async def warmed_up(work: Flow[..., Any]) -> None:
    """Runs a flow of one item in memory first: what is imported on first use is not the work that is measured."""
    async with Runs.open("memory:") as runs:
        await run_here(runs, work, {"count": 1})


def _whole_run(folder: Path, work: Flow[..., Any], count: int, **more: int) -> Figures:
    asyncio.run(warmed_up(work))
    run, figures = asyncio.run(ended(folder, work, count, **more))
    assert (run.status, run.result) == (Status.COMPLETED, count), run.error
    return {**figures, "mb": peak_mb()}


def steps(folder: Path, count: int) -> Figures:
    return _whole_run(folder, steps_flow, count)


def sync_steps(folder: Path, count: int) -> Figures:
    return _whole_run(folder, sync_steps_flow, count)


def items(folder: Path, count: int, in_flight: int = IN_FLIGHT) -> Figures:
    return _whole_run(folder, map_flow, count, in_flight=in_flight)


def sync_items(folder: Path, count: int) -> Figures:
    return _whole_run(folder, sync_map_flow, count)


def naps(folder: Path, count: int) -> Figures:
    return _whole_run(folder, nap_flow, count)


def million(folder: Path, count: int) -> Figures:
    return _whole_run(folder, million_flow, count)


# Runs


def runs_executed(folder: Path, count: int, concurrency: int) -> Figures:
    """Enqueues runs one call at a time; then one worker executes them until all have ended."""
    executed = 0
    last = asyncio.Event()

    @flow(name="no_op_flow")
    async def no_op_flow(number: int) -> int:
        nonlocal executed
        executed += 1
        if executed == count:
            last.set()
        return number

    async def enqueue(runs: Runs) -> Figures:
        watch = Stopwatch()
        for number in range(count):
            await runs.submit(no_op_flow, {"number": number})
        return watch.figures(count)

    async def execute(runs: Runs) -> Figures:
        async with Worker(runs.backend, [no_op_flow], concurrency=concurrency) as worker:
            watch = Stopwatch()
            working = asyncio.create_task(worker.run())
            await last.wait()
            worker.stop()
            await working  # returns once the last run is recorded
            return watch.figures(count)

    async def work() -> tuple[Figures, Figures]:
        async with Runs.open(address(folder)) as runs:
            figures = await enqueue(runs), await execute(runs)
            assert await runs.backend.counts() == {"COMPLETED": count}
            return figures

    enqueued, executed_all = asyncio.run(work())
    return {"enqueued": enqueued["rate"], **executed_all, "mb": peak_mb()}


def latency(folder: Path, count: int) -> Figures:
    """The time from the call of `submit` to the first line of the flow, with an idle worker in this process."""
    times: list[float] = []
    called = 0.0

    @flow(name="first_line")
    async def first_line() -> None:
        times.append(perf_counter() - called)

    async def submit_each(runs: Runs) -> None:
        nonlocal called
        for _ in range(count):
            called = perf_counter()
            run = await runs.submit(first_line)
            await runs.wait(run.id)
            await asyncio.sleep(0.01)  # idle again

    async def work() -> None:
        async with Runs.open(address(folder)) as runs, Worker(runs.backend, [first_line]) as worker:
            working = asyncio.create_task(worker.run())
            await submit_each(runs)
            worker.stop()
            await working

    asyncio.run(work())
    return {"p50": median(times) * 1000, "p99": quantiles(times, n=100)[98] * 1000}


# Replay

reached: list[float] = []


@flow
async def replayed_flow(count: int) -> int:
    results = await no_op.map(range(count), concurrency=IN_FLIGHT)
    reached.extend((perf_counter(), peak_mb(), process_time()))
    assert len(results) == count
    raise RuntimeError("failed on purpose, so that it can be replayed")


def replay(folder: Path, count: int) -> Figures:
    """Runs the flow in this folder, where it fails after its map; the second time that is a replay."""
    started, cpu = perf_counter(), process_time()
    run, _ = asyncio.run(ended(folder, replayed_flow, count))
    assert run.status is Status.FAILED
    assert run.row.done == count, run.row
    return {"seconds": reached[0] - started, "mb": reached[1], "cpu_s": reached[2] - cpu}
