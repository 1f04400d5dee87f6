"""A script whose tasks fork processes: a pool that squares numbers, one that is ended early, one that calls a task."""

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.acceptance.flows.calls import called, pause_here, tell
from tsuzuki import current, flow, task

FORK = multiprocessing.get_context("fork")
POOLS: list[ProcessPoolExecutor] = []
RESULT = "of the child"


def square_of(number: int) -> int:
    return number * number


def pool() -> ProcessPoolExecutor:
    if not POOLS:
        POOLS.append(ProcessPoolExecutor(1, FORK))
    return POOLS[0]


@task
def square(number: int) -> int:
    result = pool().submit(square_of, number).result()
    pause_here(0, 0.002)
    called("square", number)
    return result


@flow
def squares(numbers: int) -> int:
    """Goes on only where nobody takes the children of a killed process for that process."""
    return sum(square.map(range(numbers), concurrency=1))


@task
def told_to_end(number: int) -> int | None:
    del number
    child = FORK.Process(target=time.sleep, args=(600,), daemon=True)
    child.start()
    child.terminate()
    child.join(20)
    code = child.exitcode
    child.kill()
    return code


@flow
def ends(numbers: int) -> list[int | None]:
    return told_to_end.map(range(numbers), concurrency=1)


@task
def plain(number: int) -> int:
    return square_of(number)


def calls_a_task() -> None:
    Path(RESULT).write_text(f"{current().run_id} {plain(3)}")


@task
def lets_a_child_call(number: int) -> str:
    del number
    child = FORK.Process(target=calls_a_task, daemon=True)
    child.start()
    child.join(20)
    child.kill()
    own, result = Path(RESULT).read_text().split()
    assert own == current().run_id
    return result


@flow
def calls(numbers: int) -> list[str]:
    return lets_a_child_call.map(range(numbers), concurrency=1)


if __name__ == "__main__":
    tell(globals()[sys.argv[1]].run(numbers=int(sys.argv[2])).result)
