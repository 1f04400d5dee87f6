"""The durable steps behind `ask` and `ask_all`: what is planned, asked, intended and submitted is a fact."""

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from tsuzuki.clock import SystemClock
from tsuzuki.context import FRAME, Frame, current
from tsuzuki.errors import BadUsage, LLMError, ProviderUnclear
from tsuzuki.facts import Spent
from tsuzuki.flow import task
from tsuzuki.llm import providers
from tsuzuki.llm.answering import answered
from tsuzuki.llm.cached import wanted
from tsuzuki.llm.providers import Address, bare
from tsuzuki.llm.providers.interface import Intent, Provider
from tsuzuki.llm.questions import Question, Reply, digest
from tsuzuki.llm.queue.submissions import Ledger, Waiting
from tsuzuki.llm.queue.worker import choose, concurrency_of, stored
from tsuzuki.llm.sharing import shared_queue

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
        return dict(plain(await paid(provider, read(Question, question), cache)))


async def paid(provider: Provider, question: Question, cache: bool | None) -> Reply:
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
async def plan_step(address: dict[str, str], how: dict[str, Any]) -> dict[str, Any]:
    """Decides who is asked and how; the process id comes of the run and this step, unless the process has a name."""
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


# Many: in a batch


@task(name="llm.intent")
async def intent_step(process_id: str, note: Callable[[], None]) -> dict[str, Any]:
    """Records that a batch of a process is going to be created."""
    note()
    return {"process_id": process_id, "at": SystemClock().now()}


@task(name="llm.send")
async def send_step() -> float:
    """Records that a batch is being created now: a holder whose claim was taken over fails here, and sends nothing."""
    return SystemClock().now()


@task(name="llm.unsent")
async def unsent_step() -> None:
    """Records that the provider did not take what was sent."""


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
    except LLMError as error:
        what = "it is not known whether a" if isinstance(error, ProviderUnclear) else "no"
        current().log.warning(f"{what} batch was created: {error}")
        raise NotYet(str(error)) from error
    current().log.info(f"the questions are in batch {batch}")
    return batch


class RunLedger:
    """Intents and ids of batches as facts of the run: another machine finds them there, and in the asker's ledger.

    They are recorded as calls of the frame that asks, so that every `llm.batch` step made there finds them.
    """

    def __init__(self, beside: Ledger, frame: Frame) -> None:
        self._beside, self._frame = beside, frame
        self._elsewhere: set[str] = set()
        """Intents that another run has noted in the asker's ledger: whether they were sent is not known here."""
        self._sends: dict[str, int] = {}

    @contextmanager
    def _there(self) -> Iterator[None]:
        token = FRAME.set(self._frame)
        try:
            yield
        finally:
            FRAME.reset(token)

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Records an intent."""
        now: list[None] = []
        with self._there():
            noted = await intent_step.keyed(intent.id)(intent.process_id, lambda: now.append(None))
        kept, first = await self._beside.intend(Intent(intent.id, intent.process_id, noted["at"], intent.jobs))
        if not first and now:
            self._elsewhere.add(intent.id)
        return kept, first and bool(now)

    async def last_sent(self, intent: Intent) -> float | None:
        """Return when the batch was last sent, unless the provider surely did not take it; None if it never was."""
        sent, number = None, 0
        with self._there():
            while self._frame.position_of(send_step, f"{intent.id}/{number}"):
                sent = await send_step.keyed(f"{intent.id}/{number}")()
                if self._frame.position_of(unsent_step, f"{intent.id}/{number}"):
                    sent = None
                number += 1
        self._sends[intent.id] = number
        return SystemClock().now() if sent is None and intent.id in self._elsewhere else sent

    async def sending(self, intent: Intent) -> None:
        """Record that the batch is being sent; raise if the claim of this run was taken over."""
        number = self._sends.setdefault(intent.id, 0)
        self._sends[intent.id] += 1
        with self._there():
            await send_step.keyed(f"{intent.id}/{number}")()

    async def unsent(self, intent: Intent) -> None:
        """Record that the provider did not take what was sent last."""
        if number := self._sends.get(intent.id, 0):
            with self._there():
                await unsent_step.keyed(f"{intent.id}/{number - 1}")()

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Records the id of the batch: the asker's ledger has it first, and may have it from another run."""
        try:
            with self._there():
                batch: str = await submit_step.keyed(intent.id)(lambda: self._beside.submitted(intent, create))
        except NotYet as error:
            raise error.__cause__ or error from None

        async def known() -> str:
            return batch

        return await self._beside.submitted(intent, known)  # whoever has lost it there has it again


@task(name="llm.batch")
async def batch_step(work: Callable[[], Awaitable[str]]) -> str:
    """Answers many questions through batches; while one is open the run waits, and holds no worker.

    The answers are in the queue then, and become facts one by one. Returns the strategy that was followed.
    """
    return await work()


@task(name="llm.delivered")
async def delivered_step(process_id: str) -> int:
    """Deletes the jobs of a process: its answers are facts by now."""
    async with shared_queue() as queue:
        return await queue.delete_process(process_id)
