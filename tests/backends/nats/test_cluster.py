"""Three servers with three replicas lose nodes, leaders and their quorum; the runs lose nothing."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
from click.testing import CliRunner

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import recorded, until
from tests.nats_cluster import Cluster
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import Query
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.cli import main, servers
from tsuzuki.errors import StoreUnavailable
from tsuzuki.flow import Flow
from tsuzuki.lifecycle import Run
from tsuzuki.servers import looking
from tsuzuki.servers.configuration import Told
from tsuzuki.servers.place import Place
from tsuzuki.testing import builders as b

pytestmark = pytest.mark.timeout(240)

ITEMS = 300
CLAIMED_OR_CANCELLED = {Status.RUNNING, Status.CANCELLING, Status.CANCELLED}


class Work:
    """A map that is held back until a test lets it go on, and counts the calls of each item."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self._allowed = asyncio.Semaphore(0)

    def allow(self, items: int) -> None:
        for _ in range(items):
            self._allowed.release()

    def flow(self) -> Flow[[], int]:
        @task
        async def call(n: int) -> int:
            await self._allowed.acquire()
            self.calls.append(n)
            return n

        @flow
        async def mapped() -> int:
            return len((await call.map(range(ITEMS), concurrency=16, on_error="collect")).succeeded)

        return mapped


@asynccontextmanager
async def working(stores: list[NatsBackend], work: Work) -> AsyncIterator[Run]:
    """Submits the map to the last store and has the workers of all carry it out; one gets it, the others watch him."""
    mapped = work.flow()
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(Worker(store, [mapped], concurrency=4, lease=3)) for store in stores]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            yield await Runs(stores[-1]).submit(mapped, {})
        finally:
            for worker in workers:
                worker.stop()
            await asyncio.gather(*running)


async def progressed(store: NatsBackend, run: Run, items: int) -> None:
    """Waits until so many items are kept."""

    async def kept() -> bool:
        row = await store.get(run.id)
        return row is not None and row.done >= items

    await until(kept, 60)


async def completed(store: NatsBackend, work: Work, run: Run) -> None:
    """Lets the run end: every item was called once, and is recorded once."""
    work.allow(ITEMS)

    async def ended() -> bool:
        return (await b.row(store, run.id)).status is Status.COMPLETED

    await until(ended, 60)
    row = await b.row(store, run.id)
    assert row.result is not None
    assert (bytes(row.result), row.attempt) == (str(ITEMS).encode(), 1), "nobody else took it over"
    assert sorted(work.calls) == list(range(ITEMS)), "no item was called twice"
    assert await recorded(store, run.id) == {str(n): 1 for n in range(ITEMS)}


async def test_a_quorum_that_is_lost_and_regained_costs_time_and_nothing_else(cluster: Cluster, opened: Open) -> None:
    store = await opened(cluster.url, prefix="quorum", timeout=1)
    other = await opened(cluster.url, prefix="quorum", timeout=1)
    work = Work()
    async with working([store, other], work) as run:
        work.allow(100)
        await progressed(other, run, 100)
        waiting = await b.submitted(other, private=True)
        # A leader that lost the others goes on answering readers for some 20 s: who is left leads neither.
        leaders = [await cluster.leader("quorum-journal"), await cluster.leader("KV_quorum_workers")]
        survivor = next(name for name in cluster.nodes if name not in leaders)
        for name, node in cluster.nodes.items():
            if name != survivor:
                node.kill()
        work.allow(100)  # whose facts wait
        try:
            await refused(other, waiting)
        finally:
            cluster.start()
        await progressed(other, run, 200)
        await completed(other, work, run)
    # What was refused may have been done, as with any answer that is lost: but once, and wholly.
    assert set((await recorded(other, waiting.id)).values()) <= {1}
    rows = {row.id: row.status for row in await other.search(Query())}
    assert {rows.pop(run.id), rows.pop(waiting.id)} <= {Status.COMPLETED, Status.PENDING, *CLAIMED_OR_CANCELLED}
    assert set(rows.values()) <= {Status.CANCELLED}, "a submission that was refused does not run"


