"""Bridges the outages of a store for those who wait for something longer than an outage takes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from tsuzuki.errors import StoreClosed, StoreUnavailable

logger: Final = logging.getLogger("tsuzuki")

PAUSE: Final = 0.25
"""How long to wait before a store that is away is looked at again (seconds): real time, it is others who mend it."""

MOMENTS: Final = 10.0
"""How long a store that has no answer yet is asked again by those who want one soon (seconds)."""

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


async def patiently(look: Callable[Given, Awaitable[Answer]], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
    """Looks again for as long as the store is away; one that was closed here, or is none, does not come back."""
    told = False
    while True:
        try:
            return await look(*args, **kwargs)
        except StoreClosed:
            raise
        except StoreUnavailable as error:
            if not told:
                logger.warning("waiting for the store: %s", error)
            told = True
            await asyncio.sleep(PAUSE)


async def for_moments(look: Callable[Given, Awaitable[Answer]], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
    """Looks again where the store says that it passes, but not for long: before and after something is asked for.

    Servers that lose their leader have no answer for some seconds, and whoever cancels a run should not have to know.
    """
    until = asyncio.get_running_loop().time() + MOMENTS
    while True:
        try:
            return await look(*args, **kwargs)
        except StoreUnavailable as error:
            if not error.passing or asyncio.get_running_loop().time() >= until:
                raise
            await asyncio.sleep(PAUSE)
