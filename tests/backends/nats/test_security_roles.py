"""Each role has the rights that it needs, on a real server, and no other's."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import nats
import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_server import NatsServer
from tsuzuki import Runs, Status, Worker, flow, task
from tsuzuki.backends import API_KEYS, Line, Query, WorkerRecord, copying
from tsuzuki.backends.nats import NatsBackend, administration, options, topology
from tsuzuki.backends.nats.permissions import ROLES, permissions
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.errors import StoreError
from tsuzuki.keyring import Keyring
from tsuzuki.servers.looking import look
from tsuzuki.testing import builders as b
from tsuzuki.testing.contract.wheels import CONTENT, a_wheel, an_event, content_of, put

DOCS = Path(__file__).parents[3] / "docs" / "nats.md"
LARGE = 300_000
"""A result of so many letters does not fit into the journal."""


def names(prefix: str = "tsuzuki") -> Topology:
    return Topology(options.parse("nats://host", prefix=prefix))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that knows a user of each role by the role's name; each has an inbox of his own."""
    users = [
        {"user": role, "password": role, "permissions": permissions(role, names(), f"_INBOX_{role}").config()}
        for role in (*ROLES, "gateway+worker")
    ]
    server = NatsServer(tmp_path / "nats", settings=f"authorization: {json.dumps({'users': users})}")
    server.start()
    yield server
    server.stop()


Enter = Callable[[str], Awaitable[NatsBackend]]


@pytest.fixture
async def enter(server: NatsServer, opened: Open) -> Enter:
    """Opens the store as somebody of a role; an admin was there first."""

    async def as_role(role: str) -> NatsBackend:
        return await opened(server.url, user=role, password=role, inbox=f"_INBOX_{role}", connect_timeout=60)

    await as_role("admin")
    return as_role


@flow
async def working(n: int) -> int:
    return sum(len(text) for text in (await measured.map(range(n), concurrency=4)))


@task(rate="1000/s", limit="all")
async def measured(n: int) -> str:
    return "x" * (LARGE if n == 0 else 1)


@asynccontextmanager
async def at_work(store: NatsBackend) -> AsyncIterator[None]:
    async with Worker(store, [working]) as worker:
        running = asyncio.create_task(worker.run())
        yield
        worker.stop()
        await running


async def refused(*doings: Awaitable[object]) -> None:
    """Each of them is refused soon, with what to do."""
    async with asyncio.timeout(4):  # less than an answer is waited for
        for doing in doings:
            with pytest.raises(StoreError, match=r"this user may not .*docs/nats.md"):
                await doing


async def test_a_gateway_submits_and_purges_what_a_worker_carries_out_and_a_viewer_sees(enter: Enter) -> None:
    gateway, viewer = await enter("gateway"), await enter("viewer")
    runs = Runs(gateway)
    async with at_work(await enter("worker")):
        run = await runs.submit(working, {"n": 20}, key="k", idempotency_key="once")
        assert (await runs.submit(working, {"n": 20}, key="k", idempotency_key="once")).id == run.id
        failing = await runs.submit(working, {"n": -1})

        async def ended() -> bool:
            return {row.status.terminal for row in await viewer.search(Query())} == {True}

        await until(ended)
    row = await b.row(viewer, run.id)
    assert row.status is Status.COMPLETED
    assert row.result == msgspec.Raw(str(LARGE + 19).encode())
    assert len(await viewer.read(run.id)) == row.position
    assert [worker.state for worker in await viewer.workers()] == ["STOPPED_GRACEFUL"]
    assert (await b.row(viewer, failing.id)).status in (Status.COMPLETED, Status.FAILED)
    assert await gateway.purge([run.id, failing.id]) == 2

    async def gone() -> bool:
        return await viewer.counts() == {}

    await until(gone)


async def test_a_cancel_reaches_a_busy_holder(enter: Enter) -> None:
    """The gateway asks the holder, who may answer whoever asked him."""
    gateway, worker = await enter("gateway"), await enter("worker")
    run = await b.submitted(gateway)
    claim = await b.claim_of(worker, run.id)

    async def write() -> None:
        for n in range(10_000):
            await worker.append(claim, [b.item(str(n))])

    writing = asyncio.create_task(write())
    await gateway.ask(run.id, b.cancel())
    writing.cancel()
    assert (await b.row(gateway, run.id)).status is Status.CANCELLING


