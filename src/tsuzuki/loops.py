"""Loops that a process cannot do without: where a fault of ours ends one, that is told, and it begins anew."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

logger: Final = logging.getLogger("tsuzuki")

PAUSE: Final = 1.0
"""How long to wait before a loop begins anew (seconds)."""


def kept_going(loop: Callable[[], Awaitable[None]], name: str) -> "asyncio.Task[None]":
    """Begins a loop, which goes round until it is cancelled: without it others think us dead, or we hear nobody."""
    return asyncio.create_task(_going(loop, name), name=name)


async def _going(loop: Callable[[], Awaitable[None]], name: str) -> None:
    while True:
        try:
            await loop()
        except Exception:
            logger.exception("a fault of ours has stopped the loop %s; it begins anew", name)
        await asyncio.sleep(PAUSE)
