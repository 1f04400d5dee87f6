"""What answers cost, from the price list that ships with `genai-prices`: no network."""

import logging
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, Final

from tsuzuki.llm.capability import LOCAL
from tsuzuki.llm.questions import Reply, Usage, priced

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


def listed() -> bool:
    """Tells whether there is a price list."""
    return _list() is not None


def with_cost(provider: str, reply: Reply, *, batch: bool = False) -> Reply:
    """Gives a reply with its price (US dollars): 0 where nobody is paid, None where the price is not known.

    A batch costs half, with every provider that has them.
    """
    if provider == "offline" or provider in LOCAL:
        return priced(reply, 0.0)
    if not (reply.usage.input or reply.usage.output) or not _is_listed(provider, reply.model):
        return reply
    price = _price(provider, reply.model, reply.usage)
    return reply if price is None else priced(reply, price * (0.5 if batch else 1.0))


@lru_cache(maxsize=256)
def _is_listed(provider: str, model: str) -> bool:
    """Tells whether a model has a price; to find out that it has none takes longest."""
    listed = _price(provider, model, Usage(1, 1)) is not None
    if not listed:
        logger.debug("no price is known for %s of %s", model, provider)
    return listed


@lru_cache(maxsize=4096)
def _price(provider: str, model: str, usage: Usage) -> float | None:
    prices = _list()
    if prices is None:
        return None
    used: Any = prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_written,
    )
    try:
        return float(prices.calc_price(used, model, provider_id=_THEIRS.get(provider, provider)).total_price)
    except LookupError:
        return None
