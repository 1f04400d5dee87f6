"""Usage, cost and jobs over HTTP: for a run, for all runs of who asks, and for the queue of the gateway's machine."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.llm.double import Double, Plan
from tests.llm.test_again import until
from tsuzuki import Runs, Status, flow, llm
from tsuzuki.cli.remote import waits_there
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring
from tsuzuki.testing import FakeLLM, MemoryBackend
from tsuzuki.worker import Worker


@flow
async def asks(count: int, model: str = "gpt-4o-mini", strategy: str = "sync") -> int:
    requests = [llm.Request(f"q{n}") for n in range(count)]
    return len(await llm.ask_all(requests, provider="openai", model=model, strategy=strategy))


@asynccontextmanager
async def gateway(runs: Runs, folder: Path, options: Options | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(runs, data_dir=str(folder), options=options)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        Worker(runs.backend, [asks]) as worker,
    ):
        working = asyncio.create_task(worker.run())
        yield client
        worker.stop()
        await working


async def asked(client: httpx2.AsyncClient, path: str, key: str = "", **query: Any) -> Any:
    found = await client.get(path, params=query, headers={"x-api-key": key} if key else {})
    assert found.status_code == 200, found.text
    return found.json()


async def test_a_run_and_all_runs_have_their_usage(tmp_path: Path) -> None:
    runs = Runs(MemoryBackend())
    with FakeLLM(usage=llm.Usage(1000, 100)):
        async with gateway(runs, tmp_path) as client:
            for count, model in ((2, "gpt-4o-mini"), (1, "gpt-4o"), (0, "gpt-4o")):
                row = await runs.submit(asks, {"count": count, "model": model})
                await runs.wait(row.id)
            [none, dear, cheap] = await asked(client, "/runs")
            assert (none["usage"], none["cost"]) == (None, None)
            assert cheap["usage"]["requests"] == 2
            assert dear["cost"] > cheap["cost"] > 0
            snapshot = await asked(client, f"/runs/{cheap['number']}")
            assert snapshot["usage"] == cheap["usage"]
            assert snapshot["usage"]["models"][0] | {"cost": 0} == {
                "provider": "openai",
                "model": "gpt-4o-mini",
                "requests": 2,
                "cached": 0,
                "unpriced": 0,
                "uncertain": 0,
                "input_tokens": 2000,
                "output_tokens": 200,
                "cost": 0,
            }
            items = (await asked(client, f"/runs/{cheap['number']}/items", spent=True))["items"]
            assert [item["usage"]["requests"] for item in items] == [1, 1]
            every = await asked(client, "/llm/usage")
            assert (every["runs"], every["at_least"], every["usage"]["requests"]) == (2, False, 3)
            assert every["usage"]["cost"] == pytest.approx(dear["cost"] + cheap["cost"])
            assert [each["number"] for each in every["latest"]] == [2, 1]
            later = await asked(client, "/llm/usage", updated_after=none["updated_at"])
            assert (later["usage"], later["runs"], later["latest"]) == (None, 0, [])


async def test_the_queue_of_this_machine_is_shown_without_what_is_asked(tmp_path: Path) -> None:
    process = str(uuid.uuid4())
    async with llm.JobQueue(tmp_path / "llm_jobs.db") as queue, gateway(Runs(MemoryBackend()), tmp_path) as client:
        assert (await asked(client, "/llm/jobs"))["processes"] == []
        ids = await queue.enqueue(process, [llm.Question("a secret"), llm.Question("another")])
        job = await queue.claim(process)
        assert job is not None
        await queue.finish(job.id, None, "no answer")
        found = await asked(client, "/llm/jobs")
        [entry] = found["processes"]
        assert (entry["process_id"], entry["pending"], entry["failed"], entry["completed"]) == (process, 1, 1, 0)
        assert found["host"]
        jobs = (await asked(client, f"/llm/jobs/{process}"))["items"]
        assert [(each["id"], each["status"], each["error_message"]) for each in jobs] == [
            (ids[0], "FAILED", "no answer"),
            (ids[1], "PENDING", None),
        ]
        assert "secret" not in str(jobs)
        assert (await asked(client, "/llm/jobs/unknown"))["items"] == []


async def test_a_tenant_sees_its_own_costs_and_no_queue(tmp_path: Path) -> None:
    runs = Runs(MemoryBackend())
    keys = {tenant: (await Keyring(runs.backend).create(tenant))[0] for tenant in ("a", "b")}
    async with llm.JobQueue(tmp_path / "llm_jobs.db") as queue:
        await queue.enqueue(str(uuid.uuid4()), [llm.Question("q")])
    with FakeLLM():
        async with gateway(runs, tmp_path, Options(auth=True)) as client:
            row = await runs.submit(asks, {"count": 2}, tenant="a")
            await runs.wait(row.id)
            assert (await asked(client, "/llm/usage", keys["a"]))["usage"]["requests"] == 2
            assert (await asked(client, "/llm/usage", keys["b"]))["usage"] is None
            assert (await asked(client, "/llm/jobs", keys["b"]))["hidden"]
            assert (await client.get("/llm/usage")).status_code == 401


async def test_cancelling_a_run_that_waits_for_its_batch_ends_that(
    tmp_path: Path, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "openai")
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", f"{double.url}/v1")
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "3600")
    double.plan = Plan(polls=10**9)
    runs = Runs(MemoryBackend())
    async with gateway(runs, tmp_path) as client:
        row = await runs.submit(asks, {"count": 2, "strategy": "batch"})

        async def waits() -> bool:
            found = await runs.get(row.id)
            return found.status is Status.PENDING and found.not_before > 0

        async def says_for_what() -> bool:
            [listed] = await asked(client, "/runs")
            return waits_there(listed).startswith("batch batch_")

        await until(says_for_what)
        await until(waits)
        answer = await client.post(f"/runs/{row.number}/cancel")
        assert answer.json()["status"] == "CANCELLED"
        [batch] = double.batches.values()
        await until(lambda: batch.cancelled)
        [entry] = (await asked(client, "/llm/jobs"))["processes"]
        assert (entry["pending"], entry["in_progress"], entry["open_batches"]) == (2, 0, [batch.id])
        jobs = (await asked(client, f"/llm/jobs/{entry['process_id']}"))["items"]
        assert [(job["status"], job["batch_state"]) for job in jobs] == [("PENDING", "open")] * 2
