"""Wakes those who wait in this process."""

import asyncio


class Bell:
    """Wakes everybody who waits at the moment it rings."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def __bool__(self) -> bool:
        """Tells whether anybody waits."""
        return bool(self._waiting)

    def ring(self) -> None:
        """Wakes them."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout: float) -> None:
        """Waits for the bell, or until the time is up: real time, since it is others who ring."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait({waiter}, timeout=timeout)
        finally:
            self._waiting.discard(waiter)
