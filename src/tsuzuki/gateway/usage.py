"""The shapes of what was used of language models."""

from typing import Annotated

from pydantic import BaseModel, Field


class UsageSums(BaseModel):
    """What was used of language models."""

    requests: Annotated[int, Field(description="How often models were asked, also in vain.")]
    cached: Annotated[int, Field(description="How many of these were answered by kept answers.")]
    unpriced: Annotated[int, Field(description="How many have no price that is known.")]
    uncertain: Annotated[int, Field(description="How many brought no answer, and may have been charged all the same.")]
    input_tokens: int
    output_tokens: int
    cost: Annotated[float | None, Field(description="US dollars, of those whose price is known.")]


class ModelUsage(UsageSums):
    """What was used of one model."""

    provider: str
    model: str


class Usage(UsageSums):
    """What was used of language models, all together and by model; failed answers count: they are paid for."""

    models: list[ModelUsage]
