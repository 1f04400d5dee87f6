"""Wakes those who wait in this process: for work, or for news of a run."""

from collections import OrderedDict
from typing import Final

from nats.aio.msg import Msg

from tsuzuki.backends.bell import Bell
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Listening, Wire

MOST_LISTENED: Final = 64
"""To how many logs a process listens at a time; whoever waits for another one looks when its time is up."""


class Bells:
    """The bell for work, and one for each run that somebody watches."""

    def __init__(self, wire: Wire, topology: Topology) -> None:
        self._wire, self._topology = wire, topology
        self.work = Bell()
        self._runs: dict[str, Bell] = {}
        self._logs: OrderedDict[str, Listening] = OrderedDict()

    def ring(self, run_id: str) -> None:
        """Wakes those who watch a run."""
        bell = self._runs.get(run_id)
        if bell is not None:
            bell.ring()

    async def run(self, run_id: str, timeout: float) -> None:
        """Waits for news of a run."""
        bell = self._runs.setdefault(run_id, Bell())
        try:
            await bell.wait(timeout)
        finally:
            if not bell:
                self._runs.pop(run_id, None)

    async def listen(self, run_id: str) -> None:
        """Hears when the log of a run grows in another process; what cannot be heard is read a little later."""
        if run_id in self._logs:
            self._logs.move_to_end(run_id)
            return

        async def heard(message: Msg) -> None:
            del message
            self.ring(run_id)

        try:
            self._logs[run_id] = await self._wire.subscribe(self._topology.lines(run_id), heard)
        except Unclear:
            return
        if len(self._logs) > MOST_LISTENED:
            await self._wire.unsubscribe(self._logs.popitem(last=False)[1])

    def ring_all(self) -> None:
        """Wakes everybody: the store closes, or was away."""
        self.work.ring()
        for bell in self._runs.values():
            bell.ring()
