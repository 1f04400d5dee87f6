"""`ask`, `answer` and `ask_all`: questions as durable calls inside a run, and as plain calls outside one."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from dataclasses import asdict
from operator import attrgetter
from typing import Any, Final, TypedDict, TypeVar, overload

import msgspec
from pydantic import BaseModel
from typing_extensions import Unpack

from tsuzuki.context import FRAME, MapOptions, current, in_async_code
from tsuzuki.errors import BadUsage, LLMError, ProviderDenied
from tsuzuki.flow import task
from tsuzuki.llm.answering import detail_of
from tsuzuki.llm.ending import end_here
from tsuzuki.llm.providers import Address
from tsuzuki.llm.providers import shared as shared_provider
from tsuzuki.llm.providers.interface import NoBatches
from tsuzuki.llm.questions import Answer, Question, Reply, Request, Usage, answer_of, digest, failed, raised
from tsuzuki.llm.queue.batches import BatchWork
from tsuzuki.llm.queue.jobs import JobQueue
from tsuzuki.llm.queue.keeping import as_reply, keep, tries_of
from tsuzuki.llm.queue.submissions import NoLedger, Process, Waiting
from tsuzuki.llm.queue.worker import STRATEGIES, QueueWorker
from tsuzuki.llm.sharing import shared_queue
from tsuzuki.llm.steps import (
    Plan,
    RunLedger,
    ask_step,
    batch_step,
    delivered_step,
    job_of,
    keys_of,
    paid,
    plain,
    plan_step,
    read,
    spend,
)
from tsuzuki.options import known
from tsuzuki.results import Failure
from tsuzuki.retry import Later
from tsuzuki.spending import dollars

Model = TypeVar("Model", bound=BaseModel)
Given = TypeVar("Given")

AT_ONCE: Final = 64
"""How many answers of a batch are recorded at once."""


class Options(TypedDict, total=False):
    """What can be said beside the prompt."""

    system: str
    provider: str
    base_url: str
    model: str
    temperature: float | None
    max_tokens: int | None
    cache: bool


@overload
def ask(schema: type[Model], prompt: str, **options: Unpack[Options]) -> Awaitable[Model]: ...
@overload
def ask(schema: type[str], prompt: str, **options: Unpack[Options]) -> Awaitable[str]: ...
def ask(schema: Any, prompt: str, **options: Unpack[Options]) -> Any:
    """Asks one question and gives an instance of a pydantic model, or text for `str`.

    In a run the answer is a fact: it is asked for once. Awaited in async code; a sync flow gets the value itself.
    With `cache` the answer to an equal question may be an earlier one; unless it is set, it is not.
    """
    known("llm.ask", options, Options.__annotations__)
    wanted = None if schema is str else schema
    at = asdict(Address(options.get("provider", ""), options.get("base_url", ""), options.get("model", "")))
    said = {name: options[name] for name in ("system", "model", "temperature", "max_tokens") if name in options}
    request = Request(prompt, schema=wanted, **said)  # type: ignore[arg-type] # each has its type above
    more = {} if "cache" not in options else {"cache": options["cache"]}  # a step is known by its arguments
    return _then(ask_step(plain(request.question()), at, **more), lambda reply: _single(reply, wanted))


def answer(request: Request, *, provider: str = "", base_url: str = "", model: str = "") -> Awaitable[Answer]:
    """Asks one question and gives the whole answer: beside what `ask` gives, what it took and cost."""
    at = asdict(Address(provider, base_url, model))
    return _then(  # type: ignore[no-any-return] # awaited, or in a sync flow the value
        ask_step(plain(request.question()), at), lambda reply: answer_of(read(Reply, reply), request.schema)
    )


def _single(reply: Any, wanted: Any) -> Any:
    answer = answer_of(read(Reply, reply), wanted)
    return answer.text if wanted is None else answer.data


def ask_all(
    requests: Iterable[Request],
    *,
    strategy: str | None = None,
    provider: str = "",
    base_url: str = "",
    model: str = "",
    concurrency: int | None = None,
    deadline: float | None = None,
    cache: bool | None = None,
    process: Process | None = None,
) -> Awaitable[list[Answer]]:
    """Asks many questions and gives their answers in order; one without an answer has its `error`.

    `strategy`: sync (directly, so many at once), batch (the provider's batches: cheaper, within a day), auto (batch
    where there are some and the `deadline`, in seconds, allows it); as set where none is given. In a run answers,
    intents and batches are facts: a crash asks at most what was under way again, and never creates a second batch.
    `cache`: whether the answers to equal questions are kept and given again, where they are asked directly.
    `process`: a name and a ledger of the asker's own, by which another run finds the same batches; in async flows.
    """
    if strategy is not None and strategy not in STRATEGIES:
        raise BadUsage(f"ask_all(strategy=…) is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    asked = list(requests)
    for request in asked:
        if not isinstance(request, Request):
            raise BadUsage(f"ask_all([…]) takes an llm.Request(…) for each question, not {type(request).__name__}")
    questions = [request.question() for request in asked]
    how = {"strategy": strategy, "deadline": deadline, "concurrency": concurrency}
    how |= {} if cache is None else {"cache": cache}  # a step is known by its arguments: unsaid, it is none
    at = asdict(Address(provider, base_url, model))
    if process is not None:
        _check(process, asked)
        how |= {"process": process.name}
    frame = FRAME.get()
    if in_async_code():
        work = frame.later("llm.ask_all", _replies, questions, at, how, process)
    else:
        work = frame.wait_for(_replies, questions, at, how, process)
    return _then(work, lambda replies: _answers(replies, asked))  # type: ignore[no-any-return] # awaited, or in a sync flow the value


def _check(process: Process, asked: Sequence[Request]) -> None:
    """Refuses a process whose questions could not be told apart, or that nobody could find again."""
    if len(set(process.keys)) != len(asked) or len(process.keys) != len(asked):
        raise BadUsage(f"ask_all(process=…) needs a key of its own for each of {len(asked)} questions")
    if not current().run_id or not in_async_code():
        raise BadUsage("ask_all(process=…) is for async flows: call it inside a run")


def _answers(replies: Sequence[Any], asked: Sequence[Request]) -> list[Answer]:
    pairs = zip(replies, asked, strict=True)
    return [answer_of(read(Reply, reply), request.schema) for reply, request in pairs]


async def _replies(
    questions: list[Question], at: dict[str, str], how: dict[str, Any], process: Process | None = None
) -> list[dict[str, Any]]:
    if not questions:
        return []
    if not current().run_id:
        return await _outside(questions, at, how)
    replies = await Asking(questions, at, how, process).replies()
    _tell(replies)
    _stop_if_denied(replies)
    return replies


class Item(msgspec.Struct, frozen=True):
    """One of many questions, and the key of its answer in the journal."""

    key: str
    question: Question


@task(name="llm.request")
async def request_step(item: Item, provider: str = "", base_url: str = "", model: str = "") -> dict[str, Any]:
    """Answers one of many questions; who is asked by name tells these answers from those of others."""
    del provider, base_url, model
    return dict(plain(await _ASKING.get().answered(item)))


class Asking:
    """The questions of one `ask_all` in a run: each answer is an item of a map, however it is asked for.

    They are asked in rounds, each with a plan and a process of its own. A round is over when all its answers are
    items and its jobs are deleted. One that follows has what failed before and is tried again.
    """

    def __init__(
        self, questions: list[Question], at: dict[str, str], how: dict[str, Any], process: Process | None
    ) -> None:
        self._at, self._how, self._process = at, how, process
        keys = keys_of(questions) if process is None else process.keys
        self._items = [Item(key, question) for key, question in zip(keys, questions, strict=True)]
        self._plan: Plan | None = None
        self._frame = FRAME.get()
        self._open = AsyncExitStack()
        self._collected: Collected | None = None
        """The answers of the batches, where they have them."""

    async def replies(self) -> list[dict[str, Any]]:
        """Asks what has no answer yet, and returns all answers in order."""
        named = {name: text for name, text in self._at.items() if text}
        options = MapOptions(key=attrgetter("key"), on_error="collect", prepare=self._prepare)
        token = _ASKING.set(self)
        async with self._open:  # open for all of them, and so are the connections
            self._open.enter_context(FRAME.get().staying())
            try:
                outcomes = await FRAME.get().map(request_step, self._items, named, options)
            except asyncio.CancelledError:
                if current().for_good and self._plan is not None:
                    await asyncio.shield(self._end(self._plan))
                raise
            finally:
                _ASKING.reset(token)
        if self._plan is not None:
            await delivered_step.keyed(self._plan.process_id)(self._plan.process_id)
        return [_failed(each) if isinstance(each, Failure) else each for each in outcomes]

    async def _end(self, plan: Plan) -> None:
        """Ends what a cancelled run has open: its batches, or where it has none, its jobs."""
        if plan.strategy == "batch":
            await end_here(plan.address, plan.process_id)
        else:  # what was answered is a fact; the rest is asked again by a resume
            async with shared_queue() as queue:
                await queue.delete_process(plan.process_id)

    async def _prepare(self, position_of: Callable[[str], int]) -> int:
        """Finds the round that is open, or begins one for what is left; returns how many are asked at once."""
        left = any(not position_of(item.key) for item in self._items)
        since, self._plan = await self._round(left=left)
        if (plan := self._plan) is None or not left:
            return 1
        if plan.strategy == "batch":
            jobs = {
                job_of(plan.process_id, item.key): item.question
                for item in self._items
                if not (position := position_of(item.key)) or 0 < since < position
            }
            if await self._in_batches(plan, jobs) == "batch":
                return AT_ONCE
        await self._keep_open(plan)
        return plan.concurrency

    async def _round(self, *, left: bool) -> tuple[int, Plan | None]:
        """Return the plan of the round that is open, and where the journal has it; None if nothing is to be done."""
        asked = digest([[item.key for item in self._items], self._at, self._how])
        number, how = 0, self._how
        while True:
            key = f"{asked[:16]}/{number}"
            since = FRAME.get().position_of(plan_step, key)
            if not left and not since:
                return 0, None
            plan: Plan = read(Plan, await plan_step.keyed(key)(self._at, how))
            if not FRAME.get().position_of(delivered_step, plan.process_id):
                return since, plan
            number += 1
            if self._process is not None:
                how = how | {"process": f"{self._process.name}/{number}"}

    async def _keep_open(self, plan: Plan) -> JobQueue:
        with suppress(BadUsage):  # its key is missing: whoever has to ask says so
            await self._open.enter_async_context(shared_provider(plan.address))
        return await self._open.enter_async_context(shared_queue())

    async def _in_batches(self, plan: Plan, jobs: dict[str, Question]) -> str:
        """Has the questions of a round answered in batches; returns the strategy that was followed in the end."""
        queue = await self._keep_open(plan)
        strategy, answered = "batch", False
        while not answered and strategy == "batch":
            strategy = await batch_step.keyed(plan.process_id)(lambda: self._advance(plan, jobs))
            counts = await queue.counts(plan.process_id)
            # Another machine has collected them into its own queue: here they are collected once more.
            answered = counts.get("COMPLETED", 0) + counts.get("FAILED", 0) >= len(jobs)
        self._collected = Collected(queue, plan.process_id) if strategy == "batch" else None
        return strategy

    async def _advance(self, plan: Plan, jobs: dict[str, Question]) -> str:
        """Goes on with the batches of a round as far as it can; raises `Later` while one is open."""
        process = self._process
        ledger = RunLedger(NoLedger() if process is None else process.ledger, await self._frame.afresh())
        resumed = current().resumed or (process is not None and process.resumed)
        async with shared_queue() as queue, shared_provider(plan.address) as provider:
            if sum((await queue.counts(plan.process_id)).values()) < len(jobs):
                await queue.enqueue(plan.process_id, jobs.values(), ids=list(jobs))
            try:
                await BatchWork(queue, provider, ledger, resumed).advance(plan.process_id)
            except Waiting as waiting:
                current().progress(waiting.done, waiting.total or len(jobs), waiting.text)
                raise Later(waiting.seconds, waiting.text) from None
            except NoBatches as error:
                current().log.warning(f"the questions are asked one by one: {error}")
                return "sync"
        return "batch"

    async def answered(self, item: Item) -> Reply:
        """Answers one question: by its batch, or directly; an answer that the queue has is not asked for again."""
        plan = self._plan
        if plan is None:
            raise LLMError("nothing was planned for this question")
        job_id = job_of(plan.process_id, item.key)
        if self._collected is not None:
            return _spent(plan, await self._collected.take(job_id))
        async with shared_queue() as queue, shared_provider(plan.address) as provider:
            job = await queue.begin(plan.process_id, job_id, item.question)
            if job.status == "COMPLETED":
                return _spent(plan, as_reply(job))
            try:
                reply = await paid(provider, item.question, plan.cache)
            except LLMError as error:
                told = failed(error)
                await queue.write(lambda db: keep(queue, db, job_id, told))
                raise
            except BaseException:
                await queue.put_back(job_id)
                raise
            await queue.write(lambda db: keep(queue, db, job_id, reply))
            return reply


_ASKING: Final[ContextVar[Asking]] = ContextVar("tsuzuki_llm_asking")


class Collected:
    """The answers that batches have brought into the queue, read page by page in the order of the questions."""

    def __init__(self, queue: JobQueue, process_id: str) -> None:
        self._queue, self._process_id = queue, process_id
        self._after = 0
        self._read: dict[str, Reply] = {}
        self._tried: dict[str, Reply] | None = None
        self._turn = asyncio.Lock()

    async def take(self, job_id: str) -> Reply:
        """Returns the answer of a job."""
        async with self._turn:
            if self._tried is None:
                self._tried = await tries_of(self._queue, self._process_id)
            while job_id not in self._read:
                jobs, self._after = await self._queue.result_page(self._process_id, self._after)
                if not jobs:
                    return Reply(error="there is no answer", finish="error")
                self._read |= {job.id: as_reply(job, self._tried) for job in jobs}
        return self._read.pop(job_id)


def _spent(plan: Plan, reply: Reply) -> Reply:
    """Notes what an answer took, and raises where it is a failure."""
    spend(plan.provider, reply)
    if reply.error:
        error = raised(reply.error)
        error.journal_detail = detail_of(reply)
        raise error
    return reply


def _failed(failure: Failure) -> dict[str, Any]:
    kind = "" if failure.error_type == LLMError.__name__ else f"{failure.error_type}: "
    if failure.detail:
        reply = msgspec.json.decode(failure.detail, type=Reply)
    else:
        used = sum((Usage(each.input, each.output) for each in failure.spent), Usage())
        known = failure.spent and not any(each.unpriced for each in failure.spent)
        cost = sum(each.cost for each in failure.spent) if known else None
        reply = Reply(finish="error", usage=used, cost=cost)
    return dict(plain(msgspec.structs.replace(reply, error=f"{kind}{failure.error}")))


async def _outside(questions: list[Question], at: dict[str, str], how: dict[str, Any]) -> list[dict[str, Any]]:
    """Asks outside a run: through the queue all the same, so that limits, strategies and logs are the same."""
    process = str(uuid.uuid4())
    async with shared_queue() as queue:
        await queue.enqueue(process, questions)
        worker = QueueWorker(queue, Address(**at), concurrency=how["concurrency"], cache=how.get("cache"))
        await worker.process(process, how["strategy"], deadline=how["deadline"])
        tried = await tries_of(queue, process)
        replies = [dict(plain(as_reply(job, tried))) for job in await queue.get_results(process)]
        await queue.delete_process(process)
    return replies


def _stop_if_denied(replies: Sequence[dict[str, Any]]) -> None:
    """Fail the run if the provider refused the key or the account: the answers are kept, and a resume asks the rest."""
    kind = f"{ProviderDenied.__name__}: "
    denied = [error for each in replies if (error := str(each.get("error", ""))).startswith(kind)]
    if denied:
        left = f"{len(denied):,} of {len(replies):,} questions are not answered"
        raise ProviderDenied(f"{denied[0].removeprefix(kind)} ({left})")


def _tell(replies: Sequence[dict[str, Any]]) -> None:
    """Writes into the run's log what the answers took and cost."""
    every = [read(Reply, each) for each in replies]
    used = sum((each.usage for each in every), Usage())
    failed = sum(bool(each.error) for each in every)
    costs = [each.cost for each in every if each.cost is not None]
    cost = f", {dollars(sum(costs))}" if costs else ""
    bad = f", {failed:,} failed" if failed else ""
    many = "1 question" if len(every) == 1 else f"{len(every):,} questions"
    current().log.info(f"{many}{bad}: {used.input:,} tokens in, {used.output:,} out{cost}")


def _then(outcome: Any, made: Callable[[Any], Given]) -> Any:
    """Makes something of an outcome: when it is awaited, or at once in a sync flow."""

    return FRAME.get().then(outcome, made) if isinstance(outcome, Awaitable) else made(outcome)
