"""Answers of a batch that do not fit are asked for again in a batch that follows; a cancelled run ends its batch."""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.llm.conftest import Fact
from tests.llm.double import Double, Plan
from tests.llm.test_batches import BOTH, PATHS
from tsuzuki import Runs, Status, flow, llm, task
from tsuzuki import facts as f
from tsuzuki.backends import Query
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.cli import main
from tsuzuki.llm.queue.jobs import JobQueue
from tsuzuki.script import carry_on, run_here
from tsuzuki.testing import Crash, FaultyBackend, run_flow


@pytest.fixture(autouse=True)
def short(asked_there: None, double: Double) -> None:
    double.plan = Plan(polls=1)


@flow
async def structured(count: int) -> list[str | None]:
    requests = [llm.Request(f"q{n}", schema=Fact) for n in range(count)]
    answers = await llm.ask_all(requests, strategy="batch")
    return [answer.data.text if answer.ok else answer.error for answer in answers]


def fits_in_the_end(prompt: str) -> str:
    """q0 fits at once, q1 when it is told what is wrong; the rest never does."""
    if "Field required" in prompt:
        return json.dumps({"text": "mended"})
    return {"q0": json.dumps({"text": "at once"}), "q1": "{}"}.get(prompt, "no idea")


def batches(double: Double) -> list[int]:
    """How many questions each batch had."""
    return [len(batch.requests) for batch in double.batches.values()]


@BOTH
async def test_what_does_not_fit_goes_into_the_next_batch_with_what_is_wrong(
    double: Double, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", name)
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", double.url + PATHS[name])
    double.answer = fits_in_the_end
    done = await run_flow(structured, count=3)
    assert done.result[:2] == ["at once", "mended"]
    assert "in 3 tries: there is no JSON in the answer" in done.result[2]
    assert batches(double) == [3, 2, 1]
    last = [*double.batches.values()][1].requests[0]
    said = (last.get("body") or last["params"])["messages"]
    assert [each["role"] for each in said[-3:]] == ["user", "assistant", "user"]
    assert said[-2]["content"] == "{}"
    assert "text: Field required" in said[-1]["content"]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same machine", "another machine"])
@pytest.mark.parametrize("at", [6, 7, 8])
async def test_a_crash_while_asking_again_creates_no_batch_twice(
    double: Double, at: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    double.answer = fits_in_the_end
    store = MemoryBackend()
    with pytest.raises(Crash):
        await run_flow(structured, backend=FaultyBackend(store, fail="append", crash=True, at=at), count=3)
    if elsewhere:
        monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "elsewhere"))
    done = await run_flow(structured, backend=store, count=3)
    assert done.result[:2] == ["at once", "mended"]
    assert batches(double) == [3, 2, 1]
    [spent] = done.row.spent
    assert (spent.requests, spent.input) == (6, 60)


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            found = condition()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.01)


@task
async def busy() -> None:
    await asyncio.sleep(60)


@flow
async def waiting(count: int, also_busy: bool) -> list[str | None]:
    requests = [llm.Request(f"q{n}") for n in range(count)]
    if also_busy:  # then the run is held while its batch is open
        answers, _ = await asyncio.gather(llm.ask_all(requests, strategy="batch"), busy())
    else:
        answers = await llm.ask_all(requests, strategy="batch")
    return [answer.text if answer.ok else answer.error for answer in answers]


@pytest.mark.parametrize("held", [True, False])
async def test_cancelling_a_run_ends_its_batch_and_resume_asks_only_the_rest(
    double: Double, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.02" if held else "3600")
    double.plan = Plan(polls=10**9)
    store = MemoryBackend()
    runs = Runs(store)
    going = asyncio.create_task(run_here(runs, waiting, {"count": 4, "also_busy": held}, signals=False))

    async def opened() -> bool:
        rows = await runs.list(Query())
        return bool(double.batches) and any(held or row.status is Status.PENDING for row in rows)

    await until(opened)
    [row] = await runs.list(Query())
    await until(lambda: any(batch.looked for batch in double.batches.values()))
    _, after = await runs.cancel(row.id)
    if not held:
        [ended] = await llm.end_batches(runs, after)
        assert str(ended).startswith("openai was asked to end batch batch_")
        assert [str(each) for each in await llm.end_batches(runs, after)]  # a second time does no harm
    await asyncio.wait({going})
    assert (await runs.get(row.id)).status is Status.CANCELLED
    [batch] = double.batches.values()
    assert batch.cancelled
    double.plan = Plan(polls=0)
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.02")
    monkeypatch.setattr(busy, "function", tick)
    resumed = await runs.resume(row.id)
    done = await carry_on(runs, waiting, resumed)
    assert done.result == [f"answer to q{n}" for n in range(4)]
    assert batches(double) == [4, 2]  # the first had answered two before it was ended
    [spent] = (await runs.get(row.id)).spent
    assert spent.requests == 4  # what the first did not come to was no request


async def tick() -> None: ...


async def test_cancelling_a_run_ends_a_batch_whose_id_it_has_not_heard_of(double: Double) -> None:
    heard = False

    async def lost(boundary: str) -> None:
        while boundary == "after batch" and not heard:
            await asyncio.sleep(0.01)

    double.pause = lost
    runs = Runs(MemoryBackend())
    going = asyncio.create_task(run_here(runs, waiting, {"count": 2, "also_busy": False}, signals=False))
    await until(lambda: bool(double.batches))
    [row] = await runs.list(Query())
    await runs.cancel(row.id)
    await asyncio.wait({going})
    heard = True
    [batch] = double.batches.values()
    assert batch.cancelled


@flow
async def directly(count: int) -> int:
    return len(await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy="sync", concurrency=2))


