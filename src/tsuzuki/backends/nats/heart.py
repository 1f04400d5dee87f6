"""Beats for a worker whose event loop stands still for a while: a thread with a connection of its own.

An async function that computes for ten seconds without an `await` keeps its worker from showing that it lives, and
others would take its runs over, one after the other, and stand still in the same place. So a thread looks whether
the loop still turns, and beats in its stead; but not for ever: a loop that hangs is as good as dead.
"""

import asyncio
import logging
import threading
from typing import Final

import msgspec

from tsuzuki.backends import WorkerRecord
from tsuzuki.backends.nats.faults import ApiError, Unclear
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError

logger: Final = logging.getLogger("tsuzuki.nats")

LONGEST: Final = 60.0
"""For how long the thread beats for a loop that stands still (seconds)."""
FIRST: Final = 1.0
"""How often a worker beats, until it is seen how often it does (seconds)."""


class Heart:
    """Looks after the workers of one loop."""

    def __init__(self, options: Options, topology: Topology, clock: Clock) -> None:
        self._options, self._topology, self._clock = options, topology, clock
        self._loop = asyncio.get_running_loop()
        self._records: dict[str, WorkerRecord] = {}
        self._turned = self._beaten = clock.monotonic()
        self._interval = FIRST
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def beaten(self, worker: WorkerRecord) -> None:
        """Takes note that a worker beats by itself, or leaves."""
        now = self._clock.monotonic()
        if worker.stopped:
            self._records.pop(worker.id, None)
            return
        if worker.id in self._records:
            self._interval = min(max(now - self._beaten, 0.05), 10.0)
        self._records[worker.id], self._beaten = worker, now
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="tsuzuki-heart", daemon=True)
            self._thread.start()

    def beats_for(self, worker: str | None) -> bool:
        """Tells whether a worker is one of ours."""
        return worker in self._records

    async def close(self) -> None:
        """Leaves."""
        self._over.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _watch(self) -> None:
        while not self._over.wait(self._interval):
            if not self._turns():
                return
            if self._still():
                try:
                    asyncio.run(self._stand_in())
                except (StoreError, Unclear, ApiError) as error:
                    logger.debug("cannot beat for a loop that stands still: %s", error)

    def _turns(self) -> bool:
        """Asks the loop for a sign; tells whether it is there at all."""
        try:
            self._loop.call_soon_threadsafe(self._turn)
        except RuntimeError:  # it was closed, and the store with it
            return False
        return True

    def _turn(self) -> None:
        self._turned = self._clock.monotonic()

    def _still(self) -> bool:
        """Tells whether the loop has stood still for longer than two beats, but not for too long."""
        return 2 * self._interval < self._clock.monotonic() - self._turned < LONGEST

    async def _stand_in(self) -> None:
        wire = Wire(self._options)
        await wire.connect()
        try:
            beats = 0
            while self._still() and not self._over.is_set():
                beats += 1
                for worker in list(self._records.values()):
                    await self._beat(wire, worker, beats)
                await asyncio.sleep(self._interval)
        finally:
            await wire.close()

    async def _beat(self, wire: Wire, worker: WorkerRecord, beats: int) -> None:
        beaten = msgspec.structs.replace(worker, beats=worker.beats + beats, heartbeat_at=self._clock.now())
        await wire.publish(self._topology.worker(worker.id), msgspec.json.encode(beaten))
