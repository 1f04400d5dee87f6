"""Asks the leader of a stream for a message, in short tries: what is asked while there is none is never answered.

To read twice harms nothing. Whoever waited for one answer alone would go on waiting after a new leader is there, and
give up although that one would have told.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import NO_MESSAGE, ApiError, Unclear
from tsuzuki.backends.nats.wire import Wire

FIRST_TRY: Final = 1.0
"""How long the first answer is waited for, and twice as long each further one: a server may only be busy (seconds)."""
_AGAIN: Final = 0.02
_NOT_THERE: Final = 404
Answer = TypeVar("Answer")


async def message(wire: Wire, stream: str, timeout: float, **which: Any) -> dict[str, Any] | None:
    """Gives a message of a stream as its leader has it; None where there is none."""
    try:
        answer = await in_short_tries(
            wire, lambda seconds: wire.api(topology.leader_get(stream), seconds, True, **which), timeout
        )
    except ApiError as error:
        if error.error == NO_MESSAGE or error.code == _NOT_THERE:
            return None
        raise
    found: dict[str, Any] = answer["message"]
    return found


async def in_short_tries(wire: Wire, ask: Callable[[float], Awaitable[Answer]], timeout: float) -> Answer:
    """Ask again and again, each time with a longer timeout, until an answer comes; `Unclear` if none does."""
    now, patience = asyncio.get_running_loop().time, FIRST_TRY
    until = now() + timeout
    while True:
        try:
            return await ask(min(patience, max(until - now(), _AGAIN)))
        except Unclear:
            if wire.closed or now() >= until:
                raise
        patience *= 2
        await asyncio.sleep(_AGAIN)


def body(found: dict[str, Any]) -> bytes:
    """Gives what a message says."""
    return base64.b64decode(found.get("data") or "")