async def test_a_gateway_and_a_worker_remove_the_ticket_of_a_run_that_ends_without_being_dealt_out(
    enter: Enter, server: NatsServer
) -> None:
    """Left behind it is dealt out in vain, and once its run is forgotten it becomes a dead letter."""
    gateway, worker, admin = await enter("gateway"), await enter("worker"), await enter("admin")
    waiting, claimed = await b.submitted(gateway), await b.submitted(gateway)
    await gateway.ask(waiting.id, b.cancel())
    await worker.append(await b.claim_of(worker, claimed.id), [b.ending(Status.COMPLETED)])

    async def none_left() -> bool:
        return not await admin._parts.work._subjects()  # noqa: SLF001 - nobody else tells

    await until(none_left)
    assert "Violation" not in (server.folder / "log").read_text()


async def test_a_script_needs_the_rights_of_both(enter: Enter) -> None:
    store = await enter("gateway+worker")
    async with at_work(store):
        run = await Runs(store).submit(working, {"n": 3})

        async def ended() -> bool:
            return (await b.row(store, run.id)).status is Status.COMPLETED

        await until(ended)


async def test_a_viewer_changes_nothing(enter: Enter) -> None:
    admin, viewer = await enter("admin"), await enter("viewer")
    run = await b.submitted(admin)
    done = await b.ended(admin, Status.COMPLETED)
    await refused(
        b.submitted(viewer),
        b.submitted(viewer, key="k"),
        viewer.ask(run.id, b.cancel()),
        viewer.claim("viewer", tags=("default",), run_id=run.id),
        viewer.purge([done.id]),
        viewer.put_blob(run.id, b"x"),
        viewer.take("limit", interval=1.0),
        viewer.remove(),
    )
    assert (await b.row(admin, run.id)).status is Status.PENDING
    assert await admin.get(done.id) == done


async def test_a_worker_submits_nothing_and_removes_nothing(enter: Enter) -> None:
    admin, worker = await enter("admin"), await enter("worker")
    done = await b.ended(admin, Status.COMPLETED)
    await refused(b.submitted(worker), b.submitted(worker, key="k"), worker.remove())
    assert await admin.get(done.id) == done


async def test_a_gateway_does_not_work(enter: Enter) -> None:
    gateway = await enter("gateway")
    run = await b.submitted(gateway)
    await b.submitted(gateway, params=msgspec.Raw(b'{"text": "' + b"x" * 900_000 + b'"}'))
    logged = gateway.log(run.id, [Line(1.0, "a line")])
    await refused(gateway.beat(WorkerRecord(id="gateway", host="")), logged, gateway.remove())


@pytest.mark.parametrize("role", sorted(ROLES))
async def test_nobody_reaches_beyond_the_store(enter: Enter, server: NatsServer, role: str) -> None:
    """Another store on the same server, and what others ask and are answered."""
    url = server.url.replace("//", f"//{role}:{role}@")
    await refused(NatsBackend.open(url, prefix="other", inbox=f"_INBOX_{role}", connect_timeout=60))
    heard: list[Exception] = []

    async def erred(error: Exception) -> None:
        heard.append(error)

    async def all_heard() -> bool:
        return len(heard) == len(beyond)

    beyond = ("_INBOX.>", "_INBOX_other.>", "$JS.>", "tsuzuki.j.>", ">")
    client = await nats.connect(server.url, user=role, password=role, error_cb=erred)
    for subject in beyond:
        await client.subscribe(subject)
    await until(all_heard)
    await client.close()


async def test_a_store_that_is_not_there_needs_an_admin(server: NatsServer, opened: Open) -> None:
    as_worker = server.url.replace("//", "//worker:worker@")
    as_admin = server.url.replace("//", "//admin:admin@")
    with pytest.raises(StoreError, match=r"is missing.*open the store once with the rights of an admin"):
        await opened(as_worker, inbox="_INBOX_worker", connect_timeout=60)
    for stream in names().streams():  # whichever of them it is
        admin = await opened(as_admin, inbox="_INBOX_admin", connect_timeout=60)
        await admin.close()
        client = await nats.connect(as_admin, inbox_prefix=b"_INBOX_admin")
        await client.jetstream().delete_stream(stream)
        await client.close()
        with pytest.raises(StoreError, match=rf"{stream} is missing.*open the store once"):
            await opened(as_worker, inbox="_INBOX_worker", connect_timeout=60)


async def test_a_gateway_takes_wheels_in_and_a_worker_only_reads_them(enter: Enter) -> None:
    gateway, worker, viewer = [await enter(role) for role in ("gateway", "worker", "viewer")]
    before = await worker.wheels.news()
    kept = await put(gateway, a_wheel())
    for store in (worker, viewer):
        assert await store.wheels.all() == [kept]
        assert await content_of(store, kept) == CONTENT
        await refused(put(store, a_wheel("2")), store.wheels.remove(kept.name, an_event("delete")))

    async def heard() -> bool:
        return await worker.wheels.news() != before

    await until(heard)
    assert await gateway.wheels.remove(kept.name, an_event("delete")) == kept
    assert len(await viewer.wheels.events(since=0, limit=9)) == 2


