"""Questions under a name of the asker's own: another run, without the journal of the first, finds the same batch."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.llm.double import Double, Plan
from tsuzuki import flow, llm
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import BadUsage
from tsuzuki.testing import Crash, FaultyBackend, run_flow

pytestmark = [
    pytest.mark.usefixtures("asked_there"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # crashes are only played here
]


class Notebook:
    """A ledger that outlives every store."""

    def __init__(self) -> None:
        self.intents: dict[str, float] = {}
        self.batches: dict[str, str] = {}

    async def intend(self, intent: llm.Intent) -> tuple[llm.Intent, bool]:
        first = intent.id not in self.intents
        at = self.intents.setdefault(intent.id, intent.at)
        return llm.Intent(intent.id, intent.process_id, at, intent.jobs), first

    async def submitted(self, intent: llm.Intent, create: Callable[[], Awaitable[str]]) -> str:
        if intent.id not in self.batches:
            self.batches[intent.id] = await create()
        return self.batches[intent.id]


NOTEBOOK = Notebook()


@flow
async def named(words: str, keys: list[str], resumed: bool = False) -> list[str | None]:
    process = llm.Process("mine", tuple(keys), NOTEBOOK, resumed=resumed)
    requests = [llm.Request(f"{words} {key}") for key in keys]
    answers = await llm.ask_all(requests, strategy="batch", process=process)
    return [answer.text if answer.ok else answer.error for answer in answers]


@pytest.fixture(autouse=True)
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    fresh = Notebook()
    monkeypatch.setattr("tests.llm.test_named.NOTEBOOK", fresh)
    return fresh


@pytest.mark.parametrize("at", range(2, 9))
@pytest.mark.parametrize("after", [False, True])
async def test_whatever_is_lost_there_is_one_batch(
    double: Double, at: int, after: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Journal and queue are lost with the machine; only the asker's own ledger is left."""
    double.plan = Plan(polls=2)
    keys = ["a", "b", "c"]
    faulty = FaultyBackend(MemoryBackend(), fail="append", crash=True, after=after, at=at)
    try:
        done = await run_flow(named, backend=faulty, words="say", keys=keys)
        assert at > 6, "it was over before the crash"
    except Crash:
        monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "elsewhere"))
        done = await run_flow(named, backend=MemoryBackend(), words="say", keys=keys)
    assert done.result == ["answer to say a", "answer to say b", "answer to say c"]
    assert len(double.batches) == 1
    assert set(double.billed.values()) == {1}


async def test_a_question_is_known_by_its_key_whatever_it_says(double: Double, notebook: Notebook) -> None:
    first = await run_flow(named, backend=MemoryBackend(), words="say", keys=["a", "b"])
    again = await run_flow(named, backend=MemoryBackend(), words="tell", keys=["a", "b"])
    assert again.result == first.result == ["answer to say a", "answer to say b"]
    assert len(double.batches) == 1
    assert list(notebook.batches.values()) == list(double.batches)


@pytest.mark.parametrize(("resumed", "sizes"), [(True, [4, 2]), (False, [4])])
async def test_what_a_cancelled_batch_has_not_done_is_asked_again_by_who_resumes(
    double: Double, resumed: bool, sizes: list[int]
) -> None:
    double.plans = [Plan(polls=10**9)]
    keys = ["a", "b", "c", "d"]
    first = asyncio.create_task(run_flow(named, backend=MemoryBackend(), words="say", keys=keys))
    async with asyncio.timeout(30):
        while not any(batch.looked for batch in double.batches.values()):
            await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.wait({first})
    [batch] = double.batches.values()
    batch.cancelled = True
    done = await run_flow(named, backend=MemoryBackend(), words="say", keys=keys, resumed=resumed)
    answered = [text for text in done.result if text and text.startswith("answer")]
    assert [len(each.requests) for each in double.batches.values()] == sizes
    assert len(answered) == (4 if resumed else 2)


async def test_a_process_that_could_not_be_found_again_is_refused() -> None:
    process = llm.Process("mine", ("a", "a"), Notebook())
    with pytest.raises(BadUsage, match="a key of its own"):
        llm.ask_all([llm.Request("x"), llm.Request("y")], process=process)
    with pytest.raises(BadUsage, match="inside a run"):
        llm.ask_all([llm.Request("x")], process=llm.Process("mine", ("a",), Notebook()))
