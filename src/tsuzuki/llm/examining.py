"""Whether a provider can be reached, and does what its record says."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Any, Final

from tsuzuki.errors import LLMError, ProviderUnavailable
from tsuzuki.llm.capability import Rung
from tsuzuki.llm.providers.interface import Intent, Provider
from tsuzuki.llm.questions import Question, Unfinished
from tsuzuki.llm.structured import fitting

_SCHEMA: Final = {
    "title": "Colour",
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}
_PLAIN: Final = Question("Name one colour.", max_tokens=200)
_HELD: Final = Question('Name one colour, under the key "colour".', name="Colour", schema=_SCHEMA, max_tokens=200)


async def examined(provider: Provider) -> AsyncIterator[tuple[str, str | None]]:
    """Asks a few short questions; gives what was looked at, and what is wrong with it or None."""
    reached = await _trouble(provider.health())
    yield "it can be reached", None if reached is None else str(reached)
    if isinstance(reached, ProviderUnavailable):
        return  # whatever else is asked ends like this, and takes as long
    if not provider.base_url:
        yield "it answers by the rules that programs register", None
        return
    yield "it answers", await _told(provider.complete(_PLAIN))
    yield "it streams", await _told(_streamed(provider))
    for rung in provider.capability.rungs:
        yield f"it can be held to a schema by {rung}", await _told(_held(provider, rung))
    if provider.batches is None:
        yield "it has no batches: questions are asked one by one", None
    else:
        nothing = Intent("nothing", "nothing", 0.0, ("nothing",))
        yield "its batches can be listed", await _told(provider.batches.find(nothing, frozenset()))


async def _held(provider: Provider, rung: Rung) -> None:
    fitting(await provider.complete(_HELD, rung), _SCHEMA)


async def _streamed(provider: Provider) -> None:
    text = ""
    with suppress(Unfinished):  # who says too much streams all the same
        async for piece in provider.stream(_PLAIN):
            text += piece
    if not text.strip():
        raise LLMError("the stream brought nothing")


async def _trouble(work: Awaitable[Any]) -> LLMError | None:
    try:
        await work
    except LLMError as error:
        return error
    return None


async def _told(work: Awaitable[Any]) -> str | None:
    error = await _trouble(work)
    return None if error is None else str(error)
