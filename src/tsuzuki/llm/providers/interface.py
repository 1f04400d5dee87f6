"""The one interface of all providers, and what those have in common that speak HTTP."""

import json
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import IO, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from tsuzuki import settings
from tsuzuki.errors import ProviderRefused, ProviderUnavailable
from tsuzuki.llm.capability import BatchLimits, Capability, Rung
from tsuzuki.llm.questions import Question, Reply, failed, unfinished
from tsuzuki.llm.wire import Asked, Wire, decoded

BatchStatus: TypeAlias = Literal["queued", "running", "completed", "partial_failed", "failed", "cancelled"]
Sending: TypeAlias = Callable[[], Awaitable[None]]
LEEWAY: Final = 600.0
"""How far the clock of a provider and ours may be apart (seconds)."""


class NoBatches(ProviderRefused):
    """The service at this address has no batches."""


class Provider(Protocol):
    """Answers questions; `close` it when it is not needed any more."""

    name: str
    base_url: str
    model: str
    """The model that answers where a question names none."""
    capability: Capability

    async def complete(self, question: Question, rung: Rung | None = None) -> Reply:
        """Answers a question, held to its schema in this way."""
        ...

    def stream(self, question: Question) -> AsyncIterator[str]:
        """Answers a question piece by piece."""
        ...

    async def models(self) -> list[str]:
        """Lists the models that can be asked."""
        ...

    async def health(self) -> str:
        """Says in a few words that it can be reached, or raises."""
        ...

    @property
    def batches(self) -> "Batches | None":
        """What takes many questions at once and answers within a day, where the provider has it."""
        ...

    async def close(self) -> None:
        """Ends the connections."""
        ...


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that is going to be created: written down before anything is sent."""

    id: str
    process_id: str
    at: float
    """When it was first meant to be created (Unix seconds)."""
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is, in the same words for every provider."""

    id: str
    status: BatchStatus
    total: int = 0
    done: int = 0
    failed: int = 0
    reason: str = ""
    """Why it ended without doing everything."""
    files: tuple[str, ...] = ()
    """Where its outcomes are."""
    crowded: bool = False
    """Whether it was refused because the provider holds too many tokens of batches already: nothing of it was asked."""

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status not in ("queued", "running")


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for a batch gave: its id, or that one which is still at work may be it."""

    id: str | None = None
    perhaps: tuple[str, ...] = field(default=())


class Piece(NamedTuple):
    """A piece of a streamed answer; the last one says why it ended, in the words of `Reply.finish`."""

    text: str
    finish: str = ""


class Batches(Protocol):
    """A provider's batches."""

    limits: BatchLimits

    def line(self, job: str, question: Question, rung: Rung | None) -> bytes:
        """Gives one question as it goes into a batch."""
        ...

    async def create(self, intent: Intent, lines: AsyncIterable[bytes], sending: Sending) -> str:
        """Creates the batch and gives its id; where it is not known whether it was, raises `ProviderUnclear`.

        `sending` is awaited right before the request that creates it: what it raises keeps that from being sent.
        """
        ...

    async def find(self, intent: Intent, known: frozenset[str]) -> Found:
        """Looks for the batch that was created for an intent; `known` are those of others."""
        ...

    async def look(self, batch: str) -> BatchState:
        """Looks how far a batch is."""
        ...

    def outcomes(self, state: BatchState) -> AsyncIterator[tuple[str, Reply | None]]:
        """Gives what came of each question, by the id of its job; None for a line that cannot be read."""
        ...

    async def cancel(self, batch: str) -> None:
        """Asks for the end of a batch."""
        ...


async def spooled(
    lines: AsyncIterable[bytes], first: bytes = b"", between: bytes = b"", last: bytes = b""
) -> IO[bytes]:
    """Return a file on the disk with the lines of a batch, which is gone when it is closed: in memory they are many."""
    folder = settings.data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - whoever sends it closes it
    try:
        file.write(first)
        number = 0
        async for line in lines:
            file.write(between + line if number else line)
            number += 1
        file.write(last)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def readable(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any] | None]:
    """Gives the objects of an answer that has one on each line; None for one that cannot be read."""
    async for line in lines:
        if line.strip():
            try:
                yield decoded(line)
            except ProviderUnavailable:
                yield None


