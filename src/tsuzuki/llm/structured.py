"""Answers that fit a schema: the ladder of ways to ask for one, the JSON in what came back, and asking again."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from tsuzuki.errors import BadAnswer, LLMError, ProviderRefused
from tsuzuki.llm.checking import names_of, validated
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import LONGEST_REFUSAL, Question, Reply, Unfinished, Withheld, after, digest, unfinished
from tsuzuki.llm.text import refuses
from tsuzuki.redact import redact

TRIES: Final = 3
LONGEST_EXCERPT: Final = 200
"""How much of an answer that does not fit is told in the error."""
DEEPEST: Final = 4
"""How many wrappers around the answer are looked into."""
MOST_BRACES: Final = 2000
"""At how many places of a text JSON may begin: enough for any answer, and no text takes for ever."""

_FENCE: Final = re.compile(r"```[\w-]*+[ \t]*+\n?+((?:[^`]|`(?!``))*+)```")
_COMMAS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
LONGEST_LITERAL: Final = 100_000
_DECODER: Final = json.JSONDecoder()
UNKNOWN_FORMAT: Final = 400
_ABOUT_THE_FORM: Final = re.compile(
    r"\b(response_?format|json_?schema|json_object|output_?config|output_?format|response_?mime_?type"
    r"|response_?json_?schema|schema|format)\b",
    re.IGNORECASE,
)
MAX_REMEMBERED: Final = 10_000
_LOWEST: Final[dict[tuple[str, ...], int]] = {}
"""The rung to begin with, by provider, address, model and schema, where a higher one was refused."""


async def asked(provider: Provider, question: Question) -> Reply:
    """Asks until the answer fits, three times at most; raises `BadAnswer` with what is wrong with the last one.

    An answer that was cut off or held back is a failure at once: asked again, it would be again.
    """
    if question.schema is None:
        return whole(await provider.complete(question))
    reply: Reply | None = None
    next_question, wrong = question, ""
    try:
        for _ in range(TRIES):
            reply = after(reply, await _on_the_ladder(provider, next_question))
            try:
                return msgspec.structs.replace(reply, value=fitting(whole(reply), question.schema))
            except Unfinished:
                raise
            except BadAnswer as error:
                wrong = str(error)
                next_question = again(question, reply.text, wrong)
        raise unfit(provider.name, question, wrong, "" if reply is None else reply.text)
    except BadAnswer as error:
        error.reply = reply
        raise
    except LLMError as error:
        if isinstance(error.reply, Reply) and reply is not None:
            error.reply = msgspec.structs.replace(after(reply, error.reply), text=reply.text)
        else:
            error.reply = error.reply or reply
        raise


def unfit(provider: str, question: Question, wrong: str, said: str) -> BadAnswer:
    """Says that no answer fits, what is wrong with the last one, and how that begins."""
    text = f"{provider} gave no answer that fits {question.name or 'the schema'} in {TRIES} tries: {wrong}"
    excerpt = redact(" ".join(said[: 4 * LONGEST_EXCERPT].split()))
    more = "…" if len(excerpt) > LONGEST_EXCERPT else ""
    return BadAnswer(f"{text}. It answered: {excerpt[:LONGEST_EXCERPT]}{more}" if excerpt else text)


def again(question: Question, answer: str, wrong: str) -> Question:
    """Gives the question that follows an answer that does not fit: it says what is wrong with it."""
    hint = f"That does not fit: {wrong}. Answer again with one JSON value alone that fits the schema."
    return msgspec.structs.replace(question, turns=()).after(answer, hint)


async def _on_the_ladder(provider: Provider, question: Question) -> Reply:
    """Ask on the highest rung; one that the provider refuses for this schema is left by all later questions too."""
    model, rungs = question.model or provider.model, provider.capability.rungs
    key = (provider.name, provider.base_url, model, digest(question.schema))
    rung = first = _LOWEST.get(key, 0)
    while True:
        try:
            reply = await provider.complete(question, rungs[rung])
        except ProviderRefused as error:
            if error.status != UNKNOWN_FORMAT or rung + 1 == len(rungs) or not _ABOUT_THE_FORM.search(str(error)):
                raise
            rung += 1
        else:
            if rung > first:  # the lower rung was taken, so it was the higher one that was refused
                _remember(key, rung)
            return reply


def _remember(key: tuple[str, ...], rung: int) -> None:
    if len(_LOWEST) >= MAX_REMEMBERED:
        _LOWEST.clear()
    _LOWEST[key] = rung


def whole(reply: Reply) -> Reply:
    """Gives a reply that was neither cut off nor held back; one that was is no answer."""
    if trouble := unfinished(reply.finish, reply.text):
        trouble.reply = reply
        raise trouble
    return reply


def fitting(reply: Reply, schema: Mapping[str, Any]) -> Any:
    """Gives the JSON in an answer that fits the schema; raises `BadAnswer` with what is wrong with the likeliest."""
    wrong: BadAnswer | None = None
    for candidate in ranked(candidates(reply.text), schema):
        try:
            return validated(candidate, schema)
        except BadAnswer as error:
            wrong = wrong or error
    if wrong is None and refuses(without_thought(reply.text.strip())):
        raise Withheld(f"The model refuses: {reply.text.strip()[:LONGEST_REFUSAL]}")
    raise wrong or BadAnswer("there is no JSON in the answer")


def ranked(found: Iterator[Any], schema: Mapping[str, Any]) -> list[Any]:
    """Orders candidates: those first that have most of the schema's fields, and what stood further out."""
    names = names_of(schema)

    def strangers(value: Any) -> int:
        return -len(names & value.keys()) if isinstance(value, dict) else 0

    return sorted(found, key=strangers)


