"""Flows that ask many questions through a batch; one of them is held by its worker meanwhile."""

import asyncio

from tsuzuki import current, flow, llm, task


@flow
async def takeover(count: int) -> list[str]:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy="batch")
    return [answer.text for answer in answers]


@task
async def busy() -> None:
    while current().attempt == 1:
        await asyncio.sleep(0.05)


@flow
async def held(count: int) -> list[str]:
    asked = llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy="batch")
    answers, _ = await asyncio.gather(asked, busy())
    return [answer.text for answer in answers]