async def refused(store: NatsBackend, run: Run) -> None:
    """Every verb that needs the servers says that they do not answer."""
    verbs = [
        store.get(run.id),
        store.workers(),
        store.claim("nobody", tags=("default",), run_id=run.id),
        store.ask(run.id, b.cancel()),
        b.submitted(store, key="refused"),
        store.take("rate", interval=1.0),
        store.put_blob(run.id, b"x" * 10),
    ]
    answers = await asyncio.gather(*verbs, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * len(verbs), answers
    assert all("does not answer" in str(answer) for answer in answers)
    await until(partial(looks_ill, store))


async def looks_ill(store: NatsBackend) -> bool:
    """Who looks the store over is told, be it that it cannot be done."""
    try:
        return not all(check.ok for check in await store.examine())
    except StoreUnavailable:
        return True


async def test_a_submission_outlives_the_leader_that_it_was_sent_to(cluster: Cluster, opened: Open) -> None:
    """The leader hears nothing any more and its connections stay open, as when its link is cut."""
    watcher = await opened(cluster.url, prefix="silent")
    leader = await cluster.leader("silent-journal")
    store = await opened(f"{cluster.nodes[leader].url}?replicas=3", prefix="silent", timeout=60)
    cluster.nodes[leader].signal(signal.SIGSTOP)
    try:
        plain, keyed = await asyncio.gather(b.submitted(store), b.submitted(store, key="k", idempotency_key="once"))
        assert (await b.submitted(store, key="k", idempotency_key="once")).id == keyed.id
    finally:
        cluster.nodes[leader].signal(signal.SIGCONT)
        cluster.start()
    rows = {row.id: row.status for row in await watcher.search(Query())}
    assert rows == {plain.id: Status.PENDING, keyed.id: Status.PENDING}


async def test_a_run_goes_on_while_each_node_is_lost_in_turn(cluster: Cluster, opened: Open) -> None:
    """The one that the worker is connected to, the leader of the journal, and the one that is left."""
    here = next(iter(cluster.nodes))
    store = await opened(f"{cluster.nodes[here].url}?replicas=3", prefix="turns", timeout=2)
    watcher = await opened(cluster.url, prefix="turns", timeout=2)
    work = Work()
    async with working([store, watcher], work) as run:
        work.allow(50)
        await progressed(watcher, run, 30)
        lost: list[str] = []
        while len(lost) < len(cluster.nodes):
            leader = await cluster.leader("turns-journal")
            left = [name for name in cluster.nodes if name not in lost and name != leader]
            name = here if not lost else leader if leader not in lost else left[0]
            cluster.nodes[name].kill()
            lost.append(name)
            work.allow(50)
            await progressed(watcher, run, 30 + 50 * len(lost))
            cluster.start()
        await completed(watcher, work, run)


def test_whoever_starts_the_third_server_is_told_the_address_of_all_and_to_keep_three_copies(cluster: Cluster) -> None:
    node = cluster.nodes["n2"]
    told = Told(cluster="c", port=node.port, http_port=node.monitor)
    (line,) = [line for line in servers.next_steps(told, Place(node.folder)) if line.startswith("  use ")]
    hosts, _, query = line.partition("nats://")[2].strip("'").partition("?")
    assert (set(hosts.split(",")), query) == (
        {f"127.0.0.1:{each.port}" for each in cluster.nodes.values()},
        "replicas=3",
    )


def examined(cluster: Cluster, name: str, *words: str) -> tuple[int, str]:
    """Runs `tsuzuki nats …` beside one of the servers; gives its exit code and what it said."""
    node = cluster.nodes[name]
    told = {"cluster": "c", "name": name, "port": node.port, "http_port": node.monitor}
    (node.folder / "server.json").write_text(json.dumps(told))
    (node.folder / "nats-server.pid").write_text(str(node.pid))
    said = CliRunner().invoke(main, ["nats", *words, "--dir", str(node.folder)])
    return said.exit_code, said.output


def test_doctor_has_nothing_against_servers_that_are_well_and_hold_no_streams(cluster: Cluster) -> None:
    for name in cluster.nodes:
        code, text = examined(cluster, name, "doctor", "--backend", f"{cluster.url}&prefix=nothing")
        assert (code, "NOT OK" in text) == (0, False), text


async def test_a_killed_server_is_told_once_and_the_others_can_be_looked_at_meanwhile(
    cluster: Cluster, opened: Open
) -> None:
    url = f"{cluster.url}&prefix=looks"
    await opened(url)
    lost = str(cluster.nodes["n0"].told("jsz")["meta_cluster"]["leader"])
    here, other = (name for name in cluster.nodes if name != lost)
    cluster.nodes[lost].kill()
    code, text = await asyncio.to_thread(examined, cluster, here, "status", "--backend", url)
    assert code == 0, text
    assert re.search(rf"^{lost} +offline", text, re.MULTILINE), text

    async def only_the_lost_one_is_told(name: str) -> bool:
        code, text = await asyncio.to_thread(examined, cluster, name, "doctor", "--backend", url)
        assert "nats up on its machine" in text, text
        wrong = [line.split() for line in text.splitlines() if line.startswith("NOT OK")]
        told = [(code, *line[2:]) for line in wrong if line[2] == "servers"]
        assert told == [(1, "servers", *f"{lost} does not answer".split())], text
        return len(wrong) == 1  # streams that the lost server led may lag for a moment

    for name in (here, other):
        await until(partial(only_the_lost_one_is_told, name), 60)
    seen = await looking.look(url, None)
    assert lost not in {server.name for server in seen.servers if server.state == "up" and server.silent is None}


async def test_a_store_of_single_copies_gets_more_when_it_is_opened_with_more(cluster: Cluster, opened: Open) -> None:
    url = cluster.url.partition("?")[0]

    async def look() -> tuple[int, str]:
        return await asyncio.to_thread(examined, cluster, "n0", "doctor", "--backend", f"{url}?prefix=grows")

    store = await opened(url, prefix="grows", timeout=2)
    work = Work()
    async with working([store], work) as run:
        work.allow(50)
        await progressed(store, run, 30)
        code, text = await look()
        assert (code, "10 streams are on one server only, though there are 3" in text) == (1, True), text
        assert "'nats://HOST:4222?replicas=3&prefix=grows'" in text

        await opened(f"{url}?replicas=3", prefix="grows", timeout=2)

        async def copied() -> bool:
            return (await look())[0] == 0

        await until(copied, 60)
        cluster.nodes[await cluster.leader("grows-journal")].kill()
        work.allow(50)
        await progressed(store, run, 80)
        cluster.start()
        await completed(store, work, run)