async def test_cancelling_a_run_that_asks_directly_leaves_nothing_in_the_queue(double: Double) -> None:
    double.delay = 5.0
    runs = Runs(MemoryBackend())
    going = asyncio.create_task(run_here(runs, directly, {"count": 4}, signals=False))
    await until(lambda: double.at_once == 2)
    [row] = await runs.list(Query())
    await runs.cancel(row.id)
    await asyncio.wait({going})
    async with JobQueue() as queue:
        assert await queue.processes() == []
    double.delay = 0.0
    assert (await carry_on(runs, directly, await runs.resume(row.id))).result == 4


@pytest.mark.parametrize("known", [True, False], ids=["whose id is known", "which was only intended"])
def test_the_command_that_cancels_a_waiting_run_ends_its_batch(double: Double, tmp_path: Path, known: bool) -> None:
    double.plan = Plan(polls=10**9)
    store = Path(tmp_path)

    async def left_behind() -> int:
        async with Runs.open(data_dir=str(store)) as runs:
            row = await runs.submit(waiting, {"count": 2, "also_busy": False})
            [claim] = await runs.backend.claim("nobody", run_id=row.id)
            submitted = f.StepDone(at=1.0, step="s", name="llm.submit", key="meant", result=json_of("batch_x"))
            intent = {"process_id": "process", "at": 1.0}
            journal: list[Any] = [
                f.StepDone(at=1.0, step="p", name="llm.plan", result=json_of(plan(double))),
                f.StepStarted(at=1.0, step="b", name="llm.batch", key="process"),
                f.StepDone(at=1.0, step="i", name="llm.intent", key="meant", result=json_of(intent)),
                f.StepDone(at=1.0, step="p0", name="llm.send", key="meant/0", result=json_of(1.0)),
                *([submitted] if known else ()),
                f.Released(at=1.0, reason="waits", not_before=4e9),
            ]
            await runs.backend.append(claim, journal)
            return row.number

    number = asyncio.run(left_behind())
    batch = double.made([], {"tsuzuki_intent": "meant"}, "batch_")
    batch.id = "batch_x"
    double.batches = {"batch_x": batch}
    found = CliRunner().invoke(main, ["cancel", str(number), "--data-dir", str(store)])
    assert found.exit_code == 0, found.output
    assert "openai was asked to end batch batch_x" in found.output
    assert batch.cancelled


def plan(double: Double) -> dict[str, Any]:
    there = {"provider": "openai", "base_url": f"{double.url}/v1", "model": "m"}
    return {"process_id": "process", "strategy": "batch", "concurrency": 1, **there}


def json_of(value: Any) -> Any:
    return msgspec.Raw(msgspec.json.encode(value))


async def test_a_batch_that_others_cancelled_fails_what_it_has_not_done(double: Double) -> None:
    double.plan = Plan(polls=1, ends="cancelled", missing={1})
    done = await run_flow(waiting, count=2, also_busy=False)
    assert done.result == ["answer to q0", "batch cancelled"]
    assert batches(double) == [2]
    async with JobQueue() as queue:
        assert await queue.processes() == []


FLOWS = """
from tsuzuki import flow, llm

@flow
async def asks(count: int, strategy: str = "batch") -> int:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy=strategy)
    return sum(answer.ok for answer in answers)

@flow
def plainly(count: int, strategy: str = "batch") -> int:
    answers = llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy=strategy)
    return sum(answer.ok for answer in answers)

@flow
async def strict(count: int, strategy: str = "batch") -> int:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(count)], strategy=strategy)
    if errors := [answer.error for answer in answers if not answer.ok]:
        raise ValueError(f"no answer: {errors[0]}")
    return len(answers)
"""


@pytest.fixture
def typed(tmp_path: Path) -> Callable[..., Any]:
    """Types a command, and gives its exit code and what it said."""
    (tmp_path / "flows.py").write_text(FLOWS)

    def command(*words: str) -> tuple[int, str]:
        found = CliRunner().invoke(main, [*words, "--data-dir", str(tmp_path)])
        return found.exit_code, found.output

    def started(name: str, *words: str) -> tuple[int, str]:
        return command("run", f"{tmp_path}/flows.py:{name}", *words)

    return lambda *words: command(*words[1:]) if words[0] == "" else started(*words)


def prompts(double: Double) -> list[list[str]]:
    """What each batch asked."""
    bodies = [[each.get("body") or each["params"] for each in batch.requests] for batch in double.batches.values()]
    return [[str(body["messages"][-1]["content"]) for body in batch] for batch in bodies]


