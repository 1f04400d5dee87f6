"""`tsuzuki llm`: models, ask, doctor, jobs, cache."""

import asyncio
import json
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.llm.double import KEY, Double, Plan
from tests.llm.test_queue import questions
from tsuzuki import llm
from tsuzuki.cli import main
from tsuzuki.llm.providers import Address
from tsuzuki.llm.queue.batches import BatchWork
from tsuzuki.llm.queue.submissions import NoLedger, Waiting


def tsuzuki(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["-q", "llm", *arguments])


@pytest.fixture
def there(double: Double) -> tuple[str, ...]:
    return ("--provider", "openai", "--base-url", f"{double.url}/v1", "--model", "m-1")


def test_models_and_ask(double: Double, there: tuple[str, ...]) -> None:
    assert tsuzuki("models", *there).output == "m-1\nm-2\n"
    assert tsuzuki("ask", "why?", *there).output == "answer to why?\n"
    double.breaks = True
    half = tsuzuki("ask", "why?", *there)
    assert half.exit_code == 1
    assert half.output.startswith("answer to why?\n")
    assert "broke off" in half.output


def test_a_provider_that_is_well_and_one_that_is_not(double: Double, there: tuple[str, ...]) -> None:
    double.answer = lambda prompt: '{"colour": "red"}'
    well = tsuzuki("doctor", *there)
    assert well.exit_code == 0, well.output
    assert "held to a schema by json_schema" in well.output
    assert "batches can be listed" in well.output
    double.answer = lambda prompt: prompt
    assert tsuzuki("doctor", *there).output.count("FAIL") == 3, "a question is no answer to itself"
    double.refusals = [(401, {})]
    ill = tsuzuki("doctor", *there)
    assert ill.exit_code == 1
    assert "FAIL" in ill.output
    assert KEY not in ill.output
    assert tsuzuki("doctor", "--provider", "offline").exit_code == 0
    away = tsuzuki("doctor", "--provider", "openai", "--base-url", "http://127.0.0.1:9/v1")
    assert away.output.count("FAIL") == 1  # and nothing more is tried


@pytest.mark.parametrize("asked", [("models",), ("ask", "why?"), ("doctor",)])
def test_who_sits_before_it_is_told_at_once_where_nobody_listens(
    asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.llm.wire.Patience.pause", lambda *_: pytest.fail("nobody listens: that is known"))
    away = tsuzuki(*asked, "--provider", "ollama", "--base-url", "http://127.0.0.1:9")
    assert away.exit_code == 1
    assert "cannot be reached" in away.output


def test_jobs_are_listed_shown_and_cancelled(
    double: Double, there: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tsuzuki("jobs", "list").exit_code == 1
    double.plan = Plan(polls=10**6)
    mine = str(uuid.uuid4())

    async def submit() -> None:
        provider = llm.opened(Address("openai", f"{double.url}/v1", "m-1"))
        async with llm.JobQueue() as queue:
            await queue.enqueue(mine, questions(3))
            with pytest.raises(Waiting):
                await BatchWork(queue, provider, NoLedger()).advance(mine)
        await provider.close()

    asyncio.run(submit())
    listed = json.loads(tsuzuki("jobs", "list", "--json").output)
    [batch] = double.batches.values()
    assert (listed[0]["process_id"], listed[0]["IN_PROGRESS"], listed[0]["batch_job_id"]) == (mine, 3, batch.id)
    assert mine in tsuzuki("jobs", "list").output
    assert tsuzuki("jobs", "show", mine).output.count("IN_PROGRESS") == 3
    assert len(json.loads(tsuzuki("jobs", "show", mine, "--json").output)) == 3
    for word in ("show", "cancel"):
        unknown = tsuzuki("jobs", word, str(uuid.uuid4()))
        assert unknown.exit_code == 1
        assert "has no jobs here" in unknown.output
    assert tsuzuki("jobs", "cancel", mine, *there).output == "asked for the end of 1 batch\n"
    assert batch.cancelled
    assert tsuzuki("jobs", "show", mine).output.count("PENDING, its batch is still open") == 3
    assert {job["batch_state"] for job in json.loads(tsuzuki("jobs", "show", mine, "--json").output)} == {"open"}
    assert f"{batch.id} is still open" in tsuzuki("jobs", "list").output
    [entry] = json.loads(tsuzuki("jobs", "list", "--json").output)
    assert (entry["PENDING"], entry["open_batches"], entry["unclear_batches"]) == (3, [batch.id], 0)
    told = tsuzuki("jobs", "cancel", mine, "--delete", *there)
    assert told.output == "asked for the end of 1 batch, and forgot 3 jobs\n"
    assert json.loads(tsuzuki("jobs", "list", "--json").output) == []


def test_the_cache_is_counted_and_cleared(
    double: Double, there: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_CACHE", "1")

    async def ask() -> None:
        await llm.ask(str, "q", provider="openai", base_url=f"{double.url}/v1")

    asyncio.run(ask())
    asyncio.run(ask())
    assert tsuzuki("cache", "stats").output.startswith("1 answers, ")
    assert "given again 1 times" in tsuzuki("cache", "stats").output
    assert tsuzuki("cache", "clear").output == "forgot 1 answers\n"
