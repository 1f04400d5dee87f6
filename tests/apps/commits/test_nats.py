"""On NATS the runs travel, the files stay: a worker beside them, by its tag, carries the collection out."""

import asyncio
from pathlib import Path
from typing import Any

from tests.apps.commits.conftest import consistent
from tests.apps.commits.repositories import Repository
from tests.gateway.conftest import opened
from tests.nats_server import NatsServer
from tsuzuki import Run, Worker, settings
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.desk import Desk


async def test_a_bulk_run_is_carried_out_beside_the_files(
    nats_server: NatsServer, repository: Repository, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    async with opened(f"{nats_server.url}?prefix={nats_server.fresh()}") as runs, asyncio.timeout(60):
        with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
            async with (
                Worker(runs.backend, flows.flows(), tags=["default"]) as elsewhere,
                Worker(runs.backend, flows.flows(), tags=["files"]) as beside,
            ):
                working = [asyncio.create_task(worker.run()) for worker in (elsewhere, beside)]

                async def submit(flow: Any, params: dict[str, Any]) -> Run:
                    return await runs.submit(flow, params, tag="files")

                desk = Desk(runs, submit, folder=folder)
                project = (await desk.sync(desk.connect("git", str(repository.path))))[0]
                run = await desk.collect(await desk.collection(project, [], every=True))
                assert (await runs.wait(run.id)).done == 1
                repository.commit("2026-04-01T00:00:00+00:00", {"b": "1"})
                started = await desk.start(pause=0)
                await runs.wait(started.run_id)
                stands = await desk.standing(started.run_id)
                for worker in (elsewhere, beside):
                    worker.stop()
                await asyncio.gather(*working)
    assert stands is not None
    assert (stands.summary.run_status, stands.summary.success_count) == ("completed", 1)
    consistent(folder / "commits.db")
