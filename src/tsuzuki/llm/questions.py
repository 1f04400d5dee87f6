"""What is asked and what is answered, as values that can be written down.

`Request` and `Answer` are for people; `Question` and `Reply` are the same as plain JSON, for queue, journal and cache.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec
from pydantic import BaseModel

from tsuzuki.errors import (
    BadAnswer,
    BadUsage,
    LLMError,
    ProviderDenied,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)

Schema: TypeAlias = type[BaseModel] | Mapping[str, Any]

MODELS: Final[dict[str, type[BaseModel]]] = {}
"""The pydantic models that were asked for in this process, by the digest of their schema: they validate best."""


LONGEST_REFUSAL: Final = 300
WITHHELD: Final = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii", "language"}
)
"""The words with which providers say that an answer was held back, as a whole or from some place on."""


class Unfinished(BadAnswer):
    """There is no whole answer; asked again in the same way, there would be none either."""


class CutOff(Unfinished):
    """The answer was cut off at its greatest length (finish_reason length): allow more max_tokens, or ask less."""


class Withheld(Unfinished):
    """The provider holds the answer back: its filter stopped it, or the model refuses."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many tokens a question took."""

    input: int = 0
    """All that was read, also from the provider's cache and into it."""
    output: int = 0
    cache_read: int = 0
    """How much of the input the provider had in its cache, which costs less."""
    cache_written: int = 0
    """How much of the input the provider put into its cache, which may cost more."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_written + other.cache_written,
        )


class Turn(msgspec.Struct, frozen=True):
    """Something that was said before: by the `assistant` or the `user`."""

    role: str
    text: str


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request as plain JSON."""

    prompt: str
    system: str = ""
    model: str = ""
    name: str = ""
    """The name of the schema."""
    schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    turns: tuple[Turn, ...] = ()
    """What was said after the prompt: an answer that did not fit, and what is wrong with it."""

    def after(self, answer: str, wrong: str) -> "Question":
        """Gives the question that follows an answer that did not fit."""
        said = (Turn("assistant", answer), Turn("user", wrong))
        return msgspec.structs.replace(self, turns=(*self.turns, *said))

    @property
    def weight(self) -> int:
        """About how many tokens it takes: a token is about four bytes of text."""
        text = len(self.prompt.encode()) + len(self.system.encode()) + sum(len(turn.text) for turn in self.turns)
        return text // 4 + 1 + (self.max_tokens or 0)


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer as plain JSON."""

    text: str = ""
    value: Any = None
    """The JSON that was asked for, validated."""
    usage: Usage = Usage()
    model: str = ""
    finish: str = "stop"
    """Why it ended: `stop`, `length`, or the provider's own word."""
    error: str = ""
    cost: float | None = None
    """What it cost (US dollars); None where the price is not known."""
    tries: int = 1
    cached: bool = False
    uncertain: int = 0
    """How many of the tries brought no answer: they may have been charged, and nobody knows how much."""
    unasked: int = 0
    """How many of the tries the provider never came to, for its batch was ended before."""


def unfinished(finish: str, said: str = "") -> Unfinished | None:
    """Says what is wrong with an answer that ended in this way; None where it is whole."""
    if finish == "length":
        return CutOff()
    if finish not in WITHHELD:
        return None
    told = f": {said[:LONGEST_REFUSAL]}" if finish == "refusal" and said else ""
    return Withheld(f"The provider holds the answer back (finish_reason {finish}){told}")


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask: a prompt, and what the answer is to look like."""

    prompt: str
    system: str = ""
    schema: Schema | None = None
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None

    def question(self, model: str = "") -> Question:
        """Gives it as plain JSON; a model that it does not name is filled in."""
        if not isinstance(self.prompt, str):
            raise BadUsage(f"a request needs a prompt that is text, not {type(self.prompt).__name__}")
        plain = Question(
            self.prompt, self.system, self.model or model, temperature=self.temperature, max_tokens=self.max_tokens
        )
        if self.schema is None:
            return plain
        schema, name = schema_of(self.schema)
        return msgspec.structs.replace(plain, schema=schema, name=name)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: text, the validated value where a schema was given, what it took, or what went wrong."""

    text: str
    """What the model said; if no answer was good enough, the last one that was not."""
    data: Any = None
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    model: str = ""
    cost: float | None = None
    """What it cost (US dollars); None where the price is not known."""
    finish: str = "stop"
    """Why the model stopped: `stop`, `length` or the provider's own word; `error` if there was no answer at all."""
    tries: int = 1
    """How many requests it took."""
    uncertain: int = 0
    """How many of them brought no answer, and may have been charged all the same."""

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.error is None


def schema_of(schema: Schema) -> tuple[dict[str, Any], str]:
    """Gives a schema as JSON, and its name."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        made, name = schema.model_json_schema(), schema.__name__
        MODELS[digest(made)] = schema
        return made, name
    if isinstance(schema, Mapping):
        return dict(schema), str(schema.get("title", "answer"))
    raise BadUsage(f"a schema is a pydantic model or a JSON schema, not {schema!r}")


def answer_of(reply: Reply, schema: Schema | None) -> Answer:
    """Gives a reply for people: its value is an instance of the model that was asked for."""
    value = reply.value
    if value is not None and isinstance(schema, type) and issubclass(schema, BaseModel):
        value = schema.model_validate(value)
    return Answer(
        reply.text,
        value,
        reply.usage,
        reply.error or None,
        reply.model,
        reply.cost,
        reply.finish,
        reply.tries,
        reply.uncertain,
    )


def failed(error: BaseException) -> Reply:
    """Gives the reply that tells of a failure, with the last answer that came and what all tries took."""
    paid = getattr(error, "reply", None)
    said = f"{type(error).__name__}: {error}"
    return msgspec.structs.replace(paid, error=said) if isinstance(paid, Reply) else Reply(error=said, finish="error")


_RAISED: Final[Mapping[str, type[LLMError]]] = {
    cls.__name__: cls
    for cls in (
        BadAnswer,
        CutOff,
        Withheld,
        ProviderDenied,
        ProviderRefused,
        ProviderTimeout,
        ProviderUnavailable,
    )
}


def raised(error: str) -> LLMError:
    """Return the error that the text of a failed reply tells of."""
    kind, _, said = error.partition(": ")
    return _RAISED[kind](said) if kind in _RAISED else LLMError(error)


def after(before: Reply | None, reply: Reply) -> Reply:
    """Gives a reply with what the tries before it took and cost."""
    if before is None:
        return reply
    cost = None if reply.cost is None else reply.cost + (before.cost or 0.0)
    used = before.usage + reply.usage
    tries, model = before.tries + reply.tries, reply.model or before.model
    unasked, uncertain = before.unasked + reply.unasked, before.uncertain + reply.uncertain
    return msgspec.structs.replace(
        reply, usage=used, cost=cost, tries=tries, model=model, unasked=unasked, uncertain=uncertain
    )


def priced(reply: Reply, cost: float | None) -> Reply:
    """Gives a reply with what it cost."""
    return msgspec.structs.replace(reply, cost=cost)


def digest(value: Any) -> str:
    """Gives a digest of plain JSON that does not depend on the order of keys."""
    text = json.dumps(msgspec.to_builtins(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
