"""`ask`, `answer` and `ask_all`: questions as durable calls inside a run, and as plain calls outside one."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from typing import Any, TypedDict, TypeVar, overload

import msgspec
from pydantic import BaseModel
from typing_extensions import Unpack

from tsuzuki.context import FRAME, current, in_async_code
from tsuzuki.errors import BadUsage, ProviderDenied
from tsuzuki.flow import task
from tsuzuki.llm.ending import end_here
from tsuzuki.llm.providers import Address
from tsuzuki.llm.providers import shared as shared_provider
from tsuzuki.llm.questions import Answer, Question, Reply, Request, Usage, answer_of, digest
from tsuzuki.llm.queue.keeping import as_reply, tries_of
from tsuzuki.llm.queue.submissions import Process
from tsuzuki.llm.queue.worker import STRATEGIES, QueueWorker
from tsuzuki.llm.sharing import shared_queue
from tsuzuki.llm.steps import (
    Plan,
    ask_step,
    batch_step,
    delivered_step,
    keys_of,
    plain,
    plan_step,
    read,
    request_step,
)
from tsuzuki.options import known
from tsuzuki.results import Failure
from tsuzuki.spending import dollars

Model = TypeVar("Model", bound=BaseModel)
Given = TypeVar("Given")


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
    # A sync flow cannot await: there the whole is one step, which blocks. In an async flow answers are kept once only.
    if in_async_code():
        work = FRAME.get().later("llm.ask_all", _replies, questions, at, how, process)
    else:
        work = all_step(plain(questions), at, how)
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


@task(name="llm.ask_all")
async def all_step(questions: list[dict[str, Any]], at: dict[str, str], how: dict[str, Any]) -> list[dict[str, Any]]:
    """Asks many questions, in one step around all others."""
    return await _replies([read(Question, each) for each in questions], at, how)


async def _replies(
    questions: list[Question], at: dict[str, str], how: dict[str, Any], process: Process | None = None
) -> list[dict[str, Any]]:
    if not questions:
        return []
    if not current().run_id:
        return await _outside(questions, at, how)
    keys = keys_of(questions) if process is None else list(process.keys)
    plan = await plan_step(digest(questions) if process is None else process.name, at, how)
    decided: Plan = read(Plan, plan)
    if decided.strategy == "batch":
        replies = await _in_batches(questions, keys, plan, process)
    else:
        replies = await _one_by_one(questions, keys, plan, decided)
    await delivered_step.keyed(decided.process_id)(decided.process_id)
    _tell(replies)
    _stop_if_denied(replies)
    return replies


async def _in_batches(
    questions: list[Question], keys: list[str], plan: dict[str, Any], process: Process | None
) -> list[dict[str, Any]]:
    decided: Plan = read(Plan, plan)
    step = batch_step.keyed(decided.process_id)
    with FRAME.get().staying():
        try:
            replies: list[dict[str, Any]] = await step(plain(questions), keys, plan, process)
        except asyncio.CancelledError:
            if current().for_good:
                await asyncio.shield(end_here(decided.address, decided.process_id))
            raise
    return replies


async def _one_by_one(
    questions: list[Question], keys: list[str], plan: dict[str, Any], decided: Plan
) -> list[dict[str, Any]]:
    items = [{"key": key, "question": plain(question)} for key, question in zip(keys, questions, strict=True)]
    async with AsyncExitStack() as held:  # open for all of them, and so are the connections
        with suppress(BadUsage):  # its key is missing: whoever has to ask says so
            await held.enter_async_context(shared_provider(decided.address))
        queue = await held.enter_async_context(shared_queue())
        held.enter_context(FRAME.get().staying())
        try:
            found = await request_step.map(
                items, key=lambda item: item["key"], on_error="collect", concurrency=decided.concurrency, plan=plan
            )
        except asyncio.CancelledError:
            if current().for_good:  # what was answered is a fact; the rest is asked anew by whoever resumes
                await asyncio.shield(queue.delete_process(decided.process_id))
            raise
    return [_failed(each) if isinstance(each, Failure) else each for each in found]


def _failed(failure: Failure) -> dict[str, Any]:
    reply = msgspec.json.decode(failure.detail, type=Reply) if failure.detail else Reply(finish="error")
    return dict(plain(msgspec.structs.replace(reply, error=f"{failure.error_type}: {failure.error}")))


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
