"""Who holds a key, and which run was made for an idempotency key: records that change by compare and set.

A record names a run and the attempt from which it holds. A run that is not there yet, or not yet in that attempt, is
on its way: it is waited for, and if it does not come, fenced off and taken over. No record expires.

A submission whose fate is unclear is taken back, unless somebody was given its run meanwhile, who asked again under the
same idempotency key. The record of that key decides which: `told` or `back`, whichever is written first.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Check
from tsuzuki.backends.nats.chain import Chain, Passed
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.frames import Frame, Tip, encode_row, extended
from tsuzuki.backends.nats.records import Records, Value
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.clock import Clock
from tsuzuki.errors import KeyHeld
from tsuzuki.lifecycle import Run, Status, request_facts

_TOLD: Final = "told"
_BACK: Final = "back"
SUBMITTER: Final = "submit"
"""Who cancels a run whose submission was answered with an error."""
GRACE: Final = 3.0
"""How long a run that is on its way is waited for (seconds)."""
LOOK: Final = 0.02


class Taken(Exception):
    """A run was made for the idempotency key before."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.id)
        self.run = run


class Keys:
    """The keys and idempotency keys of all tenants."""

    def __init__(self, chain: Chain, records: Records, topology: Topology, clock: Clock) -> None:
        self._chain, self._records, self._topology, self._clock = chain, records, topology, clock

    async def take_once(self, run: Run, patience: float = GRACE) -> None:
        """Takes the idempotency key of a run; `Taken` when there is a run for it."""
        if run.idempotency_key is not None:
            await self._take(self._topology.once(run.tenant, run.idempotency_key), run, patience, once=True)

    async def take(self, run: Run, patience: float = GRACE) -> None:
        """Takes the key of a run, for its attempt; refused with `KeyHeld` when an active run holds it."""
        if run.key is not None:
            await self._take(self._topology.key(run.tenant, run.key), run, patience, once=False)

    async def free_once(self, run: Run) -> None:
        """Frees the idempotency key of a run that was purged or not accepted."""
        if run.idempotency_key is not None:
            await self._free(self._topology.once(run.tenant, run.idempotency_key), run)

    async def free(self, run: Run) -> None:
        """Frees the key of a run that was not accepted."""
        if run.key is not None:
            await self._free(self._topology.key(run.tenant, run.key), run)

    async def may_take_back(self, run: Run) -> bool:
        """Tells whether nobody was given a run whose submission was unclear; from now on nobody is."""
        if run.idempotency_key is None:
            return True

        def back(record: Value) -> Value | None:
            return {**record, _BACK: True} if record.get("run") == run.id and not record.get(_TOLD) else None

        record = await self._records.change(self._topology.once(run.tenant, run.idempotency_key), back)
        return not (record.get("run") == run.id and record.get(_TOLD))

    async def holds(self, run: Run) -> bool:
        """Tells whether a run still has its key."""
        if run.key is None:
            return True
        record, _ = await self._records.read(self._topology.key(run.tenant, run.key))
        return bool(record.get("run") == run.id)

    async def given_back(self, active: Iterable[Run]) -> Check:
        """Gives keys back to the active runs that should have them.

        Streams are backed up one after the other: a record may name a later holder, of whom the journal does not know.
        """
        given, taken = 0, []
        for run in active:
            if run.key is None or await self.holds(run):
                continue
            try:
                await self.take(run)
                given += 1
            except KeyHeld as error:
                taken.append(f"run {run.number}: {error}")
        text = f"{given} given back to runs that should have them"
        do = "cancel one of the two runs" if taken else ""
        return Check("keys", ok=not taken, text="; ".join([text, *taken]), do=do)

    async def _take(self, subject: str, run: Run, patience: float, *, once: bool) -> None:
        mine: Value = {"run": run.id, "attempt": run.attempt}
        began, seen = self._clock.monotonic(), 0
        while True:
            try:
                record, seq = await self._records.read(subject)
                if record == mine:  # written before, and only the acknowledgement got lost
                    return
                if seq != seen:  # somebody else is on his way now: he has all the time
                    began, seen = self._clock.monotonic(), seq
                late = self._clock.monotonic() - began > GRACE
                way = self._is_free_for_once(subject, record, run, late) if once else self._is_free(record, run, late)
                if await way and await self._records.swap(subject, mine, seq):
                    return
            except Unclear:
                if self._clock.monotonic() - began > patience:
                    raise
            await asyncio.sleep(LOOK)

    async def _is_free_for_once(self, subject: str, record: Value, run: Run, late: bool) -> bool:
        """Tells whether nothing was made for an idempotency key, or what was made was taken back."""
        other = record.get("run", "")
        if not other or other == run.id:
            return True
        tip = await self._chain.end(other)
        if tip is None:
            return (late or _BACK in record) and await self._fenced(other, None)
        if tip.run is None or is_taken_back(tip.run):  # it was purged, is fenced off, or was never to run
            return True
        if _BACK in record and not tip.run.status.terminal:
            return late and await self._cancelled(tip, tip.run)  # whoever takes it back has not come so far
        if tip.seq > tip.first or await self._told(subject, other):
            raise Taken(tip.run)
        return False

    async def _told(self, subject: str, run_id: str) -> bool:
        """Writes down that somebody is given a run that nobody has claimed: its submitter may not take it back."""

        def told(record: Value) -> Value | None:
            ours = record.get("run") == run_id and _BACK not in record and _TOLD not in record
            return {**record, _TOLD: True} if ours else None

        record = await self._records.change(subject, told)
        return bool(record.get("run") == run_id and record.get(_TOLD))

    async def _cancelled(self, tip: Tip, run: Run) -> bool:
        """Cancels a run in place of a submitter that died while it took it back; tells whether that was written."""
        now = self._clock.now()
        ask = f.CancelAsked(at=now, by=SUBMITTER, reason="its submission was unclear")
        frame, row = extended(tip, run, request_facts(run, ask, frozenset()), self._chain.mark(), now)
        try:
            await self._chain.extend(run.id, tip, frame, row, patience=GRACE)
        except Passed:
            return False
        return True

    async def _is_free(self, record: Value, run: Run, late: bool) -> bool:
        other = record.get("run", "")
        if not other or other == run.id:
            return True
        tip = await self._chain.end(other)
        if tip is None:
            return late and await self._fenced(other, None)
        if tip.run is None:  # it was purged, or is fenced off
            return True
        if not tip.run.status.terminal:
            raise _held(run.key, tip.run)
        if tip.run.attempt >= record.get("attempt", 1):
            return True
        return late and await self._fenced(other, tip)  # it is being resumed

    async def _fenced(self, run_id: str, tip: Tip | None) -> bool:
        """Fences off whoever is on his way and does not come; tells whether he did not come after all."""
        try:
            if tip is None or tip.run is None:
                await self._chain.bury(run_id, None)
            else:
                again = msgspec.structs.replace(tip.run)
                frame = Frame(self._chain.mark(), again.position, tip.first, encode_row(again), [])
                await self._chain.extend(run_id, tip, frame, again, patience=GRACE)
        except Passed:
            return False
        return True

    async def _free(self, subject: str, run: Run) -> None:
        await self._records.change(subject, lambda record: {} if record.get("run") == run.id else None)


def is_taken_back(run: Run) -> bool:
    """Tells whether a run was cancelled because its submission was answered with an error."""
    return run.status is Status.CANCELLED and run.cancel_asked_by == SUBMITTER


def _held(key: str | None, holder: Run) -> KeyHeld:
    return KeyHeld(
        f"the key {key!r} is held by run {holder.number}, which is {holder.status}: wait for it, or cancel it",
        holder.id,
    )
