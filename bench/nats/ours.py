"""The works on NATS that need worker processes: many runs, and the way from `submit` to a worker elsewhere.

Maps and replays are those of `bench.ours`, on the store that the file `address` names.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import IO, Any, Final

from bench.ours import address
from bench.process import Figures
from tsuzuki import Runs, Worker, flow
from tsuzuki.flow import Flow
from tsuzuki.script import run_here

AT_ONCE: Final = 100
FEW_AT_ONCE: Final = 10
NAP: Final = 0.02
SUBMITTED_AT_ONCE: Final = 32
LOOK: Final = 0.01
"""How often a worker looks whether all runs have ended (seconds): at most so much too long is the time of the work."""
LEAVING: Final = 30
"""How long a worker process may take to leave before it is ended (seconds)."""

executed = 0


def counted(number: int) -> int:
    global executed  # noqa: PLW0603 - a worker process counts what it does
    executed += 1
    return number


@flow
async def no_op_flow(number: int) -> int:
    return counted(number)


@flow
async def nap_flow(number: int) -> int:
    await asyncio.sleep(NAP)
    return counted(number)


@flow
async def first_line(called: float) -> float:
    """Gives how long ago it was submitted: all processes of a machine read the same clock here."""
    return perf_counter() - called


# Worker processes

Process = subprocess.Popen[str]


@contextmanager
def workers(folder: Path, processes: int, runs: int, at_once: int = AT_ONCE) -> Iterator[list[Process]]:
    """Starts worker processes and lets them go together; each leaves when its input is closed, or when we are gone."""
    command = [sys.executable, "-m", "bench.nats.ours", str(folder), str(runs), str(at_once)]
    started: list[Process] = []
    try:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.extend(subprocess.Popen(command, **pipes) for _ in range(processes))
        for process in started:
            heard(process)
        for process in started:
            _pipe(process.stdin).write("go\n")
            _pipe(process.stdin).flush()
        yield started
    finally:
        _dismiss(started)


def heard(process: Process) -> Any:
    """Waits for what a worker process has to say."""
    line = _pipe(process.stdout).readline()
    assert line, "a worker process ended early"
    return json.loads(line)


def _dismiss(started: Sequence[Process]) -> None:
    for process in started:
        _pipe(process.stdin).close()
    for process in started:
        try:
            process.wait(LEAVING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


async def _work(folder: Path, count: int, at_once: int) -> None:
    """Is a worker process: ready, go, and what it saw once all runs of the store had ended."""
    await _warmed_up()
    async with Runs.open(address(folder)) as runs, Worker(runs.backend, FLOWS, concurrency=at_once) as worker:
        await runs.backend.counts()  # from here on it knows what waits
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        began, cpu = perf_counter(), process_time()
        closed = asyncio.create_task(_input_closed())
        working = asyncio.create_task(worker.run())
        while not closed.done() and not await _all_ended(runs, count):
            pass
        print(json.dumps([began, perf_counter(), process_time() - cpu, executed]), flush=True)
        await closed
        worker.stop()
        await working


async def _warmed_up() -> None:
    """Executes a run in memory first: what is imported on first use is not the work that is measured."""
    global executed  # noqa: PLW0603 - it does not count
    async with Runs.open("memory:") as runs:
        await run_here(runs, no_op_flow, {"number": 0})
    executed = 0


async def _all_ended(runs: Runs, count: int) -> bool:
    """Tells whether all runs of the store have ended; while there is work of our own, the store is not asked."""
    before = executed
    await asyncio.sleep(LOOK)
    return executed == before and (await runs.backend.counts()).get("COMPLETED", 0) >= count


async def _input_closed() -> None:
    """Ends when whoever started this process has nothing more to say, or is no more."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    transport.close()


FLOWS: Final = (no_op_flow, nap_flow, first_line)


# Measured


def opened(folder: Path) -> Figures:
    """Opens the store, so that its streams are there."""
    asyncio.run(_submit(folder, no_op_flow, 0))
    return {}


def runs_executed(folder: Path, count: int, processes: int) -> Figures:
    """No-op runs, 100 at once in each worker process."""
    return _executed(folder, no_op_flow, count, processes, AT_ONCE)


def naps_executed(folder: Path, count: int, processes: int) -> Figures:
    """Runs of 20 ms, 10 at once in each worker process, so that neither the workers nor the server are busy."""
    return _executed(folder, nap_flow, count, processes, FEW_AT_ONCE)


def _executed(folder: Path, work: Flow[..., int], count: int, processes: int, at_once: int) -> Figures:
    """Submits runs; then worker processes execute them, from the first go to the end that the last of them saw."""
    enqueued = asyncio.run(_submit(folder, work, count))
    with workers(folder, processes, count, at_once) as started:
        seen = [heard(process) for process in started]
    began, ended, cpus, shares = zip(*seen, strict=True)
    assert sum(shares) == count, f"{sum(shares)} calls of {count} runs"
    figures = {"rate": count / (max(ended) - min(began)), "cpu_us": sum(cpus) / count * 1e6}
    return {**figures, "enqueued": enqueued, "least_share": min(shares) / count}


async def _submit(folder: Path, work: Flow[..., int], count: int) -> float:
    """Submits runs, several calls under way at once; gives their rate."""
    async with Runs.open(address(folder)) as runs:
        numbers = iter(range(count))

        async def lane() -> None:
            for number in numbers:
                await runs.submit(work, {"number": number})

        began = perf_counter()
        await asyncio.gather(*(lane() for _ in range(SUBMITTED_AT_ONCE)))
        return count / (perf_counter() - began)


def latency(folder: Path, count: int) -> Figures:
    """The time from the call of `submit` to the first line of the flow, in a worker process that was idle."""
    with workers(folder, 1, count + 2):
        times = asyncio.run(_latencies(folder, count))
    return {"p50": median(times) * 1000, "p99": quantiles(times, n=100)[98] * 1000}


async def _latencies(folder: Path, count: int) -> list[float]:
    times: list[float] = []
    async with Runs.open(address(folder)) as runs:
        for _ in range(count + 1):
            run = await runs.submit(first_line, {"called": perf_counter()})
            ended = await runs.wait(run.id)
            times.append(float(json.loads(bytes(ended.result or b""))))
            await asyncio.sleep(0.01)  # idle again
    return times[1:]  # the first one pays for what is imported on first use


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
