"""A provider that needs no network: rules that others register answer; without a rule there is a clear error.

It knows no application. `register` a rule for the schema of a request, under its name:

    @llm.offline.register(Summary)
    def summary(question: llm.Question) -> Summary: ...
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel

from tsuzuki.errors import NoRule
from tsuzuki.llm.capability import Capability, Rung
from tsuzuki.llm.providers.interface import Batches
from tsuzuki.llm.questions import Question, Reply, Usage, schema_of

MODEL: Final = "rules"
PIECE: Final = 16

Rule: TypeAlias = Callable[[Question], Any]
Given = TypeVar("Given", bound=Rule)

RULES: Final[dict[str, Rule]] = {}
"""The rules by the name of the schema they answer; "" is for questions without one."""


def register(schema: type[BaseModel] | str = "") -> Callable[[Given], Given]:
    """Makes a function the rule for questions of a schema (a model or its name), or for those without one."""
    name = schema if isinstance(schema, str) else schema_of(schema)[1]

    def keep(rule: Given) -> Given:
        RULES[name] = rule
        return rule

    return keep


def unregister(schema: type[BaseModel] | str = "") -> None:
    """Removes a rule."""
    RULES.pop(schema if isinstance(schema, str) else schema.__name__, None)


class Offline:
    """Answers by rules."""

    name = "offline"
    base_url = ""
    batches: Batches | None = None

    def __init__(self, model: str = MODEL) -> None:
        self.model = model
        self.capability = Capability(local=True)

    async def complete(self, question: Question, rung: Rung | None = None) -> Reply:
        """Asks the rule."""
        del rung
        rule = RULES.get(question.name)
        if rule is None:
            what = f"questions for {question.name}" if question.name else "questions without a schema"
            raise NoRule(
                f"the offline provider has no rule for {what}: register one with llm.offline.register(…), or choose a "
                "provider with TSUZUKI_LLM_PROVIDER (openai, anthropic, gemini, ollama)"
            )
        text = _text(rule(question))
        return Reply(text=text, usage=Usage(question.weight, len(text) // 4), model=self.model)

    async def stream(self, question: Question) -> AsyncIterator[str]:
        """Gives the answer in pieces."""
        text = (await self.complete(question)).text
        for start in range(0, len(text), PIECE):
            yield text[start : start + PIECE]

    async def models(self) -> list[str]:
        """Lists the one model there is."""
        return [self.model]

    async def health(self) -> str:
        """Tells how many rules there are."""
        return f"{len(RULES)} rules"

    async def close(self) -> None:
        """Has nothing to close."""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(value, ensure_ascii=False)
