"""Ends the batches of a run that is cancelled: as well as one can, and as often as one likes."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from tsuzuki import facts as f
from tsuzuki import settings
from tsuzuki.clock import SystemClock
from tsuzuki.errors import BadUsage, TsuzukiError
from tsuzuki.lifecycle import Run
from tsuzuki.llm import providers
from tsuzuki.llm.providers import Address
from tsuzuki.llm.providers.interface import Intent
from tsuzuki.llm.queue import looking
from tsuzuki.llm.queue.batches import BatchWork, sought
from tsuzuki.llm.queue.cancelling import cancel
from tsuzuki.llm.queue.jobs import FILE
from tsuzuki.llm.queue.submissions import NoLedger
from tsuzuki.llm.sharing import shared_queue
from tsuzuki.runs import Runs

logger: Final = logging.getLogger("tsuzuki.llm")

PATIENCE: Final = 10.0
"""How long a provider is asked to end a batch (seconds)."""


MOST_READ: Final = 20_000
"""So much of the end of a journal is looked through: a run that has a batch open does little else."""
_PAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that was open when its run was cancelled; `error` says why its provider could not be asked to end it.

    Where it is not known whether one was created, and none is found, it has no id.
    """

    provider: str
    batch: str
    error: str = ""

    def __str__(self) -> str:
        if not self.batch:
            return f"a batch that {self.provider} may have been creating goes on, should there be one: {self.error}"
        if self.error:
            return f"batch {self.batch} of {self.provider} goes on, and is paid for: {self.error}"
        return f"{self.provider} was asked to end batch {self.batch}; what it has done is kept, and found on resume"


async def end_here(address: Address, process_id: str) -> None:
    """Asks for the end of the open batches that the queue of this process knows of."""
    try:
        async with asyncio.timeout(PATIENCE), shared_queue() as queue:
            await cancel(queue, process_id)  # whoever can be asked there: here its jobs wait
            async with providers.shared(address) as provider:
                await BatchWork(queue, provider, NoLedger()).cancel(process_id)
    except (TsuzukiError, TimeoutError) as error:
        logger.warning("the batches of process %s go on: %s", process_id, error)


async def end_batches(runs: Runs, row: Run, *, log: bool = True) -> list[Ended]:
    """Asks for the end of the batches that a run had open when it was cancelled at once: its journal names them.

    Nobody executed it (it waited, or whoever did is dead), so whoever cancelled it asks; the key of the provider has to
    be in the environment here. What became of it is logged, unless the caller tells it otherwise.
    """
    noted = await _noted(runs, row)
    await _let_wait(noted.processes)
    ended = [await _end(address, batch) for address, batch in noted.open()]
    ended += [await _sought_and_ended(address, intent, noted.known) for address, intent in noted.unclear()]
    for each in ended if log else ():
        logger.log(logging.WARNING if each.error else logging.INFO, "run %s: %s", row.number, each)
    return ended


async def has_open_batches(runs: Runs, row: Run) -> bool:
    """Tells whether a run has batches that it has not collected, or may have created one: whoever resumes it does."""
    noted = await _noted(runs, row)
    return bool(noted.batches or noted.sent)


async def _noted(runs: Runs, row: Run) -> "_Noted":
    noted = _Noted()
    position = max(row.position - MOST_READ, 0)
    while entries := await runs.backend.read(row.id, after=position, limit=_PAGE):
        for entry in entries:
            noted.take(entry.fact)
        position = entries[-1].position
    return noted


async def _let_wait(processes: Collection[str]) -> None:
    """Lets the jobs wait that the queue of this machine has of processes; that of another sees that nobody looks."""
    if processes and (settings.data_dir() / FILE).exists():
        async with shared_queue() as queue:
            for process in processes:
                await cancel(queue, process)


async def _end(address: Address, batch: str) -> Ended:
    try:
        async with asyncio.timeout(PATIENCE), providers.shared(address) as provider:
            if provider.batches is not None:
                await provider.batches.cancel(batch)
    except (TsuzukiError, TimeoutError) as error:
        return Ended(address.provider, batch, str(error) or "it did not answer in time")
    return Ended(address.provider, batch)


async def _sought_and_ended(address: Address, intent: Intent, known: frozenset[str]) -> Ended:
    """Ends a batch of which the journal has the intent alone: whoever was creating it did not come to note its id."""
    try:
        async with asyncio.timeout(PATIENCE), providers.shared(address) as provider:
            if provider.batches is None:
                raise BadUsage(f"{provider.name} has no batches")
            batch = await sought(provider.batches, intent, known, SystemClock())
    except (TsuzukiError, TimeoutError) as error:
        return Ended(address.provider, "", str(error) or "it did not answer in time")
    return await _end(address, batch)


@dataclass(slots=True)
class _Noted:
    """What a journal says of batches: who was asked under which process, and which batches were created for it."""

    addresses: dict[str, Address] = field(default_factory=dict)
    processes: set[str] = field(default_factory=set)
    """Those whose batches are not all over."""
    intents: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The process of each batch that was meant to be created, and when."""
    batches: dict[str, list[str]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    """The intents whose batches were sent, as long as nothing is known of them."""
    known: frozenset[str] = frozenset()

    def take(self, fact: f.Fact | f.Unknown) -> None:
        match fact:
            case f.StepDone(name="llm.plan"):
                plan: Any = msgspec.json.decode(fact.result)
                self.addresses[plan["process_id"]] = Address(plan["provider"], plan["base_url"], plan["model"])
            case f.StepStarted(name="llm.batch"):
                self.processes.add(fact.key)
            case f.StepDone(name="llm.intent"):
                intent: Any = msgspec.json.decode(fact.result)
                self.intents[fact.key] = intent["process_id"], intent["at"]
            case f.StepDone(name="llm.send"):
                self.sent.add(fact.key.partition("/")[0])
            case f.StepDone(name="llm.unsent"):
                self.sent.discard(fact.key.partition("/")[0])
            case f.StepDone(name="llm.submit"):
                batch = msgspec.json.decode(fact.result, type=str)
                process, _ = self.intents.get(fact.key, ("", 0.0))
                self.batches.setdefault(process, []).append(batch)
                self.known |= {batch}
                self.sent.discard(fact.key)
            case f.StepDone(name="llm.batch"):  # one that failed is collected by whoever resumes
                self.batches.pop(fact.key, None)
                self.processes.discard(fact.key)
                self.sent -= {key for key, (process, _) in self.intents.items() if process == fact.key}

    def open(self) -> list[tuple[Address, str]]:
        """Gives the batches of processes that are not over; one that is over does not mind being ended."""
        known = ((self.addresses.get(process), found) for process, found in self.batches.items())
        return [(address, batch) for address, found in known if address is not None for batch in found]

    def unclear(self) -> list[tuple[Address, Intent]]:
        """Gives the batches that may have been created; what is in them is known where the queue here has it."""
        folder = settings.data_dir()
        meant = ((key, *self.intents[key]) for key in sorted(self.sent) if key in self.intents)
        made = [
            (self.addresses.get(process), Intent(key, process, at, looking.placed(folder, key)))
            for key, process, at in meant
        ]
        return [(address, intent) for address, intent in made if address is not None]
