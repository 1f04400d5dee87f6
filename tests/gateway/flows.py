"""Flows for the tests of the gateway."""

import asyncio
import time
from typing import Any

from tsuzuki import Retry, flow, task
from tsuzuki.flow import Flow


@task
async def load(number: int) -> int:
    return number * 2


@task
async def add(left: int, right: int) -> int:
    return left + right


@task
async def broken(number: int) -> int:
    raise ValueError(f"cannot take {number}")


@task
async def picky(number: int) -> int:
    if number % 3 == 0:
        raise ValueError(f"three divides {number}")
    return number


@task
def slow(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


@task
async def waits() -> None:
    await asyncio.sleep(3600)


@flow
async def sums(number: int = 1) -> int:
    return await add(await load(number), await load(number + 1))


@flow
async def fails(number: int = 1) -> int:
    await load(number)
    return await broken(number)


@flow
async def many(count: int = 10) -> int:
    done = await picky.map(range(count), concurrency=4, on_error="collect")
    return len(done.succeeded)


@flow
async def steps_of_50_ms(count: int = 10) -> None:
    for number in range(count):
        await asyncio.sleep(0.05)
        await load(number)


@flow
async def hangs() -> None:
    await waits()


@flow
def sleeps(seconds: float = 0.5) -> str:
    return slow(seconds)


@flow
async def nothing() -> None:
    return None


@flow
async def large(size: int = 300_000) -> int:
    return len(await big(size))


@task
async def big(size: int) -> str:
    return "x" * size


@flow
async def repeats(size: int) -> str:
    return "x" * size


TRIED: list[int] = []


@task(retry=Retry(attempts=3, backoff=0.001))
async def stubborn() -> int:
    TRIED.append(1)
    if len(TRIED) % 3:
        raise ValueError("not yet")
    return len(TRIED)


@flow
async def tries() -> int:
    return await stubborn()


FLOWS: list[Flow[..., Any]] = [sums, fails, many, steps_of_50_ms, hangs, sleeps, nothing, large, repeats, tries]
