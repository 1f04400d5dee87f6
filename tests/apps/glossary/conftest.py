"""A study for tests: a store, a desk, workers when asked for, and a language model that counts what it is asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.llm.double import Double, running
from tsuzuki import Run, Runs, Worker, settings
from tsuzuki.apps.glossary import flows
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.prompts import parts, text_in, texts
from tsuzuki.apps.glossary.records import Document
from tsuzuki.apps.glossary.runs_repository import RunRow

LONGEST = 100.0
TERMS = ("worker", "journal", "claim", "lease", "backend", "gateway", "replay", "cursor")
TEXT = "\n\n".join(
    f"A {term} is a thing with number {number} in the engine. Each {term} has a place."
    for number, term in enumerate(TERMS)
)


class Study:
    """A desk whose runs are carried out by a worker of the test."""

    def __init__(self, runs: Runs, folder: Path, stack: AsyncExitStack) -> None:
        self.runs = runs
        self.folder = folder
        self._stack = stack
        self.desk = Desk(runs, self._submit, folder=folder)

    async def _submit(self, flow: Any, params: dict[str, Any], **options: Any) -> Run:
        return await self.runs.submit(flow, params, **options)

    async def work(self) -> Worker:
        worker = await self._stack.enter_async_context(Worker(self.runs.backend, flows.flows(), grace=5.0))
        task = asyncio.create_task(worker.run())

        async def stop() -> None:
            worker.stop()
            await task

        self._stack.push_async_callback(stop)
        return worker

    def project(self, *texts: str, model: "Model | None" = None, name: str = "sample") -> ProjectFile:
        """Makes a project with documents, which asks this model."""
        made = self.desk.registry.add(name, **({} if model is None else model.settings))
        project = self.desk.project(made.id)
        if texts:
            project.documents.add(self.documents(*texts))
        return project

    def documents(self, *texts: str) -> list[Document]:
        return [Document(f"{at}.md", text) for at, text in enumerate(texts)]

    async def ended(self, project: ProjectFile, row: RunRow) -> RunRow:
        origin = project.run_origin(row.id)
        assert origin is not None
        async with asyncio.timeout(LONGEST):
            await self.runs.wait(origin.engine_run)
        return await self.desk.run(project.project.id, row.id)

    async def run(self, project: ProjectFile, scope: str, **how: Any) -> RunRow:
        """Starts a run and waits for its end."""
        return await self.ended(project, await self.desk.start(project.project.id, scope, **how))

    async def log(self, project: ProjectFile, row: RunRow) -> list[dict[str, Any]]:
        return [entry async for entry in self.desk.logs(project.project.id, row.id, history=True)]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(LONGEST):
            while not condition():
                await asyncio.sleep(0.01)


class Model:
    """A language model over OpenAI's protocol: it answers this application's questions and counts them."""

    def __init__(self, double: Double) -> None:
        self.double = double
        self.answers: dict[str, Callable[[str], Any]] = {
            "classify": self._classes,
            "define": lambda prompt: {"definition": f"{text_in(prompt, 'term')} as it is", "confidence": 0.8},
            "review": lambda prompt: {"issues": [self._issue(term) for term in texts(prompt, "term")]},
            "refine": lambda prompt: {"definition": f"{text_in(prompt, 'term')} refined", "confidence": 0.9},
        }
        double.answer = self._answer
        self.hold: str | None = None

    @property
    def settings(self) -> dict[str, str]:
        return {"llm_provider": "openai", "llm_model": "m-1", "llm_base_url": f"{self.double.url}/v1"}

    @property
    def asked(self) -> int:
        return sum(self.double.prompts.values())

    def step_of(self, prompt: str) -> str:
        for step, sign in (("classify", "<candidate>"), ("review", "<entry>"), ("refine", "<issue>")):
            if sign in prompt:
                return step
        return "define"

    def asked_for(self, step: str) -> int:
        return sum(count for prompt, count in self.double.prompts.items() if self.step_of(prompt) == step)

    def _answer(self, prompt: str) -> str:
        found = self.answers[self.step_of(prompt)](prompt)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _classes(self, prompt: str) -> Any:
        names = [text_in(candidate, "term") for candidate in parts(prompt, "candidate")]
        return {"terms": [{"term": name, "category": "technical_term"} for name in names]}

    def _issue(self, term: str) -> dict[str, Any]:
        return {"term_name": term, "issue_type": "unclear", "description": f"{term} is vague"}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("TSUZUKI_LLM_CONCURRENCY", "1")
    with running() as double:
        yield Model(double)


@pytest.fixture
async def study(tmp_path: Path) -> AsyncIterator[Study]:
    folder = tmp_path / "files"
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with Runs.open(data_dir=str(folder)) as runs, AsyncExitStack() as stack:
            yield Study(runs, folder, stack)
