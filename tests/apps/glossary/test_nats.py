"""On NATS the runs travel, the files stay: a worker beside them, by its tag, carries them out."""

import asyncio
from pathlib import Path
from typing import Any

from tests.apps.glossary.conftest import TEXT
from tests.gateway.conftest import opened
from tests.nats_server import NatsServer
from tsuzuki import Run, Worker, settings
from tsuzuki.apps.glossary import flows
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.records import Document


async def test_a_glossary_is_made_beside_the_files(nats_server: NatsServer, tmp_path: Path) -> None:
    async with opened(f"{nats_server.url}?prefix={nats_server.fresh()}") as runs, asyncio.timeout(60):
        with settings.flagged(TSUZUKI_DATA_DIR=str(tmp_path)):
            async with Worker(runs.backend, flows.flows(), tags=["files"]) as worker:
                working = asyncio.create_task(worker.run())

                async def submit(flow: Any, params: dict[str, Any], **options: Any) -> Run:
                    return await runs.submit(flow, params, tag="files", **options)

                desk = Desk(runs, submit, folder=tmp_path)
                project = desk.project(desk.add_project("one").id)
                project.documents.add([Document("a.md", TEXT)])
                for scope in ("extract", "full"):
                    row = await desk.start(project.project.id, scope)
                    entries = [entry async for entry in desk.logs(project.project.id, row.id)]
                    assert entries[-1]["db_status"] == "completed"
                    assert any("progress_total" in entry for entry in entries)
                worker.stop()
                await working
    assert "worker" in {entry.term_name for entry in project.refined.list()}