def candidates(text: str) -> Iterator[Any]:
    """Gives the JSON values in a text: the text itself, in fences, between words; and what is inside them."""
    stripped = without_thought(text.strip().removeprefix("\ufeff"))
    unread = []
    for piece in (stripped, *(found[1].strip() for found in _FENCE.finditer(stripped))):
        try:
            yield from _nested(json.loads(piece), 0)
        except ValueError:
            unread.append(piece)
        except RecursionError:  # a model may repeat an opening bracket to its last token
            continue
    for value in _embedded(stripped):
        yield from _nested(value, 0)
    between = [stripped[stripped.find("{") : stripped.rfind("}") + 1]] if unread else []
    for value in map(_sloppy, unread + between):
        if value is not None:
            yield from _nested(value, 0)


def _sloppy(text: str) -> Any:
    """Gives what a text means that is nearly JSON: with a comma too many, or as Python writes it; None: nothing."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(_COMMAS.sub(lambda found: found[1] or "", text))
    except RecursionError:
        return None
    except ValueError:
        pass
    try:
        value = ast.literal_eval(text) if len(text) < LONGEST_LITERAL else None
        return json.loads(json.dumps(value))  # what JSON has no word for is no answer
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def without_thought(text: str) -> str:
    """Gives a text without what its model thought aloud before: a draft in there is not the answer.

    Some servers leave out the tag that begins the thought. In what begins as JSON, the tag is part of a value.
    """
    thought, tag, answer = text.partition("</think>")
    return answer.strip() if tag and not thought.startswith(("{", "[", '"', "`")) else text


def _embedded(text: str) -> Iterator[Any]:
    """Gives the JSON objects and lists that stand in a text, outermost ones only."""
    at = tried = 0
    while tried < MOST_BRACES and (found := re.compile(r"[{\[]").search(text, at)):
        tried += 1
        try:
            value, at = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.start() + 1
        else:
            yield value


def _nested(value: Any, depth: int) -> Iterator[Any]:
    """Gives a value and the objects inside it: models like to wrap an answer once more."""
    yield value
    if depth < DEEPEST and isinstance(value, dict):
        for each in value.values():
            if isinstance(each, dict | list):
                yield from _nested(each, depth + 1)
    elif depth < DEEPEST and isinstance(value, list) and len(value) == 1:
        yield from _nested(value[0], depth + 1)
    elif isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):  # JSON in a JSON string
            yield from _nested(json.loads(value), depth + 1)
