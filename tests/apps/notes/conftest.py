"""A study for tests: a store with a worker, a desk, and a model behind a real HTTP server that counts its questions."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.llm.double import KEY, Double, running
from tsuzuki import Run, Runs, Worker, settings
from tsuzuki.apps.notes import flows
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.wanted import Asked, Started

LONGEST = 60.0


def knowledge(prompt: str) -> str:
    """Answers as a model would that does what it is told."""
    title = re.search(r"Title: (.*)", prompt)
    note = {
        "title": title[1] if title else "",
        "summary": "In short.",
        "content": "## Point\n\nAll of it.",
        "tags": ["a b"],
    }
    return json.dumps(note)


class Study:
    """A desk whose runs are carried out by a worker of the test."""

    def __init__(self, runs: Runs, folder: Path, model: Double, stack: AsyncExitStack) -> None:
        self.runs = runs
        self.folder = folder
        self.model = model
        self.vault = folder / "vault"
        self._stack = stack
        self.desk = Desk(runs, self._submit, folder=folder)

    async def _submit(self, flow: Any, params: dict[str, Any]) -> Run:
        return await self.runs.submit(flow, params)

    async def work(self) -> Worker:
        worker = await self._stack.enter_async_context(Worker(self.runs.backend, flows.flows(), grace=5.0))
        task = asyncio.create_task(worker.run())
        self.worker = worker

        async def stop() -> None:
            worker.stop()
            await task

        self._stack.push_async_callback(stop)
        return worker

    def asked(self, export: Path, *, offline: bool = False, **options: Any) -> Asked:
        at = {"llm": "offline"} if offline else {"llm": "openai", "base_url": f"{self.model.url}/v1", "model": "m-1"}
        return Asked(export, self.vault, **{**at, **options})

    async def imported(self, export: Path, *, limit: int = 0, **options: Any) -> tuple[Session, dict[str, Any]]:
        """Imports to the end; gives the session and what the run says."""
        started = await self.desk.start(self.asked(export, **options), limit=limit)
        return self.desk.sessions.find(started.session_id), await self.told(started)

    async def resumed(self, session: Session, **options: Any) -> dict[str, Any]:
        return await self.told(await self.desk.resume(session, **options))

    async def told(self, started: Started) -> dict[str, Any]:
        row = await self.ended(started.run.id)
        assert row.status == "COMPLETED", row.error
        told: dict[str, Any] = await self.runs.result(row.id)
        return told

    async def ended(self, run_id: str) -> Run:
        async with asyncio.timeout(LONGEST):
            return await self.runs.wait(run_id)

    @staticmethod
    async def moment() -> None:
        await asyncio.sleep(0.01)

    def notes(self) -> dict[str, str]:
        return {
            path.name: path.read_text(encoding="utf-8") for path in sorted(self.vault.glob("*.md")) if path.is_file()
        }


def lines(path: Path) -> list[dict[str, Any]]:
    """Reads JSONL, strictly."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def records(session: Session, stage: str = "") -> list[dict[str, Any]]:
    return [line for line in lines(session.stage_log) if stage in ("", line["stage"])]


@pytest.fixture
def model() -> Iterator[Double]:
    with running() as double:
        double.answer = knowledge
        yield double


@pytest.fixture(autouse=True)
def zone() -> Iterator[Callable[[str], None]]:
    """Lets every test be in UTC, whatever zone the machine is in; a test may move elsewhere."""
    with pytest.MonkeyPatch.context() as patched:

        def move(name: str) -> None:
            patched.setenv("TZ", name)
            time.tzset()

        move("UTC")
        yield move
    time.tzset()


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LOAD_DOTENV", "0")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("PROVIDER", "BASE_URL", "MODEL", "CONCURRENCY", "STRATEGY"):
        monkeypatch.delenv(f"TSUZUKI_LLM_{name}", raising=False)


@pytest.fixture
async def study(tmp_path: Path, model: Double) -> AsyncIterator[Study]:
    folder = tmp_path / "files"
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with Runs.open(data_dir=str(folder)) as runs, AsyncExitStack() as stack:
            study = Study(runs, folder, model, stack)
            await study.work()
            yield study
