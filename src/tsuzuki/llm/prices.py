"""What answers cost, from the price list that ships with `genai-prices`: no network."""

import logging
from functools import cache
from types import ModuleType
from typing import Any, Final

from tsuzuki.llm.capability import LOCAL
from tsuzuki.llm.questions import Reply, priced

logger: Final = logging.getLogger("tsuzuki.llm")

_THEIRS: Final = {"gemini": "google"}
"""What the price list calls a provider, where it differs."""


@cache
def _list() -> ModuleType | None:
    try:
        import genai_prices  # noqa: PLC0415 - it takes a while to import, and not everybody asks for prices
    except ImportError:
        return None
    return genai_prices


def with_cost(provider: str, reply: Reply, *, batch: bool = False) -> Reply:
    """Gives a reply with its price (US dollars): 0 where nobody is paid, None where the price is not known.

    A batch costs half, with every provider that has them.
    """
    if provider == "offline" or provider in LOCAL:
        return priced(reply, 0.0)
    prices = _list()
    if prices is None or not (reply.usage.input or reply.usage.output):
        return reply
    try:
        usage: Any = prices.Usage(input_tokens=reply.usage.input, output_tokens=reply.usage.output)
        found = prices.calc_price(usage, reply.model, provider_id=_THEIRS.get(provider, provider))
    except LookupError:
        logger.debug("no price is known for %s of %s", reply.model, provider)
        return reply
    return priced(reply, float(found.total_price) * (0.5 if batch else 1.0))
