"""The durable steps behind `ask` and `ask_all`: what is planned, asked, intended and submitted is a fact."""

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from tsuzuki.clock import SystemClock
from tsuzuki.context import FRAME, current
from tsuzuki.errors import BadUsage, LLMError, ProviderUnavailable, ProviderUnclear
from tsuzuki.facts import Spent
from tsuzuki.flow import task
from tsuzuki.llm import providers
from tsuzuki.llm.answering import answered
from tsuzuki.llm.cached import wanted
from tsuzuki.llm.providers import Address, bare
from tsuzuki.llm.providers.interface import Intent, Provider
from tsuzuki.llm.questions import Question, Reply, digest, failed
from tsuzuki.llm.queue.batches import BatchWork
from tsuzuki.llm.queue.keeping import as_reply, keep, tries_of
from tsuzuki.llm.queue.submissions import Ledger, NoLedger, Process, Waiting
from tsuzuki.llm.queue.worker import choose, concurrency_of, stored
from tsuzuki.llm.sharing import shared_queue
from tsuzuki.retry import Later

KEY: Final = 24
"""How many digits of a digest are the key of a question."""


class Plan(msgspec.Struct, frozen=True):
    """How many questions are asked: decided once for a run, whatever is set later."""

    process_id: str
    strategy: str
    concurrency: int
    provider: str
    base_url: str
    model: str
    cache: bool | None = None
    """Whether answers are kept and given again; None: as it is set."""

    @property
    def address(self) -> Address:
        """Who is asked."""
        return Address(self.provider, self.base_url, self.model)


def plain(value: Any) -> Any:
    """Gives a value as plain JSON."""
    return msgspec.to_builtins(value)


def read(kind: Any, value: Any) -> Any:
    """Gives what plain JSON stands for."""
    return msgspec.convert(value, kind)


# One question


@task(name="llm.ask")
async def ask_step(question: dict[str, Any], address: dict[str, str], cache: bool | None = None) -> dict[str, Any]:
    """Answers one question."""
    at = Address(**address)
    async with providers.shared(at) as provider:
        return dict(plain(await _paid(provider, read(Question, question), cache)))


async def _paid(provider: Provider, question: Question, cache: bool | None) -> Reply:
    """Answers a question, and notes with the step what that took, also where it came to nothing."""
    try:
        reply = await answered(provider, question, cache=cache)
    except LLMError as error:
        if isinstance(error.reply, Reply):
            spend(provider.name, error.reply)
        raise
    spend(provider.name, reply)
    return reply


def spend(provider: str, reply: Reply) -> None:
    """Notes with the step that is under way what an answer took."""
    if reply.cached:
        FRAME.get().spend(Spent(provider, reply.model, requests=1, cached=1))
    elif reply.usage.input or reply.usage.output or reply.uncertain or not reply.error:
        used, tries, uncertain = reply.usage, reply.tries - reply.unasked, reply.uncertain
        unpriced, cost = (tries, 0.0) if reply.cost is None else (uncertain, reply.cost)
        spent = Spent(provider, reply.model, tries, 0, unpriced, used.input, used.output, cost, uncertain)
        FRAME.get().spend(spent)


# Many: the plan


@task(name="llm.plan")
async def plan_step(asked: str, address: dict[str, str], how: dict[str, Any]) -> dict[str, Any]:
    """Decides who is asked and how; the process id comes of the run and this step, unless the process has a name."""
    del asked  # it tells this plan from others
    at = Address(**address).filled()
    async with providers.shared(at) as provider:
        strategy = how["strategy"]
        if strategy is None:
            async with shared_queue() as queue:
                strategy = await stored(queue)
        chosen = choose(provider, strategy, how["deadline"])
        if strategy == "batch" and chosen == "sync":
            current().log.info(f"{provider.name} has no batches: the questions are asked one by one")
        concurrency = how["concurrency"] or concurrency_of(provider)
    process = str(uuid.uuid5(uuid.NAMESPACE_OID, how.get("process") or _whose()))
    place = bare(at.base_url)
    if Address(at.provider, place, at.model).filled() != at:
        raise BadUsage("a password in base_url= would be written into the journal: set TSUZUKI_LLM_BASE_URL instead")
    cache = wanted() if how.get("cache") is None else how["cache"]
    return dict(plain(Plan(process, chosen, concurrency, at.provider, place, at.model, cache)))


def _whose() -> str:
    return f"{current().run_id}/{getattr(FRAME.get(), 'step', '')}" if current().run_id else str(uuid.uuid4())


