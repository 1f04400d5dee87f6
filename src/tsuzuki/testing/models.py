"""A language model for tests: it answers as a test says, without network or key, and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from pydantic import BaseModel

from tsuzuki.errors import BadUsage, ProviderUnavailable
from tsuzuki.llm import providers
from tsuzuki.llm.capability import BatchLimits, Capability, Rung
from tsuzuki.llm.providers import Address
from tsuzuki.llm.providers.interface import Batches, BatchState, Found, Intent, Sending
from tsuzuki.llm.questions import Question, Reply, Usage, failed

LIMITS: Final = BatchLimits(requests=50_000, bytes=200_000_000)
PIECE: Final = 16


class FakeLLM:
    """Answers every question in a `with` block, whichever provider it is put to.

    `answer` is a text or a model (the same for every question), a mapping by schema (`{Verdict: …, str: …}`), a list
    (one after another), or a function of the question. An exception among the answers is raised.
    """

    def __init__(
        self,
        answer: Any = "yes",
        *,
        usage: Usage | None = None,
        delay: float = 0.0,
        batches: bool = True,
        polls: int = 0,
    ) -> None:
        self._answer, self._usage, self._delay = answer, usage, delay
        self._left = iter(answer) if isinstance(answer, list) else None
        self.questions: list[Question] = []
        """What it was asked, in order."""
        self.batches: list[list[str]] = []
        """The jobs of the batches that were created."""
        self.limits = LIMITS if batches else None
        self.polls = polls
        """How often a batch is looked at before it is over."""
        self.created: dict[str, tuple[str, Sequence[bytes], list[int]]] = {}
        """Its batches by their id: intent, lines, and how often each was looked at."""
        self._makers: dict[str, providers.Maker] = {}

    @property
    def prompts(self) -> list[str]:
        """The prompts of what it was asked."""
        return [question.prompt for question in self.questions]

    def __enter__(self) -> Self:
        self._makers = dict(providers.MAKERS)
        for name in self._makers:
            providers.MAKERS[name] = lambda at, _: _Played(self, at)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        providers.MAKERS.update(self._makers)

    async def reply(self, question: Question, model: str) -> Reply:
        """Answers a question."""
        self.questions.append(question)
        if self._delay:
            await asyncio.sleep(self._delay)
        found = self._found(question)
        if isinstance(found, BaseException):
            raise found
        text = _text(found)
        used = self._usage or Usage(question.weight, len(text) // 4 + 1)
        return Reply(text=text, usage=used, model=question.model or model)

    def _found(self, question: Question) -> Any:
        if self._left is not None:
            try:
                return next(self._left)
            except StopIteration:
                raise BadUsage(f"FakeLLM has no answer left for {question.prompt[:80]!r}: give it more") from None
        if callable(self._answer) and not isinstance(self._answer, type):
            return self._answer(question)
        if isinstance(self._answer, Mapping) and all(isinstance(each, type) for each in self._answer):
            names = {("" if kind is str else kind.__name__): answer for kind, answer in self._answer.items()}
            if question.name not in names:
                raise BadUsage(f"FakeLLM has no answer for {question.name or 'a question without a schema'}")
            return names[question.name]
        return self._answer


class _Played:
    """One provider, played."""

    def __init__(self, fake: FakeLLM, at: Address) -> None:
        self._fake = fake
        self.name, self.base_url, self.model = at.provider, at.base_url, at.model
        self.capability = Capability(batch=fake.limits)

    async def complete(self, question: Question, rung: Rung | None = None) -> Reply:
        """Answers."""
        del rung
        return await self._fake.reply(question, self.model)

    async def stream(self, question: Question) -> AsyncIterator[str]:
        """Answers in pieces."""
        text = (await self._fake.reply(question, self.model)).text
        for start in range(0, len(text), PIECE):
            yield text[start : start + PIECE]

    async def models(self) -> list[str]:
        """Lists the model that is asked."""
        return [self.model]

    async def health(self) -> str:
        """Is well."""
        return "a fake for tests"

    @property
    def batches(self) -> Batches | None:
        """Takes batches, unless the test says otherwise."""
        return None if self._fake.limits is None else _PlayedBatches(self._fake, self)

    async def close(self) -> None:
        """Has nothing to close."""


class _PlayedBatches:
    """Its batches: over after so many looks."""

    def __init__(self, fake: FakeLLM, provider: _Played) -> None:
        self._fake, self._provider, self.limits = fake, provider, fake.limits or LIMITS

    def line(self, job: str, question: Question, rung: Rung | None) -> bytes:
        """Says a question."""
        del rung
        return msgspec.json.encode((job, question))

    async def create(self, intent: Intent, lines: AsyncIterable[bytes], sending: Sending) -> str:
        """Takes a batch."""
        batch = f"fake_{intent.id}"
        questions = [line async for line in lines]
        await sending()
        self._fake.created[batch] = (intent.id, questions, [])
        self._fake.batches.append(list(intent.jobs))
        return batch

    async def find(self, intent: Intent, known: frozenset[str]) -> Found:
        """Finds the batch of an intent."""
        del known
        return Found(next((batch for batch, (meant, *_) in self._fake.created.items() if meant == intent.id), None))

    async def look(self, batch: str) -> BatchState:
        """Tells how far it is."""
        if batch not in self._fake.created:
            raise ProviderUnavailable(f"FakeLLM knows no batch {batch}")
        _, lines, looks = self._fake.created[batch]
        looks.append(1)
        over = len(looks) > self._fake.polls
        return BatchState(batch, "completed" if over else "running", len(lines), len(lines) if over else 0)

    async def outcomes(self, state: BatchState) -> AsyncIterator[tuple[str, Reply]]:
        """Answers what is in it."""
        for line in self._fake.created[state.id][1]:
            job, question = msgspec.json.decode(line, type=tuple[str, Question])
            try:
                yield job, await self._provider.complete(question)
            except Exception as error:  # noqa: BLE001 - in a batch every failure is an outcome
                yield job, failed(error)

    async def cancel(self, batch: str) -> None:
        """Ends it."""
        self._fake.created[batch][2].extend([1] * (self._fake.polls + 1))


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    return answer.model_dump_json() if isinstance(answer, BaseModel) else json.dumps(answer, ensure_ascii=False)
