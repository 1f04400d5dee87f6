"""Keys that something long stands on: one look at each for all that is open with it, so that a revoked one ends it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tsuzuki.errors import StoreError
from tsuzuki.keyring import Keyring

logger: Final = logging.getLogger("tsuzuki.gateway")

LOOK: Final = 0.5
"""How often (seconds) the store is asked whether a key holds: also another process may have revoked it."""


@dataclass(slots=True)
class _Permit:
    """One key that something is open with."""

    revoked: asyncio.Event = field(default_factory=asyncio.Event)
    holders: int = 0


class Permits:
    """The keys that something is open with."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._permits: dict[str, tuple[_Permit, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def held(self, key_id: str) -> AsyncIterator[asyncio.Event]:
        """Gives what is set once a key holds no more; without a key (`key_id` is empty) it never is."""
        if not key_id:
            yield asyncio.Event()
            return
        if key_id not in self._permits:
            permit = _Permit()
            self._permits[key_id] = permit, asyncio.create_task(self._look(key_id, permit), name="gateway-permit")
        permit, looking = self._permits[key_id]
        permit.holders += 1
        try:
            yield permit.revoked
        finally:
            permit.holders -= 1
            if not permit.holders:
                del self._permits[key_id]
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking

    async def _look(self, key_id: str, permit: _Permit) -> None:
        while not permit.revoked.is_set():
            await asyncio.sleep(LOOK)
            try:
                holds = await self._keyring.holds(key_id)
            except StoreError as error:  # what is open sees that for itself; the key is asked for again soon
                logger.warning("cannot look whether key %s holds: %s", key_id, error)
                continue
            if not holds:
                permit.revoked.set()