def keys_of(questions: Iterable[Question]) -> list[str]:
    """Gives each question its key: what it says, and how many equal ones were before it."""
    seen: dict[str, int] = {}
    keys = []
    for question in questions:
        said = digest(question)[:KEY]
        seen[said] = count = seen.get(said, -1) + 1
        keys.append(f"{said}#{count}" if count else said)
    return keys


def job_of(process_id: str, key: str) -> str:
    """Gives the id of the job of a question: a UUID that every machine gives it."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{process_id}/{key}".encode()).digest()[:16], version=4))


# Many: one by one


@task(name="llm.request")
async def request_step(item: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Answers one of many, through the queue: an answer that is there already is not asked for again."""
    how: Plan = read(Plan, plan)
    job_id = job_of(how.process_id, item["key"])
    async with shared_queue() as queue, providers.shared(how.address) as provider:
        job = await queue.begin(how.process_id, job_id, item["question"])
        if job.status == "COMPLETED":
            reply = as_reply(job)
            spend(provider.name, reply)
            return dict(plain(reply))
        try:
            reply = await _paid(provider, read(Question, item["question"]), how.cache)
        except LLMError as error:
            told = failed(error)
            await queue.write(lambda db: keep(queue, db, job_id, told))
            raise
        except BaseException:
            await queue.put_back(job_id)
            raise
        await queue.write(lambda db: keep(queue, db, job_id, reply))
        return dict(plain(reply))


# Many: in a batch


@task(name="llm.intent")
async def intent_step(note: Callable[[], None]) -> float:
    """Records that a batch is going to be created."""
    note()
    return SystemClock().now()


class NotYet(BaseException):
    """Leaves a step without an outcome, as a crash would: the step around it waits, and then makes it again.

    A `Later` here would wait within the step around it, which holds a worker for as long as that takes.
    """


@task(name="llm.submit")
async def submit_step(create: Callable[[], Awaitable[str]]) -> str:
    """Records the id of a batch, once that is known."""
    try:
        batch = await create()
    except Waiting as waiting:
        raise NotYet(waiting.text) from waiting
    except ProviderUnavailable as error:
        what = "it is not known whether a" if isinstance(error, ProviderUnclear) else "no"
        current().log.warning(f"{what} batch was created: {error}")
        raise NotYet(str(error)) from error
    current().log.info(f"the questions are in batch {batch}")
    return batch


class RunLedger:
    """Intents and ids of batches as facts of the run: another machine finds them there, and in the asker's ledger."""

    def __init__(self, beside: Ledger) -> None:
        self._beside = beside

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Records an intent."""
        now: list[None] = []
        at = await intent_step.keyed(intent.id)(lambda: now.append(None))
        kept, first = await self._beside.intend(Intent(intent.id, intent.process_id, at, intent.jobs))
        return kept, first and bool(now)

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Records the id of the batch: the asker's ledger has it first, and may have it from another run."""
        try:
            batch: str = await submit_step.keyed(intent.id)(lambda: self._beside.submitted(intent, create))
        except NotYet as error:
            raise error.__cause__ or error from None

        async def known() -> str:
            return batch

        return await self._beside.submitted(intent, known)  # whoever has lost it there has it again


@task(name="llm.batch")
async def batch_step(
    questions: list[dict[str, Any]], keys: list[str], plan: dict[str, Any], process: Process | None = None
) -> list[dict[str, Any]]:
    """Answers many questions through a batch; while it is open the run waits, and holds no worker."""
    how: Plan = read(Plan, plan)
    ledger = RunLedger(NoLedger() if process is None else process.ledger)
    resumed = current().resumed or (process is not None and process.resumed)
    ids = [job_of(how.process_id, key) for key in keys]
    async with shared_queue() as queue, providers.shared(how.address) as provider:
        await queue.enqueue(how.process_id, questions, ids=ids)
        try:
            await BatchWork(queue, provider, ledger, resumed).advance(how.process_id)
        except Waiting as waiting:
            current().progress(waiting.done, waiting.total or len(ids), waiting.text)
            raise Later(waiting.seconds, waiting.text) from None
        tried = await tries_of(queue, how.process_id)
        found = {job.id: as_reply(job, tried) async for job in queue.each_result(how.process_id)}
        for reply in found.values():
            spend(provider.name, reply)
    lost = Reply(error="there is no answer", finish="error")
    return [dict(plain(found.get(each, lost))) for each in ids]


@task(name="llm.delivered")
async def delivered_step(process_id: str) -> int:
    """Deletes the jobs of a process: its answers are facts by now."""
    async with shared_queue() as queue:
        return await queue.delete_process(process_id)
