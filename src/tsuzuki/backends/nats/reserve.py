"""Room for what must be written on a full server too: ends of runs, requests to cancel, heartbeats.

A server without room refuses everything alike, and tells nobody beforehand. So a store keeps ballast, pieces of no
meaning. What must be written and finds no room throws a piece overboard and is written in its place, the first piece
first. As long as that one is missing the server counts as full for all that can wait: new runs, claims and blobs would
only take the room back. The last piece stays, so that no piece at all means: there is no reserve.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tsuzuki.backends import Check, amount
from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import DENIED, NO_ROOM, ApiError, Unclear
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import StoreUnavailable

logger: Final = logging.getLogger("tsuzuki.nats")

Answer = TypeVar("Answer")

PIECE: Final = 64 * 1024
PIECES: Final = 16
MARGIN: Final = 8
"""How many more pieces must fit before those that were thrown overboard are taken in again; less is nearly full."""
SMALL: Final = 32 * 1024
"""What is larger than this has to wait for room, an end too."""
LOOK: Final = 1.0
"""How often whoever writes looks whether others have thrown pieces overboard (seconds)."""
AGAIN: Final = 5.0
"""How often it is tried to take them in again (seconds)."""


class Reserve:
    """The ballast of a store as one process knows it."""

    def __init__(self, wire: Wire, names: Topology) -> None:
        self._wire, self._topology = wire, names
        self._pieces = [names.reserve(number) for number in range(PIECES)]
        self._in_use = False
        self._looked_at = self._tried_at = 0.0
        self._turn = asyncio.Lock()
        self._aside: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Takes ballast in where there is none yet, aside."""
        self._look_aside(self.refill)

    async def close(self) -> None:
        """Leaves."""
        if self._aside is not None:
            self._aside.cancel()
            await asyncio.gather(self._aside, return_exceptions=True)

    # What can wait

    async def spare(self, *, surely: bool = False) -> None:
        """Refuses what can wait while the reserve is in use; `surely` looks instead of relying on the last look.

        While pieces are being taken in again nobody is refused for those that are not there yet: it waits for how that
        ends. A process that left in the midst of it would otherwise make the next one refuse what has room.
        """
        now = asyncio.get_running_loop().time()
        if self._in_use and self._turn.locked():
            async with self._turn:
                pass
        elif self._in_use and now - self._tried_at >= AGAIN:
            await self.refill()
        elif surely:
            await self._look()
        elif now - self._looked_at >= LOOK:
            self._look_aside(self._look)
        if self._in_use:
            raise ApiError(503, NO_ROOM, "only a reserve for the ends of runs is left")

    def _look_aside(self, look: Callable[[], Awaitable[object]]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(Unclear, ApiError):  # then the next time
                await look()

        if self._aside is None or self._aside.done():
            self._looked_at = asyncio.get_running_loop().time()
            self._aside = asyncio.get_running_loop().create_task(quietly(), name="tsuzuki-reserve")

    async def _look(self) -> set[str]:
        """Reads which pieces are there."""
        told = await self._wire.api(
            topology.stream_info(self._topology.state), subjects_filter=self._topology.all_reserve
        )
        there = set(told["state"].get("subjects") or {}) & set(self._pieces)
        self._looked_at = asyncio.get_running_loop().time()
        self._in_use = bool(there) and self._pieces[0] not in there
        return there

    # What cannot wait

    async def urgently(self, write: Callable[[], Awaitable[Answer]]) -> Answer:
        """Writes something small; where there is no room, in the place of ballast."""
        while True:
            try:
                return await write()
            except (ApiError, StoreUnavailable) as error:
                if not is_full(error) or not await self._throw_overboard():
                    raise

    async def _throw_overboard(self) -> bool:
        """Makes room; tells whether there was something to throw."""
        async with self._turn:
            there = sorted(await self._look())
            if len(there) <= 1:
                return False
            if not self._in_use:
                logger.warning(
                    "JetStream is full: ends of runs use a reserve from now on; purge old runs, or give it more"
                )
            self._in_use = True
            await self._remove(there[0])
            return True

    async def _remove(self, subject: str) -> None:
        await self._wire.api(topology.purge_stream(self._topology.state), filter=subject)

    # Taking it in again

    async def refill(self) -> None:
        """Takes in what is missing, if there is clearly room for it; what does not fit is thrown out again."""
        async with self._turn:
            self._tried_at = asyncio.get_running_loop().time()
            missing = sorted(set(self._pieces) - await self._look(), reverse=self._in_use)  # what tells it comes last
            if missing and await self._written(missing):
                self._in_use = False

    async def _written(self, missing: list[str]) -> bool:
        """Writes pieces; tells whether they are there, and there is room beyond them.

        They are taken back only where there is none, and the first one last: whoever is stopped on the way leaves what
        it wrote, which others may count on, and nobody sees the first one missing but for want of room.
        """
        margin = [self._topology.reserve(number) for number in range(PIECES, PIECES + MARGIN)]
        size, written, fits = min(PIECE, self._wire.largest // 2), list[str](), False
        try:
            for subject in (*missing, *margin):
                await self._wire.publish(subject, bytes(size))
                written.append(subject)
            fits = True
        except ApiError as error:
            if error.error != DENIED and not error.full:
                raise
        for subject in margin if fits else reversed(written):
            await self._remove(subject)
        return fits

    async def examined(self) -> Check:
        """Tells people how much room there is, as far as a server lets that be known."""
        with contextlib.suppress(ApiError):
            await self.refill()
        left, fits = len(await self._look()), False
        if not self._in_use:
            fits = await self._written([])
            text = f"{amount(left * PIECE)} are kept for the ends of runs"
            few = f", and less than {amount(MARGIN * PIECE)} are left beyond: purge old runs, or give it more room"
            return Check("room", ok=fits, text=text if fits else f"JetStream is nearly full: {text}{few}")
        text = (
            f"JetStream is full: {amount(left * PIECE)} are left of {amount(PIECES * PIECE)} for the ends of runs; "
            "new ones, claims and large results are refused: purge old runs, or give it more room"
        )
        return Check("room", ok=False, text=text)


def is_full(error: Exception) -> bool:
    """Tells whether something was refused because no room is left."""
    cause = error if isinstance(error, ApiError) else error.__cause__
    return isinstance(cause, ApiError) and cause.full
