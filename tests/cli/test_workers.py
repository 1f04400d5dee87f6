"""`tsuzuki workers`: who works on a store."""

import asyncio
import json
import time
from pathlib import Path

from click.testing import CliRunner

from tests.cli.conftest import Terminal
from tsuzuki import Runs
from tsuzuki.backends import WorkerRecord, WorkerState
from tsuzuki.cli import main
from tsuzuki.cli.overseeing import _worker as row_over_http
from tsuzuki.cli.remote import facts_of
from tsuzuki.cli.workers import _row as row_here
from tsuzuki.crew import SeenWorker
from tsuzuki.facts import Claimed
from tsuzuki.gateway.examples import SNAPSHOT, WORKER
from tsuzuki.testing import FakeClock
from tsuzuki.testing import builders as b


def beaten(terminal: Terminal, worker: str, *, at: float, state: WorkerState, run: str | None = None) -> None:
    """Lets a worker have beaten so many seconds from now; a store stamps heartbeats by its own clock."""

    async def beat() -> None:
        clock = FakeClock(time.time() + at)
        async with Runs.open(data_dir=str(terminal.folder / ".tsuzuki"), clock=clock) as runs:
            started = clock.now()
            await runs.backend.beat(
                WorkerRecord(
                    id=worker,
                    host="elsewhere/",
                    tags=("gpu",),
                    started_at=started,
                    current_run_id=run,
                    state=state.value,
                )
            )

    asyncio.run(beat())


def crew(terminal: Terminal) -> None:
    """Two that live, however long the test takes, and two that do not."""
    beaten(terminal, "left", at=-200, state=WorkerState.STOPPED_GRACEFUL)
    beaten(terminal, "killed", at=-100, state=WorkerState.RUNNING)
    beaten(terminal, "idle", at=600, state=WorkerState.IDLE)
    beaten(terminal, "busy", at=601, state=WorkerState.RUNNING, run="21581b62-ffb4")


def shown(terminal: Terminal, *options: str) -> dict[str, str]:
    return {worker["worker_id"]: worker["state"] for worker in terminal.json("workers", *options)}


def test_workers_that_live_are_shown_and_all_when_asked(terminal: Terminal) -> None:
    crew(terminal)
    assert shown(terminal) == {"busy": "RUNNING", "idle": "IDLE"}
    assert list(shown(terminal, "--all").items()) == [
        ("busy", "RUNNING"),
        ("idle", "IDLE"),
        ("killed", "DISCONNECTED"),
        ("left", "STOPPED_GRACEFUL"),
    ]
    assert shown(terminal, "--state", "disconnected") == {"killed": "DISCONNECTED"}
    head, busy, idle = terminal.tsuzuki("workers").stdout.splitlines()
    assert head.split() == ["WORKER", "STATE", "RUN", "SEEN", "TAGS", "FLOWS"]
    assert busy.split()[:3] == ["busy", "RUNNING", "21581b62"]
    assert idle.split()[-1] == "gpu"


def test_a_hidden_worker_stays_hidden_when_it_beats_and_can_be_shown_again(terminal: Terminal) -> None:
    crew(terminal)
    assert terminal.tsuzuki("workers", "--hide", "idle").stdout == "worker idle is hidden\n"
    beaten(terminal, "idle", at=602, state=WorkerState.IDLE)
    assert shown(terminal) == {"busy": "RUNNING"}
    assert "idle" in shown(terminal, "--hidden")
    assert "IDLE, hidden" in terminal.tsuzuki("workers", "--hidden").stdout
    assert terminal.tsuzuki("workers", "--unhide", "idle").stdout == "worker idle is shown\n"
    assert "idle" in shown(terminal)


def test_a_worker_that_is_not_there_and_a_state_that_is_none_are_told(terminal: Terminal) -> None:
    crew(terminal)
    assert "worker not found: 'nobody'" in terminal.tsuzuki("workers", "--hide", "nobody", code=1).stderr
    assert "disconnected" in terminal.tsuzuki("workers", "--state", "asleep", code=1).stderr


def test_a_store_without_workers_says_so(terminal: Terminal) -> None:
    terminal.submit_shared()
    assert terminal.tsuzuki("workers").stderr.startswith("no workers")
    assert terminal.json("workers") == []


def test_wheels_that_a_worker_cannot_install_and_those_a_run_had_are_shown() -> None:
    failing = {"enabled": True, "last_result": "error", "last_error": "no room"}
    record = WorkerRecord(id="w1", state=WorkerState.IDLE.value, wheel_sync=failing)
    assert row_here(SeenWorker(record, WorkerState.IDLE))[1] == "IDLE, wheel sync fails"
    assert row_over_http(WORKER | {"state": "IDLE", "wheel_sync": failing})[1] == "IDLE (wheel sync fails)"
    assert dict(facts_of(SNAPSHOT))["wheels"] == "crawling-1.2.0-py3-none-any.whl"


def test_wheels_of_a_run_are_shown_out_of_its_store(tmp_path: Path) -> None:
    wheels = {"crawling-1.2.0-py3-none-any.whl": "ab12"}

    async def claimed() -> None:
        async with Runs.open(f"sqlite:{tmp_path / 'tsuzuki.db'}") as runs:
            await b.submitted(runs.backend, claimed=Claimed(at=b.AT, attempt=1, worker="w", wheels=wheels))
            await b.submitted(runs.backend)

    asyncio.run(claimed())

    def told(*arguments: str) -> str:
        return CliRunner().invoke(main, ["-q", "get", *arguments, "--data-dir", str(tmp_path)]).output

    assert "wheels      crawling-1.2.0-py3-none-any.whl\n" in told("1")
    assert json.loads(told("1", "--json"))["wheels"] == wheels
    assert "wheels" not in told("2")
