"""Works on the jobs of a process: by strategy, with progress, until all of them have ended."""

import logging
from inspect import iscoroutinefunction
from typing import Final

from tsuzuki import settings
from tsuzuki.errors import BadUsage
from tsuzuki.llm import providers
from tsuzuki.llm.providers import Address
from tsuzuki.llm.providers.interface import NoBatches, Provider
from tsuzuki.llm.queue.batches import BatchWork
from tsuzuki.llm.queue.bulk import execute_bulk_sync
from tsuzuki.llm.queue.cancelling import cancel, cancelled, go_on
from tsuzuki.llm.queue.jobs import STRATEGY, JobQueue
from tsuzuki.llm.queue.progress import ProgressEvent, ProgressNotifier, ProgressStatus, Telling
from tsuzuki.llm.queue.submissions import NoLedger, Waiting
from tsuzuki.llm.queue.tracing import entered, following, tell

WINDOW: Final = 24 * 3600.0
"""How long a batch may take (seconds)."""
STRATEGIES: Final = ("sync", "batch", "auto")


class QueueWorker:
    """Works on processes of a queue with one provider."""

    def __init__(
        self,
        queue: JobQueue,
        address: Address | None = None,
        *,
        notifier: ProgressNotifier | None = None,
        concurrency: int | None = None,
        cache: bool | None = None,
    ) -> None:
        if iscoroutinefunction(getattr(notifier, "on_progress", None)):
            raise BadUsage("on_progress is called on a thread of its own: make it a plain def, not an async one")
        self._queue, self._address = queue, address
        self._notifier, self._concurrency, self._cache = notifier, concurrency, cache

    async def process(
        self, process_id: str, strategy: str | None = None, *, deadline: float | None = None
    ) -> dict[str, int]:
        """Works on a process until its jobs have ended; gives how many there are, by status.

        The strategy is looked up once, here: one that is changed meanwhile counts the next time.
        """
        queue = self._queue
        await go_on(queue, process_id)
        with following(await queue.trace_of(process_id)), Telling(self._notifier) as telling:
            with entered("Process", queue.clock, process_id=process_id, strategy=strategy) as result:
                await queue.recover()
                async with providers.shared(self._address) as provider:
                    chosen = choose(provider, strategy or await stored(queue), deadline)
                    result["strategy"] = chosen
                    await self._work(process_id, provider, chosen, telling)
                counts = await queue.counts(process_id)
                result.update(counts)
            telling.tell(_last(process_id, counts, stopped=await cancelled(queue, process_id)))
        return counts

    async def _work(self, process_id: str, provider: Provider, strategy: str, telling: Telling) -> None:
        # Batches that are open go on to their end whatever the strategy is by now: they are paid for.
        if provider.batches is not None:
            try:
                await self._batches(process_id, provider, telling, only_open=strategy == "sync")
            except NoBatches as error:
                tell(logging.WARNING, f"the questions are asked one by one: {error}", process_id=process_id)
                strategy = "sync"
        if strategy == "sync":
            concurrency = self._concurrency or concurrency_of(provider)
            await execute_bulk_sync(self._queue, process_id, provider, concurrency, telling, cache=self._cache)

    async def _batches(self, process_id: str, provider: Provider, telling: Telling, *, only_open: bool) -> None:
        work = BatchWork(self._queue, provider, NoLedger())
        while True:
            try:
                state = await work.advance(process_id, only_open=only_open)
            except Waiting as waiting:
                telling.tell(ProgressEvent(process_id, "IN_PROGRESS", waiting.text, waiting.total, waiting.done))
                await self._queue.clock.sleep(waiting.seconds)
            else:
                if state is not None:
                    done, failed = state.done, state.failed
                    telling.tell(
                        ProgressEvent(process_id, "IN_PROGRESS", state.status, state.total, done + failed, failed)
                    )
                return

    async def cancel(self, process_id: str) -> int:
        """Stops a process, and asks for the end of its open batches; finished results stay, the rest waits.

        Whoever works on it sends nothing more. `process` goes on with it.
        """
        await cancel(self._queue, process_id)
        async with providers.shared(self._address) as provider:
            if provider.batches is None:
                return 0
            return await BatchWork(self._queue, provider, NoLedger()).cancel(process_id)


def _last(process_id: str, counts: dict[str, int], *, stopped: bool) -> ProgressEvent:
    """Return the last event; where jobs are unfinished it says whether that was cancelled or others work on them."""
    done, failed = counts.get("COMPLETED", 0), counts.get("FAILED", 0)
    text, left = f"{done} answered, {failed} failed", sum(counts.values()) - done - failed
    status: ProgressStatus = "FAILED" if failed and not done else "COMPLETED"
    if left and stopped:
        status, text = "FAILED", f"cancelled: {text}, {left} not asked"
    elif left:
        status, text = "IN_PROGRESS", f"{text}, {left} in progress in another worker"
    return ProgressEvent(process_id, status, text, sum(counts.values()), done + failed, failed)


def concurrency_of(provider: Provider) -> int:
    """Gives how many questions are asked at once: as set, else what suits the provider."""
    return int(settings.value("TSUZUKI_LLM_CONCURRENCY") or provider.capability.concurrency)


async def stored(queue: JobQueue) -> str | None:
    """Gives the strategy that is set: in the environment, else with the queue."""
    return settings.value("TSUZUKI_LLM_STRATEGY") or await queue.configured(STRATEGY)


def choose(provider: Provider, asked: str | None, deadline: float | None = None) -> str:
    """Gives the strategy that is followed: what nobody knows is sync, and so is a batch where there are none.

    `auto` is batch where the provider has batches and the deadline (seconds from now) leaves them their day.
    """
    wanted = asked if asked in STRATEGIES else "sync"
    if wanted == "sync":
        return "sync"
    if provider.batches is None:
        level = logging.INFO if wanted == "batch" else logging.DEBUG
        tell(level, f"{provider.name} has no batches: strategy {wanted} falls back to sync", provider=provider.name)
        return "sync"
    if wanted == "auto" and deadline is not None and deadline < WINDOW:
        return "sync"
    return "batch"