class Spoken:
    """A provider that speaks HTTP: its adapter says how a question looks there, and where the answer is."""

    path: str
    stream_path: str = ""

    def __init__(self, wire: Wire, model: str, capability: Capability) -> None:
        self.wire, self.model, self.capability = wire, model, capability
        self.name, self.base_url = wire.provider, wire.base_url

    # What an adapter says

    def body(self, question: Question, rung: Rung | None, *, stream: bool = False) -> dict[str, Any]:
        """Says a question."""
        raise NotImplementedError

    def read(self, found: Any) -> Reply:
        """Reads an answer; one in which something is not where it should be may raise as Python does."""
        raise NotImplementedError

    def place(self, question: Question, *, stream: bool = False) -> str:
        """Says where the question goes."""
        del question
        return self.stream_path if stream and self.stream_path else self.path

    def pieces(self, lines: AsyncIterator[str]) -> AsyncIterator[Piece]:
        """Reads a streamed answer: its text, and in the end why it ended."""
        raise NotImplementedError

    @property
    def batches(self) -> Batches | None:
        """None, where an adapter does not say otherwise."""
        return None

    # What follows from it

    def reply(self, found: Any) -> Reply:
        """Reads an answer, or says that there is none in it."""
        try:
            return self.read(found)
        except (KeyError, IndexError, TypeError, AttributeError):
            said = self.wire.clean(str(found))
            raise ProviderUnavailable(f"{self.name} answered without an answer: {said}") from None

    async def complete(self, question: Question, rung: Rung | None = None) -> Reply:
        """Answers a question."""
        asked = self._asked(question)
        found = await self.wire.json("POST", self.place(question), self.body(question, rung), question=asked)
        reply = self.reply(found)
        self.wire.used(asked, reply.usage.input + reply.usage.output)
        if not asked.uncertain:
            return reply
        return msgspec.structs.replace(reply, tries=1 + asked.uncertain, uncertain=asked.uncertain)

    def _asked(self, question: Question) -> Asked:
        return Asked(question.weight, question.model or self.model)

    async def stream(self, question: Question) -> AsyncIterator[str]:
        """Answers a question piece by piece; one that broke off, was cut off or held back raises after its pieces."""
        body = self.body(question, None, stream=True)
        place = self.place(question, stream=True)
        async with self.wire.lines("POST", place, body, question=self._asked(question)) as lines:
            finish = ""
            async for piece in self.pieces(lines):
                finish = finish or piece.finish
                if piece.text:
                    yield piece.text
        if not finish:
            raise ProviderUnavailable(f"{self.name} broke off: its stream ended before the answer did")
        if trouble := unfinished(finish):
            raise trouble

    async def models(self) -> list[str]:
        """Lists the models."""
        raise NotImplementedError

    async def health(self) -> str:
        """Asks for the models: that needs the address and the key, and costs nothing."""
        found = await self.models()
        return f"{len(found)} models"

    async def close(self) -> None:
        """Ends the connections."""
        await self.wire.close()


class Chat(Protocol):
    """How a question looks, and where the answer is: what the batches of a provider need of it."""

    def body(self, question: Question, rung: Rung | None) -> dict[str, Any]: ...
    def reply(self, found: Any) -> Reply: ...


def out_of_a_batch(chat: Chat, found: Any) -> Reply:
    """Reads an answer of a batch; where there is none in it, that is a failure of its own question alone."""
    try:
        return chat.reply(found)
    except ProviderUnavailable as error:
        return failed(error)


def broken(wire: Wire, said: Any) -> ProviderUnavailable:
    """Says that a stream told of an error instead of going on."""
    told = said.get("message") or said if isinstance(said, dict) else said
    return ProviderUnavailable(f"{wire.provider} broke off in the middle: {wire.clean(str(told))}")


def told_beforehand(question: Question, rung: Rung | None) -> str:
    """Gives what a model is told first: also, in words, what its answer has to look like, unless it is held to that."""
    if question.schema is None or rung == "json_schema":
        return question.system
    text = json.dumps(question.schema, ensure_ascii=False)
    form = f"Answer with one JSON value alone, without any other text, that fits this JSON schema:\n{text}"
    return f"{question.system}\n\n{form}".strip()
