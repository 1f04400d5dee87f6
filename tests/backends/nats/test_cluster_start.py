"""A store is opened while its servers are still looking for each other: whoever comes too early waits for them."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.flows import catalog
from tests.acceptance.watched import ended, working
from tests.nats_cluster import Cluster
from tsuzuki import Runs, Status
from tsuzuki.testing import builders as b

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Cluster]:
    """Servers of which none runs yet."""
    cluster = Cluster(tmp_path / "nats")
    yield cluster
    cluster.stop()


async def listed(url: str, folder: Path) -> tuple[int | None, str]:
    """Lists the runs with the command; gives its exit code and what it complained of."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tsuzuki.cli", "list", "--backend", url),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, complained = await process.communicate()
    return process.returncode, complained.decode()


async def test_whoever_opens_a_store_while_its_servers_start_waits_for_their_leader(
    starting: Cluster, tmp_path: Path
) -> None:
    starting.launch()
    async with Runs.open(f"{starting.url}&timeout=60") as runs:  # asked too early, a question is never answered
        run = await runs.submit(catalog.small, {"number": 1})
        await b.row(runs.backend, run.id)
    starting.stop()
    starting.launch()
    with working(starting.url, tmp_path) as worker:
        code, complained = await listed(starting.url, tmp_path)
        assert code == 0, complained
        async with Runs.open(starting.url) as runs:
            assert (await ended(runs, run)).status is Status.COMPLETED, worker.complained
