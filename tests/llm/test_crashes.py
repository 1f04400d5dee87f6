"""kill -9 at every boundary: sync asks at most what was under way twice, a batch is created and billed once."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.llm.double import Double, Plan
from tests.llm.test_batches import PATHS
from tests.llm.test_queue import process, questions
from tsuzuki.cli import main
from tsuzuki.llm.queue.jobs import JobQueue

CONCURRENCY = 4


class Victim:
    """A process that is started, and killed where a test says."""

    def __init__(self, file: Path, double: Double, name: str, process_id: str, strategy: str) -> None:
        url = double.url + PATHS[name]
        self._command = [sys.executable, "-m", "tests.llm.crashing", str(file), name, url, process_id, strategy]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, env={**os.environ})

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        self.start()
        assert self._process is not None
        assert self._process.wait(60) == 0

    @property
    def ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "nothing happened within a minute"
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_SETTLE_SEC", "0.5")
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "2")


async def enqueued(file: Path, count: int) -> str:
    mine = process()
    async with JobQueue(file) as queue:
        await queue.enqueue(mine, questions(count))
    return mine


async def test_a_hundred_sync_jobs_survive_kills(tmp_path: Path, double: Double) -> None:
    file = tmp_path / "llm_jobs.db"
    double.delay = 0.02
    mine = await enqueued(file, 100)
    victim = Victim(file, double, "openai", mine, "sync")
    for asked in (10, 40, 70):
        victim.start()
        wait_for(lambda asked=asked: sum(double.prompts.values()) >= asked)  # type: ignore[misc]
        victim.kill()
        async with JobQueue(file) as queue:
            counts = await queue.counts(mine)
            assert "IN_PROGRESS" not in counts
            assert counts.get("COMPLETED", 0) >= asked - 4 * CONCURRENCY
    victim.finish()
    async with JobQueue(file) as queue:
        assert await queue.counts(mine) == {"COMPLETED": 100}
    assert len(double.prompts) == 100
    assert sum(double.prompts.values()) <= 100 + 3 * CONCURRENCY


BOUNDARIES = ["before file", "after file", "before batch", "after batch", "while polling", "while collecting"]
"""Where the process is killed: while the provider holds its request, before or after it did what was asked."""


class Boundary:
    """Holds the first client that comes to a boundary, so that it can be killed there."""

    def __init__(self, double: Double, name: str) -> None:
        self.reached = False
        self._name = name
        double.pause = self.pause

    async def pause(self, boundary: str) -> None:
        if boundary == self._name and not self.reached:
            self.reached = True
            await asyncio.sleep(0.3)  # its client dies meanwhile; what the provider does, it does


@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_one_batch_is_created_although_its_process_is_killed(
    tmp_path: Path, double: Double, boundary: str
) -> None:
    file = tmp_path / "llm_jobs.db"
    double.plan = Plan(polls=5 if boundary == "while polling" else 1)
    at = Boundary(double, boundary)
    mine = await enqueued(file, 12)
    victim = Victim(file, double, "openai", mine, "batch")
    victim.start()
    if boundary == "while polling":
        wait_for(lambda: any(batch.looked for batch in double.batches.values()))
    elif boundary == "while collecting":
        wait_for(lambda: any(batch.over for batch in double.batches.values()))
    else:
        wait_for(lambda: at.reached)
    victim.kill()
    victim.finish()
    async with JobQueue(file) as queue:
        assert await queue.counts(mine) == {"COMPLETED": 12}
    assert len(double.batches) == 1
    assert len(double.billed) == 12
    assert set(double.billed.values()) == {1}


@pytest.mark.parametrize("boundary", ["before batch", "after batch"])
async def test_the_same_where_batches_carry_no_metadata(tmp_path: Path, double: Double, boundary: str) -> None:
    file = tmp_path / "llm_jobs.db"
    double.plan = Plan(polls=3)
    at = Boundary(double, boundary)
    mine = await enqueued(file, 5)
    victim = Victim(file, double, "anthropic", mine, "batch")
    victim.start()
    wait_for(lambda: at.reached)
    victim.kill()
    victim.start()
    while not victim.ended:  # nobody looks at a batch that is not known yet: it goes on by itself
        for batch in double.batches.values():
            batch.looked += 1
        await asyncio.sleep(0.2)
    async with JobQueue(file) as queue:
        assert await queue.counts(mine) == {"COMPLETED": 5}
    assert len(double.batches) == 1
    assert set(double.billed.values()) == {1}


ASKS = """
from tsuzuki import flow, llm

