"""The flows that the worker script knows. Files named `go…` in the folder let those go on that wait for one."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.acceptance.flows.calls import called, pause
from tsuzuki import Later, current, flow, task
from tsuzuki.flow import Flow

GATE = 20
"""The items of `walk` from this one on wait for the file `go`."""


@task
async def part(of: tuple[int, int]) -> str:
    called("part", f"{of[0]}:{of[1]}")
    await pause(0.003, 0.003)
    return f"{of[0]}:{of[1]}"


@task
def whole(parts: list[str]) -> str:
    time.sleep(0.002)
    called("whole", parts[0].partition(":")[0])
    return " ".join(parts)


@flow
async def small(number: int) -> str:
    return await whole(await part.map([(number, n) for n in range(4)], key=lambda of: of[1], concurrency=2))  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow


def wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.005)


@task
def sign(number: int) -> int:
    called("sign", os.getpid())
    wait_for("go")
    called("signed", os.getpid())
    return os.getpid()


@flow
def signed(number: int) -> int:
    return sign(number)


@task
def end_it_all() -> None:
    called("end", os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)


@flow
def deadly() -> None:
    end_it_all()


@task
async def long(number: int) -> int:
    called("long", number)
    if number < 3:
        return number
    await asyncio.sleep(3600)
    return number


@flow
async def patient(items: int) -> list[int]:
    return await long.map(range(items), concurrency=5)


@task
def attentive(number: int) -> str:
    called("attentive", number)
    while not current().cancelled:
        time.sleep(0.005)
    return f"{number} saw it"


@flow
def watchful(items: int) -> list[str]:
    return attentive.map(range(items), concurrency=4)


@task
def deaf(number: int) -> int:
    called("deaf", number)
    wait_for(f"go-{number}")
    return number


@flow
async def stubborn(items: int) -> list[int]:
    return await deaf.map(range(items), concurrency=items)


@flow
def hasty() -> str:
    called("hasty", "flow")
    wait_for("go")
    return "returned whatever was asked"


async def let_go(file: str) -> None:
    while not Path(file).exists():
        await asyncio.sleep(0.005)


@task
async def step(number: int) -> int:
    called("step", number)
    if number >= GATE:
        await let_go("go")
    await asyncio.sleep(0.01)
    return number


@flow
async def walk(items: int) -> list[int]:
    """Does the items before the gate, and waits there for the file `go`."""
    return await step.map(range(items), concurrency=4)


@task
async def ask_again(number: int) -> int:
    called("ask", number)
    if not Path("go").exists():
        raise Later(3)
    return number


@flow
async def waiting(number: int) -> int:
    return await ask_again(number)


@task
async def grind(seconds: float) -> float:
    called("grind", os.getpid())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
    return seconds


@flow
async def busy(seconds: float) -> float:
    """Computes for so long without an await."""
    return await grind(seconds)


@task
async def text(number: int) -> str:
    called("text", number)
    return f"{number} " * 100


@task
async def gate() -> str:
    called("gate", os.getpid())
    await let_go("go")
    return "open"


@flow
async def wide(count: int) -> int:
    """Makes so many calls at once, and waits for the file `go`."""
    texts = await asyncio.gather(*(text(number) for number in range(count)))
    await gate()
    return sum(map(len, texts))


@task
async def weigh(size: int) -> str:
    called("weigh", size)
    await let_go("go")
    return "x" * size


@flow
async def heavy(size: int) -> int:
    """Has a result that is too large for a fact, once there is the file `go`."""
    return len(await weigh(size))


FLOWS: list[Flow[..., Any]] = [
    *(small, signed, deadly, patient, watchful, stubborn, hasty),
    *(walk, waiting, busy, wide, heavy),
]
