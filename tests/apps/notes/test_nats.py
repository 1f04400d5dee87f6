"""On NATS the runs travel, the folders stay: a worker beside them, by its tag, makes the notes."""

import asyncio
from pathlib import Path
from typing import Any

from tests.apps.notes.conftest import lines
from tests.apps.notes.exports import claude, written
from tests.gateway.conftest import opened
from tests.nats_server import NatsServer
from tsuzuki import Run, Worker, settings
from tsuzuki.apps.notes import flows
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.wanted import Asked


async def test_an_import_is_carried_out_beside_the_folders(nats_server: NatsServer, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    export = written(tmp_path / "export/conversations.json", [claude(number) for number in range(20)])
    async with opened(f"{nats_server.url}?prefix={nats_server.fresh()}") as runs, asyncio.timeout(60):
        with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
            async with Worker(runs.backend, flows.flows(), tags=["folders"]) as beside:
                working = asyncio.create_task(beside.run())

                async def submit(flow: Any, params: dict[str, Any]) -> Run:
                    return await runs.submit(flow, params, tag="folders")

                desk = Desk(runs, submit, folder=folder)
                started = await desk.start(Asked(export, tmp_path / "vault", llm="offline"), limit=5)
                await runs.wait(started.run.id)
                session = desk.sessions.find(started.session_id)
                session.stage_log.unlink()
                session.transformed.unlink()
                again = await desk.resume(session)
                await runs.wait(again.run.id)
                stands = await desk.standing(session)
                beside.stop()
                await working
    assert (stands.status, stands.success_count) == ("COMPLETED", 20)
    assert len(lines(session.transformed)) == 20
    assert len(list((tmp_path / "vault").glob("*.md"))) == 20