@flow
async def asks(strategy: str) -> int:
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(12)], strategy=strategy, concurrency=4)
    return sum(answer.ok for answer in answers)
"""


@pytest.mark.parametrize(
    ("name", "strategy"),
    [("openai", "batch"), ("anthropic", "batch"), ("openai", "sync"), ("anthropic", "sync"), ("gemini", "sync")],
)
def test_a_run_that_is_killed_and_partly_fails_pays_for_no_answer_twice(
    tmp_path: Path, double: Double, name: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed once while it asks. Then two answers fail, and a resume asks for those two alone."""
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", name)
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", double.url + {**PATHS, "gemini": "/v1beta"}[name])
    double.delay = 0.05
    double.plans = [Plan(refuse={3, 5}, polls=1 if name == "openai" else 0)]
    at = Boundary(double, "after batch")
    (tmp_path / "flows.py").write_text(ASKS)
    command = ["run", f"{tmp_path}/flows.py:asks", "-p", f"strategy={strategy}", "--data-dir", str(tmp_path)]
    victim = subprocess.Popen([sys.executable, "-m", "tsuzuki.cli", *command])
    wait_for(lambda: at.reached if strategy == "batch" else sum(double.prompts.values()) > 4)
    victim.kill()
    victim.wait()
    paid = sum(double.prompts.values())
    double.refusals = [(400, {})] * 2 if strategy == "sync" else []
    typed = CliRunner()
    assert typed.invoke(main, command).exit_code == 6
    again = typed.invoke(main, ["resume", "1", "--data-dir", str(tmp_path)])
    assert (again.exit_code, again.output.split()[-1]) == (0, "12"), again.output
    if strategy == "batch":
        assert [len(batch.requests) for batch in double.batches.values()] == [12, 2]
        assert set(double.billed.values()) == {1}
        assert not double.prompts, "nothing was asked directly"
    else:
        assert len(double.prompts) == 12
        assert sum(double.prompts.values()) <= 12 + min(paid, CONCURRENCY)
        assert len(double.seen) == sum(double.prompts.values()) + 2, "what failed was asked once more"


LARGE = """
from pathlib import Path
from tsuzuki import flow, llm

def held(name: str) -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024

@flow
async def large(megabytes: int) -> float:
    await llm.ask_all([llm.Request("warm")], strategy="batch")
    before = held("VmRSS")
    requests = [llm.Request(f"{n} " + "word " * 4000) for n in range(50 * megabytes)]
    answers = await llm.ask_all(requests, strategy="batch")
    assert all(answer.ok for answer in answers)
    return (held("VmHWM") - before) / sum(len(request.prompt) for request in requests)
"""


@pytest.mark.parametrize("name", PATHS)
def test_a_batch_takes_little_more_memory_than_its_text(
    tmp_path: Path, double: Double, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", name)
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", double.url + PATHS[name])
    double.answer = lambda prompt: prompt[:5]
    (tmp_path / "flows.py").write_text(LARGE)
    command = ["run", f"{tmp_path}/flows.py:large", "-p", "megabytes=20", "--data-dir", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "tsuzuki.cli", *command], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.5


LEFT = """
import asyncio, pathlib, sys
from tsuzuki.llm.queue.jobs import JobQueue

async def main() -> None:
    queue = await JobQueue(pathlib.Path(sys.argv[1])).__aenter__()
    asyncio.get_running_loop().create_task(queue.close()).cancel()

asyncio.run(main())
"""


def test_who_is_cancelled_while_it_lets_go_of_the_queue_does_not_keep_the_process(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LEFT, str(tmp_path / "jobs.db")], timeout=60, check=False)
    assert done.returncode == 0