TROUBLES = {
    "expired": (Plan(ends="expired"), ["q3", "q4", "q5"]),
    "partly failed": (Plan(refuse={1, 3}), ["q1", "q3"]),
    "without results": (Plan(missing={0, 5}), ["q0", "q5"]),
    "without an answer": (Plan(hollow={2}), ["q2"]),
    "failed": (Plan(ends="failed"), [f"q{n}" for n in range(6)]),
    "cancelled by others": (Plan(ends="cancelled", missing={4}), ["q4"]),
}
"""What becomes of a batch of six, and which questions have no answer then."""


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", ["asks", "plainly"])
def test_what_failed_in_a_batch_is_a_failed_item_and_alone_asked_again_by_resume(
    double: Double, typed: Callable[..., Any], trouble: str, name: str
) -> None:
    plan, lost = TROUBLES[trouble]
    double.plans = [plan]
    code, _ = typed(name, "-p", "count=6")
    assert code == 6, "some items failed"
    code, told = typed("", "items", "1", "--failed", "--json")
    shown = [json.loads(line)["inputs"]["item"]["question"] for line in told.splitlines() if line.startswith("{")]
    assert (code, sorted(each["prompt"] for each in shown)) == (0, lost)
    code, told = typed("", "resume", "1")
    assert (code, told.split()[-1]) == (0, "6")
    assert prompts(double) == [[f"q{n}" for n in range(6)], lost]
    assert typed("", "resume", "1")[0] != 0, "nothing is left to resume"


@pytest.mark.parametrize("strategy", ["sync", "batch"])
def test_a_flow_that_raises_where_an_answer_failed_asks_the_failed_ones_again(
    double: Double, typed: Callable[..., Any], strategy: str
) -> None:
    double.plans = [Plan(refuse={1, 2})]
    double.refusals = [(400, {})] * 2
    told = ("-p", "count=4", "-p", f"strategy={strategy}")
    assert typed("strict", *told)[0] == 5
    assert typed("", "resume", "1")[0] == 0
    if strategy == "batch":
        assert prompts(double) == [["q0", "q1", "q2", "q3"], ["q1", "q2"]]
    else:
        assert len(double.seen) == 4 + 2
        assert set(double.prompts.values()) == {1}


def test_what_failed_may_fail_again_and_is_asked_by_the_strategy_then_in_force(
    double: Double, typed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    double.plans = [Plan(refuse={1, 2, 3}), Plan(refuse={0, 2})]
    monkeypatch.setenv("TSUZUKI_LLM_STRATEGY", "batch")
    (Path(os.environ["TSUZUKI_DATA_DIR"]) / "flows.py").write_text(
        FLOWS.replace('strategy: str = "batch"', "strategy: str | None = None")
    )
    assert typed("asks", "-p", "count=4")[0] == 6
    assert typed("", "resume", "1")[0] == 6
    monkeypatch.setenv("TSUZUKI_LLM_STRATEGY", "sync")
    code, told = typed("", "resume", "1")
    assert (code, told.split()[-1]) == (0, "4")
    assert prompts(double) == [["q0", "q1", "q2", "q3"], ["q1", "q2", "q3"]]
    assert double.prompts == {"q1": 1, "q3": 1}


@pytest.mark.parametrize("strategy", ["sync", "batch"])
def test_a_run_that_continues_another_one_pays_only_for_what_is_new(
    double: Double, typed: Callable[..., Any], strategy: str
) -> None:
    told = ("-p", f"strategy={strategy}")
    assert typed("asks", "-p", "count=3", *told)[0] == 0
    code, shown = typed("asks", "-p", "count=5", *told, "--continues", "1")
    assert (code, shown.split()[-1]) == (0, "5")
    assert typed("asks", "-p", "count=5", *told, "--continues", "2")[0] == 0
    if strategy == "batch":
        assert prompts(double) == [["q0", "q1", "q2"], ["q3", "q4"]]
    else:
        assert double.prompts == {f"q{n}": 1 for n in range(5)}


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same machine", "another machine"])
@pytest.mark.parametrize("at", range(1, 8))
async def test_a_crash_while_failed_answers_are_asked_again_creates_no_batch_twice(
    double: Double, at: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    double.plans = [Plan(refuse={1, 2})]
    store = MemoryBackend()
    first = await run_flow(waiting, backend=store, count=4, also_busy=False)
    assert first.row.failed == 2
    runs = Runs(store)
    resumed = await runs.resume(first.id)
    faulty = Runs(FaultyBackend(store, fail="append", crash=True, at=at))
    with contextlib.suppress(Crash):
        await carry_on(faulty, waiting, resumed)
    if elsewhere:
        monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "elsewhere"))
    row = await runs.get(first.id)
    if row.status is not Status.COMPLETED:
        row = (await carry_on(runs, waiting, row)).row
    assert (row.status, row.failed) == (Status.COMPLETED, 0)
    assert prompts(double) == [["q0", "q1", "q2", "q3"], ["q1", "q2"]]
