"""Runs that bring their flow as YAML: any worker that runs such flows takes them, whatever flows it knows."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.nats_server import NatsServer
from tsuzuki import Runs, Status, Worker, task
from tsuzuki.backends import Backend
from tsuzuki.backends.address import open_backend
from tsuzuki.yamlflow import Callables, Compiler

TEXT = """
flow:
  graph: first >> second
  defaults: {n: 20}
tasks:
  first: {callable: double, inputs: {n: $ctx.params.n}}
  second: {callable: double, inputs: {n: $node.first.output}}
"""


@task
def double(n: int) -> int:
    return 2 * n


WORKFLOWS = Compiler(Callables(registered={"double": double}))


@pytest.fixture(params=["memory", "sqlite", "nats"])
async def backend(request: pytest.FixtureRequest, tmp_path: object, nats_server: NatsServer) -> AsyncIterator[Backend]:
    url = {
        "memory": "memory:",
        "sqlite": f"sqlite:{tmp_path}/t.db",
        "nats": f"{nats_server.url}?prefix={nats_server.fresh()}",
    }[request.param]
    store = await open_backend(url)
    yield store
    await store.close()


async def ended(backend: Backend, worker: Worker, text: str) -> tuple[Status, object, str]:
    runs = Runs(backend)
    run = await runs.submit("theirs", {"n": 20}, workflow=text)
    async with worker:
        working = asyncio.create_task(worker.run())
        row = await runs.wait(run.id)
        worker.stop()
        await working
    message = "" if row.error is None else row.error.message
    return row.status, await runs.result(run.id), message


async def test_a_workflow_finds_the_worker_that_allows_what_it_calls(backend: Backend) -> None:
    runs, stingy = Runs(backend), Compiler(Callables())
    async with Worker(backend, workflows=stingy) as first, Worker(backend, workflows=WORKFLOWS) as second:
        working = [asyncio.create_task(worker.run()) for worker in (first, second)]
        submitted = [await runs.submit("theirs", {"n": 20}, workflow=TEXT) for _ in range(4)]
        assert [(await runs.wait(run.id)).status for run in submitted] == [Status.COMPLETED] * 4
        for worker in (first, second):
            worker.stop()
        await asyncio.gather(*working)
    async with Worker(backend, workflows=stingy) as first, Worker(backend, workflows=stingy):
        working = [asyncio.create_task(first.run())]
        run = await runs.wait((await runs.submit("theirs", {"n": 20}, workflow=TEXT)).id)
        first.stop()
        await asyncio.gather(*working)
    assert run.error is not None
    assert (run.status, run.error.type) == (Status.FAILED, "BadCallable")


async def test_a_worker_that_knows_no_flow_runs_one_that_is_brought(backend: Backend) -> None:
    status, result, _ = await ended(backend, Worker(backend, workflows=WORKFLOWS), TEXT)
    assert (status, result) == (Status.COMPLETED, {"second": 80})


async def test_a_text_that_is_no_workflow_fails_the_run_and_says_where(backend: Backend) -> None:
    status, _, message = await ended(backend, Worker(backend, workflows=WORKFLOWS), TEXT.replace("second:", "secnod:"))
    assert status is Status.FAILED
    assert "line" in message
    assert [letter.reason for letter in await backend.dead_letters()] == ["invalid_job"]


async def test_a_worker_that_runs_no_workflows_says_so_of_one_it_is_told_to_carry_out() -> None:
    backend = await open_backend("memory:")
    run = await Runs(backend).submit("theirs", {"n": 20}, workflow=TEXT)
    async with Worker(backend) as worker:
        row = await worker.carry_out(run.id)
    assert row.status is Status.FAILED
    assert row.error is not None
    assert "runs no YAML flows" in row.error.message
