"""One question answered: from the cache where that is asked for, else by the provider; with its price."""

import msgspec

from tsuzuki.errors import BadAnswer, LLMError
from tsuzuki.llm.cached import key_of, shared_cache, wanted
from tsuzuki.llm.prices import with_cost
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import Question, Reply, failed
from tsuzuki.llm.structured import asked, fitting, whole


async def answered(provider: Provider, question: Question) -> Reply:
    """Answers a question; raises where there is no answer."""
    if not wanted():
        return with_cost(provider.name, await asked(provider, question))
    key = key_of(provider, question)
    async with shared_cache() as cache:
        reply = await cache.get(key)
        if reply is None:
            reply = with_cost(provider.name, await asked(provider, question))
            await cache.put(key, reply)
        return reply


async def attempted(provider: Provider, question: Question) -> Reply:
    """Answers a question; what went wrong is told in the reply."""
    try:
        return await answered(provider, question)
    except LLMError as error:
        return failed(error)


def judged(provider: Provider, question: Question, reply: Reply) -> Reply:
    """Holds an answer that came from a batch to its schema: it cannot be asked again there."""
    priced = with_cost(provider.name, reply, batch=True)
    if reply.error:
        return priced
    try:
        value = None if question.schema is None else fitting(whole(reply), question.schema)
        whole(reply)
    except BadAnswer as error:
        return msgspec.structs.replace(priced, error=f"{type(error).__name__}: {error}")
    return msgspec.structs.replace(priced, value=value)
