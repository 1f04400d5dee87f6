"""The faults: what goes wrong when, out of a seed alone, and how each is done to the running product and undone."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.parts import Part
from tests.chaos.surroundings import Disk, Network
from tests.chaos.witness import CALLS, append

LEASE = 3.0
"""How long a worker may be silent (seconds)."""
PATIENCE = 10.0
"""How long the next fault waits for progress (seconds)."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: after a pause, with a victim, for some seconds."""

    pause: float
    kind: str
    victim: str
    lasts: float
    size: float = 0.0


@dataclass
class Victims:
    """What can be harmed."""

    parts: dict[str, Part]
    disks: dict[str, Disk]
    hosts: tuple[str, ...]
    clocks: dict[str, Path]
    network: Network | None = None

    def kinds(self) -> dict[str, tuple[float, list[str]]]:
        """Gives how likely each kind of fault is, and whom it can befall."""
        hanging = [name for name, disk in self.disks.items() if disk.hangs]
        found = {
            "kill": (5.0, sorted(self.parts)),
            "freeze": (1.5, sorted(self.parts)),
            "stall": (1.5, sorted(self.parts)),
            "full disk": (1.0, sorted(self.disks)),
            "slow disk": (1.0, sorted(hanging)),
            "clock": (1.0, sorted(self.clocks)),
            "cut": (2.0, list(self.hosts)),
            "slow link": (1.0, list(self.hosts)),
        }
        return {kind: chances for kind, chances in found.items() if chances[1]}


def sequence(seed: int, kinds: dict[str, tuple[float, list[str]]]) -> Iterator[Fault]:
    """Gives faults without end; the same seed and the same victims give the same faults."""
    chance = random.Random(f"faults {seed}")
    while True:
        kind = chance.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        lasts = {
            "kill": chance.choice([0.0, 0.0, chance.uniform(0, 2)]),
            "freeze": chance.uniform(LEASE + 0.5, LEASE + 4),
            "stall": chance.uniform(0.05, 1.0),
            "full disk": chance.uniform(1, 4),
            "slow disk": chance.uniform(1, 5),
            "clock": 0.0,
            "cut": chance.uniform(0.3, 2 * LEASE),
            "slow link": chance.uniform(1, 5),
        }[kind]
        victim = chance.choice(kinds[kind][1])
        size = chance.choice([-3600.0, -120.0, 120.0, 3600.0]) if kind == "clock" else 0.0
        yield Fault(chance.uniform(0.2, 3.0), kind, victim, lasts, size)


class Wrecker:
    """Does the faults of a sequence for so many seconds; each is undone when its time is over."""

    def __init__(self, victims: Victims, events: Path) -> None:
        self._victims, self._events = victims, events
        self._seen = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self.done: list[Fault] = []

    async def run(self, faults: Iterator[Fault], seconds: float) -> None:
        until = time.monotonic() + seconds
        for fault in faults:
            if time.monotonic() + fault.pause > until:
                break
            await asyncio.sleep(fault.pause)
            await self._progress(until)
            task = asyncio.create_task(self._befall(fault))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _progress(self, until: float) -> None:
        """Waits until somebody has called something since the last fault, or it takes too long.

        So a machine on which processes start slowly is disturbed at as many places as a quick one.
        """
        patience = min(until, time.monotonic() + PATIENCE)
        while self._size() == self._seen and time.monotonic() < patience:
            await asyncio.sleep(0.05)
        self._seen = self._size()

    def _size(self) -> int:
        calls = self._events.with_name(CALLS)
        return calls.stat().st_size if calls.exists() else 0

    async def _befall(self, fault: Fault) -> None:
        does: dict[str, Callable[[Fault], Awaitable[None]]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "stall": self._freeze,
            "full disk": self._full,
            "slow disk": self._slow_disk,
            "clock": self._clock,
            "cut": self._cut,
            "slow link": self._slow_link,
        }
        self.done.append(fault)
        await does[fault.kind](fault)

    def _note(self, fault: Fault, what: str, pid: int = 0) -> None:
        append(self._events, at=time.monotonic(), what=what, part=fault.victim, pid=pid, lasts=round(fault.lasts, 2))

    async def _kill(self, fault: Fault) -> None:
        part = self._victims.parts[fault.victim]
        async with part.lock:
            self._note(fault, "kill", part.pid)
            await asyncio.to_thread(part.kill)  # it may have to wait for a disk that hangs
            self._note(fault, "killed", part.pid)
            await asyncio.sleep(fault.lasts)
            part.start()

    async def _freeze(self, fault: Fault) -> None:
        part = self._victims.parts[fault.victim]
        async with part.lock:
            self._note(fault, fault.kind, part.pid)
            part.send(signal.SIGSTOP)
            await asyncio.sleep(fault.lasts)
            part.send(signal.SIGCONT)
            self._note(fault, "goes on", part.pid)

    async def _full(self, fault: Fault) -> None:
        disk = self._victims.disks[fault.victim]
        self._note(fault, "full disk")
        await asyncio.to_thread(disk.fill)
        await asyncio.sleep(fault.lasts)
        disk.clear()
        self._note(fault, "room again")
        server = self._victims.parts.get(fault.victim)
        if server is not None:  # a server that met a full disk is started anew: so says the page about operating
            async with server.lock:
                await asyncio.to_thread(server.stop)
                server.start()

    async def _slow_disk(self, fault: Fault) -> None:
        """Lets the disk hang again and again, and go on for a moment."""
        disk = self._victims.disks[fault.victim]
        self._note(fault, "slow disk")
        until = time.monotonic() + fault.lasts
        while time.monotonic() < until:
            await asyncio.to_thread(disk.hang, 0.25)
            await asyncio.sleep(0.05)
        self._note(fault, "quick disk")

    async def _clock(self, fault: Fault) -> None:
        self._note(fault, f"clock {fault.size:+g} s")
        file = self._victims.clocks[fault.victim]
        wrong = float(file.read_text() or 0) if file.exists() else 0.0
        file.write_text("0" if abs(wrong) > 7200 else str(wrong + fault.size))

    async def _cut(self, fault: Fault) -> None:
        assert self._victims.network is not None
        self._note(fault, "cut")
        self._victims.network.cut(fault.victim)
        await asyncio.sleep(fault.lasts)
        self._victims.network.mend(fault.victim)
        self._note(fault, "mended")

    async def _slow_link(self, fault: Fault) -> None:
        assert self._victims.network is not None
        self._note(fault, "slow link")
        self._victims.network.quick(fault.victim)
        self._victims.network.slow(fault.victim)
        await asyncio.sleep(fault.lasts)
        self._victims.network.quick(fault.victim)
        self._note(fault, "quick link")
