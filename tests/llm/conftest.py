"""A provider to ask, a folder to write to, and keys that are recognised wherever they turn up."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.llm.double import KEY, Double, Stage, staged
from tsuzuki.llm import pacing
from tsuzuki.llm.queue.jobs import JobQueue


class Fact(BaseModel):
    """What is asked for."""

    text: str


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """One server for all tests of this process. What was imported for them need not be looked at after each."""
    gc.collect()
    gc.freeze()
    with staged() as stage:
        yield stage
    gc.unfreeze()


@pytest.fixture
def double(stage: Stage) -> Double:
    return stage.play()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every test have its own folder and keys of nobody."""
    pacing._MODELS.clear()  # noqa: SLF001 - the double of another test announced these limits
    monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TSUZUKI_LOAD_DOTENV", "0")
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    for name in ("PROVIDER", "BASE_URL", "MODEL", "CONCURRENCY", "STRATEGY"):
        monkeypatch.delenv(f"TSUZUKI_LLM_{name}", raising=False)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks often how far a batch is."""
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.02")
    monkeypatch.setenv("TSUZUKI_LLM_SETTLE_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "2")


@pytest.fixture
def asked_there(double: Double, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the double be the provider of whoever names none."""
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "openai")
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", f"{double.url}/v1")


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[JobQueue]:
    async with JobQueue(tmp_path / "llm_jobs.db") as queue:
        yield queue


@pytest.fixture(autouse=True)
def nothing_unclosed() -> Iterator[None]:
    """Lets a connection that nobody closed be told by the test that left it."""
    yield
    gc.collect()
