"""One question answered: from the cache where that is asked for, else by the provider; with its price."""

from typing import Final

import msgspec

from tsuzuki.errors import BadAnswer, LLMError
from tsuzuki.llm.cached import key_of, shared_cache, wanted
from tsuzuki.llm.prices import with_cost
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import Question, Reply, Unfinished, after, failed
from tsuzuki.llm.structured import TRIES, asked, fitting, unfit, whole
from tsuzuki.redact import redact

LONGEST_KEPT: Final = 16_000
"""How much of an answer that was not good enough is kept with the failure (characters)."""


async def answered(provider: Provider, question: Question, *, cache: bool | None = None) -> Reply:
    """Answers a question; raises where there is no answer. `cache`: whether answers are kept, else as it is set."""
    if not (wanted() if cache is None else cache):
        return await _asked(provider, question)
    key = key_of(provider, question)
    async with shared_cache() as kept:
        reply = await kept.get(key)
        if reply is None:
            reply = await _asked(provider, question)
            await kept.put(key, reply)
        return reply


async def _asked(provider: Provider, question: Question) -> Reply:
    try:
        return with_cost(provider.name, await asked(provider, question))
    except LLMError as error:
        if isinstance(error.reply, Reply):
            error.reply = with_cost(provider.name, error.reply)
            error.journal_detail = detail_of(failed(error))
        raise


def detail_of(reply: Reply) -> str:
    """Return a failed reply as it is kept with the failure: its text without secrets, and not too long."""
    text = redact(reply.text[:LONGEST_KEPT])
    return msgspec.json.encode(msgspec.structs.replace(reply, text=text, value=None)).decode()


async def attempted(provider: Provider, question: Question, *, cache: bool | None = None) -> Reply:
    """Answers a question; what went wrong is told in the reply."""
    try:
        return await answered(provider, question, cache=cache)
    except LLMError as error:
        return failed(error)


def judged(provider: Provider, question: Question, reply: Reply, before: Reply | None) -> tuple[Reply, str]:
    """Holds an answer that came from a batch to its schema; gives it with all that it took so far.

    Where it may be asked again, it also gives what is wrong with it.
    """
    told = after(before, with_cost(provider.name, reply, batch=True))
    if reply.error or question.schema is None:
        return _whole(told), ""
    try:
        return msgspec.structs.replace(told, value=fitting(whole(told), question.schema)), ""
    except Unfinished as error:
        return _wrong(told, error), ""
    except BadAnswer as error:
        if told.tries < TRIES:
            return told, str(error)
        return _wrong(told, unfit(provider.name, question, str(error), reply.text)), ""


def _whole(reply: Reply) -> Reply:
    try:
        return reply if reply.error else whole(reply)
    except Unfinished as error:
        return _wrong(reply, error)


def _wrong(reply: Reply, error: BadAnswer) -> Reply:
    return msgspec.structs.replace(reply, error=f"{type(error).__name__}: {error}")
