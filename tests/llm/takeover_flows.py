"""A flow that asks many questions through a batch."""

from tsuzuki import flow, llm


@flow
async def takeover(count: int) -> list[str]:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy="batch")
    return [answer.text for answer in answers]