@pytest.mark.parametrize("role", ["viewer", "worker", "gateway", "gateway+worker"])
async def test_no_role_but_the_admin_gives_itself_rights(enter: Enter, server: NatsServer, role: str) -> None:
    """Make a key, revoke one, make a wheel, widen a stream: as the product does it, and with a client of one's own."""
    admin, store = await enter("admin"), await enter(role)
    text, key = await Keyring(admin).create("ops", rights=("wheels",))
    await refused(Keyring(store).create("ops", rights=("wheels",)), store.drop_record(API_KEYS, key.id))
    if "gateway" in role:  # it has to know them
        assert await Keyring(store).holder(text) == key
        await refused(Keyring(store).revoke(key.id))
    else:
        await refused(Keyring(store).list(), Keyring(store).revoke(key.id), Keyring(store).holder(text))
        await refused(put(store, a_wheel()))
    stream = names().auth
    asked = {
        names().document(API_KEYS, "0" * 12): b"{}",
        topology.purge_stream(stream): b"",
        topology.delete_message(stream): b'{"seq": 1}',
        topology.create_consumer(stream, "mine"): b"{}",
        administration.update_stream(stream): b"{}",
        administration.delete_stream(stream): b"",
        administration.create_stream("mine"): b'{"name": "mine", "subjects": ["mine"]}',
        administration.snapshot_stream(stream): b'{"deliver_subject": "mine"}',
        administration.restore_stream(stream): b"{}",
    }
    await all_denied(server, role, asked)
    assert await Keyring(admin).list() == [key]


async def all_denied(server: NatsServer, role: str, asked: Mapping[str, bytes]) -> None:
    """The server refuses each of the messages."""
    heard: list[str] = []

    async def erred(error: Exception) -> None:
        heard.append(str(error))

    async def all_heard() -> bool:
        return len(heard) == len(asked)

    client = await nats.connect(
        server.url, user=role, password=role, inbox_prefix=f"_INBOX_{role}".encode(), error_cb=erred
    )
    for subject, body in asked.items():
        await client.publish(subject, body, reply=client.new_inbox())
    await until(all_heard)
    await client.close()


async def test_an_inbox_that_is_not_ours_is_told_of(enter: Enter, server: NatsServer, opened: Open) -> None:
    with pytest.raises(StoreError, match="this user may not listen to _inbox"):
        await opened(server.url.replace("//", "//worker:worker@"), connect_timeout=60)


async def test_no_role_has_a_right_to_what_does_not_exist(enter: Enter) -> None:
    """What is allowed belongs to a stream of the store, to its subjects, or to the inbox."""
    store = await enter("admin")
    beyond = {"admin": {administration.account_info(), administration.stream_names()}}
    known = [subject.removesuffix(">") for config in names().streams().values() for subject in config["subjects"]]
    for role in ROLES:
        for subject in set(permissions(role, names()).publish) - beyond.get(role, set()):
            about = any(subject.startswith(start) for start in (*known, names().restoring))
            assert about or any(f".{stream}" in subject for stream in names().streams()), subject
    assert administration.delete_stream(names().journal) not in permissions("worker", names()).publish
    await store.close()


async def test_an_admin_copies_a_store_brings_it_back_and_looks_at_its_servers_and_others_do_not(
    server: NatsServer, opened: Open, tmp_path: Path
) -> None:
    def address(role: str) -> str:
        return f"nats://{role}:{role}@127.0.0.1:{server.port}?inbox=_INBOX_{role}"

    admin = await opened(address("admin"))
    async with Runs.open(address("gateway")) as runs:
        run = await runs.submit(working, {"n": 1})
    text, key = await Keyring(admin).create("ops")
    for role in ("viewer", "worker"):
        with pytest.raises(StoreError, match="this user may not"):
            await copying.backup(address(role), tmp_path / role)
    await copying.backup(address("admin"), tmp_path / "backup")
    seen = await look(address("admin"), None)
    assert (seen.streams[0].name, seen.streams[0].messages) == (names().journal, 1)
    await admin.remove()
    await admin.close()  # whoever is at work in a store keeps a reserve in it, and would refill what is restored
    await copying.restore(tmp_path / "backup", address("admin"))
    assert await (await opened(address("viewer"))).get(run.id) is not None
    assert await Keyring(await opened(address("gateway"))).holder(text) == key


@pytest.mark.parametrize("role", sorted(ROLES))
def test_the_docs_show_the_rights_of_each_role(role: str) -> None:
    shown = json.dumps(permissions(role, names(), f"_INBOX_{role}").config(), indent=2)
    assert shown in DOCS.read_text(), f"docs/nats.md is to show the rights of a {role}:\n{shown}"
