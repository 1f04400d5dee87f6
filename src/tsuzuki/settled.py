"""A future that only its owner ends."""

import asyncio
from typing import Any


class Settled(asyncio.Future[Any]):
    """A future whose waiters cannot cancel it: a cancelled task raises `CancelledError` once it is done.

    So what is being written, or runs on a thread, comes to its end and is recorded.
    """

    def cancel(self, msg: Any | None = None) -> bool:
        """Refuses."""
        del msg
        return False
