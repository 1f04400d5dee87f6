"""On NATS another machine goes on with a batch that is open: its queue is empty, the journal tells what was sent."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.llm.double import Double, Plan
from tests.llm.takeover_flows import takeover
from tests.llm.test_crashes import Boundary
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status
from tsuzuki.errors import ClaimLost
from tsuzuki.script import run_here

FLOWS = Path(__file__).with_name("takeover_flows.py")


class Machine:
    """A worker with a folder of its own."""

    def __init__(self, folder: Path, backend: str, double: Double) -> None:
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tsuzuki.cli", "worker", "--flows", str(FLOWS), "--backend", backend]
        told = {
            "TSUZUKI_DATA_DIR": str(folder),
            "TSUZUKI_LLM_PROVIDER": "openai",
            "TSUZUKI_LLM_BASE_URL": f"{double.url}/v1",
            "TSUZUKI_LLM_POLL_SEC": "0.2",
            "TSUZUKI_LLM_SETTLE_SEC": "0.5",
            "TSUZUKI_LLM_TIMEOUT_SEC": "2",
            "TSUZUKI_LEASE_SECONDS": "2",
        }
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, env={**os.environ, **told}, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("boundary", ["after batch", "while polling"])
async def test_another_machine_goes_on_without_a_second_batch(
    tmp_path: Path, double: Double, nats_server: NatsServer, boundary: str
) -> None:
    backend = f"{nats_server.url}?prefix={nats_server.fresh()}"
    double.plan = Plan(polls=10**6)
    at = Boundary(double, boundary)
    async with Runs.open(backend) as runs:
        row = await runs.submit(takeover, {"count": 4})
        first = Machine(tmp_path / "first", backend, double)
        try:
            await until(lambda: at.reached or any(batch.looked for batch in double.batches.values()))
        finally:
            first.kill()
        await until(lambda: len(double.batches) == 1)
        second = Machine(tmp_path / "second", backend, double)
        try:
            for batch in double.batches.values():
                batch.plan = Plan(polls=1)
            async with asyncio.timeout(60):
                while (found := await runs.get(row.id)).status is not Status.COMPLETED:
                    assert found.status in (Status.PENDING, Status.RUNNING), found.error
                    await asyncio.sleep(0.05)
            assert (await runs.result(row.id)) == [f"answer to q{n}" for n in range(4)]
            assert [spent.requests for spent in found.spent] == [4]
        finally:
            second.kill()
    assert len(double.batches) == 1
    assert set(double.billed.values()) == {1}


@pytest.mark.parametrize("store", ["sqlite", "nats"])
async def test_a_holder_whose_claim_is_taken_over_during_the_upload_creates_no_batch(
    tmp_path: Path, double: Double, asked_there: None, nats_server: NatsServer, store: str
) -> None:
    sqlite = f"sqlite:{tmp_path / 'tsuzuki.db'}"
    backend = sqlite if store == "sqlite" else f"{nats_server.url}?prefix={nats_server.fresh()}"
    async with Runs.open(backend) as runs:
        stolen = []

        async def steal() -> None:
            [row] = await runs.list()
            stolen.extend(await runs.backend.claim("thief", run_id=row.id, dead=frozenset({row.holder or ""})))

        loop = asyncio.get_running_loop()

        async def pause(boundary: str) -> None:
            if boundary == "after file" and not stolen:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(steal(), loop))

        double.pause = pause
        with pytest.raises(ClaimLost):
            await run_here(runs, takeover, {"count": 3}, signals=False)
        assert len(stolen) == 1
    assert double.batches == {}
