"""Gathered pipelines of two and three steps, one of them a map, in shuffled order: `pipelines.py COUNT`.

Chunks are known by their number alone, which is the same in every pipeline.
"""

import asyncio
import sys

from tests.acceptance.flows.calls import called, pause, pause_here, tell
from tsuzuki import flow, task

CHUNKS = 6


@task
async def load(name: str) -> list[str]:
    await pause(0, 0.02)
    called("load", name)
    return [f"{name}{n}" for n in range(CHUNKS)]


@task
async def clean(chunk: str) -> str:
    await pause(0, 0.02)
    called("clean", chunk)
    return chunk.upper()


@task
def join(parts: list[str]) -> str:
    pause_here(0, 0.02)
    called("join", parts[0])
    return "+".join(parts)


async def two_steps(name: str) -> str:
    chunks = await load(name)
    return ",".join(await clean.map(chunks, concurrency=2, key=lambda chunk: chunk[-1]))


async def three_steps(name: str) -> str:
    chunks = await load(name)
    await pause(0, 0.01)
    parts = await clean.map(chunks, concurrency=2, key=lambda chunk: chunk[-1])
    return await join(parts)  # type: ignore[misc, no-any-return] # a sync task, awaited in an async flow


@flow
async def pipelines(count: int) -> list[str]:
    names = [f"p{number}-" for number in range(count)]
    return await asyncio.gather(*((three_steps if n % 2 else two_steps)(name) for n, name in enumerate(names)))


if __name__ == "__main__":
    tell(pipelines.run(count=int(sys.argv[1])).result)
