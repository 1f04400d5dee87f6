"""The sample that `tsuzuki up` registers: something slow to submit, watch, cancel and resume."""

import asyncio

from tsuzuki.context import current
from tsuzuki.flow import task
from tsuzuki.retry import Retry
from tsuzuki.script import flow


@task(retry=Retry(attempts=2, backoff=0.1))
async def translate(number: int, seconds: float = 0.5) -> str:
    """Stands for something slow and dear."""
    await asyncio.sleep(seconds)
    return f"sentence {number}"


@task
async def summary(sentences: list[str]) -> str:
    """Puts them together."""
    return f"{len(sentences)} sentences, from {sentences[0]!r} to {sentences[-1]!r}"


@flow
async def sample(sentences: int = 60, seconds: float = 0.5) -> str:
    """Translates so many sentences, four at a time; cancel it on the way, then resume it: nothing is done twice."""
    if sentences < 1:
        raise ValueError("there is nothing to translate: sentences must be at least 1")
    current().log.info("translating %s sentences", sentences)
    done = await translate.map(range(1, sentences + 1), seconds=seconds, concurrency=4)
    return await summary(list(done))
