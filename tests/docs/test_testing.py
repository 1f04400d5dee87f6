"""Every piece of code in docs/testing.md is a test that passes, in a project that has what it names."""

import asyncio
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from tests.docs.fragments import blocks, body, run
from tsuzuki import Later, flow, llm, task
from tsuzuki.clock import Clock
from tsuzuki.errors import ProviderUnavailable
from tsuzuki.testing import FakeClock, FakeLLM, MemoryBackend, run_flow

PAGE = "docs/testing.md"


class Verdict(BaseModel):
    """What is asked for."""

    fits: bool
    why: str


@task
def parse(page: str) -> str:
    if "<title>" not in page:
        raise ValueError("no title")
    return page


@task
async def fetch(url: str) -> str:
    if url.endswith("broken"):
        raise ConnectionError(url)
    return url


@flow
async def crawl(site: str, urls: list[str]) -> dict[str, int]:
    pages = await fetch.map(urls, on_error="collect")
    return {"ok": len(pages.succeeded), "failed": len(pages.failed)}


@flow
async def review(pages: list[str]) -> list[str]:
    found = []
    for page in pages:
        verdict = await llm.ask(Verdict, f"Is this about otters? {page}")
        await llm.ask(str, page)
        found.append(verdict.why)
    return found


class Project:
    """What the page calls `myproject`, beside its tests."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        busy = [Later(600)] * 6

        @task
        async def impatient() -> str:
            if busy:
                raise busy.pop()
            return "at last"

        @flow
        async def patient() -> str:
            return await impatient()

        @task
        async def send(number: int) -> int:
            if number not in self.sent:  # the call that was under way is made again
                self.sent.append(number)
            return number

        @flow
        async def invoices(month: str) -> int:
            return len([await send(number) for number in range(5)])

        self.patient, self.invoices = patient, invoices


async def remind(clock: Clock) -> None:
    await clock.sleep(24 * 3600)


@pytest.fixture
def scope(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    project = Project()
    named: dict[str, Any] = {"parse": parse, "crawl": crawl, "review": review, "Verdict": Verdict}
    for name in ("myproject", "myproject.tasks", "myproject.flows", "mybackend"):
        module = ModuleType(name)
        vars(module).update(named, MyBackend=lambda path, clock: MemoryBackend(clock))
        monkeypatch.setitem(sys.modules, name, module)
    return {
        "asyncio": asyncio,
        "pytest": pytest,
        "run_flow": run_flow,
        "FakeClock": FakeClock,
        "FakeLLM": FakeLLM,
        "ProviderUnavailable": ProviderUnavailable,
        "Verdict": Verdict,
        "remind": remind,
        "patient": project.patient,
        "invoices": project.invoices,
        "sent": project.sent,
        "__name__": "tests_of_the_page",
    }


def test_the_tests_of_the_page_pass(scope: dict[str, Any], tmp_path: Path) -> None:
    ran = 0
    for block in blocks(PAGE):
        if block.startswith(" "):  # lines of a test whose beginning is above
            asyncio.run(body(block, scope)())
            continue
        before = set(scope)
        for name in set(run(block, scope)) - before:
            if name.startswith("test_"):
                test = scope[name]
                asyncio.run(test()) if inspect.iscoroutinefunction(test) else test()
                ran += 1
    assert ran == 6
    backend = asyncio.run(scope["TestMyBackend"]().open_backend(FakeClock(), tmp_path))
    assert isinstance(backend, MemoryBackend)
