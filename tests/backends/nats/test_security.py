"""An existing server with TLS and credentials: the right ones open the store, wrong ones are told of at once."""

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.nats.conftest import Open
from tests.backends.nats.test_faults import until
from tests.nats_identities import USER, Certificates, Key, Operator
from tests.nats_server import NatsServer
from tests.tcp_proxy import Proxy
from tsuzuki.backends import Query
from tsuzuki.backends.address import open_backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.errors import BadUsage, StoreError, StoreUnavailable
from tsuzuki.testing import builders as b

SECRET = "s3cr3t-and-never-shown"  # noqa: S105 - of servers that live for one test
WRONG = "not-the-right-one"


class Servers:
    """Starts servers for one test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[NatsServer] = []

    def __call__(self, settings: str = "", *, jetstream: str | None = "") -> NatsServer:
        server = NatsServer(self._folder / f"server{len(self._started)}", settings=settings, jetstream=jetstream)
        self._started.append(server)
        server.start()
        return server

    def stop(self) -> None:
        for server in self._started:
            server.stop()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path)
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates") / "all")


async def works(store: NatsBackend) -> None:
    """A store that is open can be written and read."""
    run = await b.submitted(store)
    assert await store.get(run.id) == run
    assert SECRET not in store.url


# Who we are


async def test_a_token_opens_the_store_and_is_shown_nowhere(
    servers: Servers, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = servers(f"authorization {{ token: {SECRET} }}")
    store = await opened(f"{server.url}?token={SECRET}")
    await works(store)
    await works(await opened(server.url.replace("//", f"//{SECRET}@")))
    server.kill()
    with pytest.raises(StoreUnavailable) as told:
        await b.submitted(store)
    assert SECRET not in f"{told.value!r} {caplog.text}"


async def test_a_user_in_the_address_holds_for_all_servers(servers: Servers, opened: Open) -> None:
    """Also for those that the client learns of only later, which the address does not name."""
    server = servers(f"authorization {{ user: me, password: {SECRET} }}")
    host = server.url.removeprefix("nats://")
    store = await opened(f"nats://me:{SECRET}@127.0.0.1:1,{host}")
    await works(store)
    assert "user=me" in store.url


async def test_an_nkey_opens_the_store(servers: Servers, opened: Open, tmp_path: Path) -> None:
    key = Key(USER)
    (tmp_path / "user.nk").write_bytes(key.seed)
    server = servers(f"authorization {{ users: [{{ nkey: {key.public} }}] }}")
    await works(await opened(server.url, nkey=str(tmp_path / "user.nk")))
    (tmp_path / "other.nk").write_bytes(Key(USER).seed)
    with pytest.raises(StoreUnavailable, match=r"refuses us.*check nkey="):
        await opened(server.url, nkey=str(tmp_path / "other.nk"), connect_timeout=60)


async def test_a_credentials_file_opens_the_store(servers: Servers, opened: Open, tmp_path: Path) -> None:
    operator = Operator()
    server = servers(operator.settings())
    await works(await opened(server.url, creds=str(operator.creds(tmp_path / "user.creds"))))
    with pytest.raises(StoreUnavailable, match=r"there is no JetStream.*enable it for the account"):
        await opened(server.url, creds=str(operator.creds(tmp_path / "poor.creds", "without")))
    strange = Operator().creds(tmp_path / "strange.creds")
    with pytest.raises(StoreUnavailable, match=r"refuses us.*check creds="):
        await opened(server.url, creds=str(strange), connect_timeout=60)


async def test_credentials_that_run_out_are_read_again_when_they_are_replaced(
    servers: Servers, opened: Open, tmp_path: Path
) -> None:
    operator = Operator()
    server = servers(operator.settings())
    store = await opened(
        server.url, creds=str(operator.creds(tmp_path / "user.creds", seconds=2)), timeout=1, connect_timeout=1
    )
    claim = await b.claimed(store)

    async def thrown_out() -> bool:
        try:
            await store.get(claim.run.id)
        except StoreUnavailable:
            return True
        return False

    await until(thrown_out)
    append = asyncio.ensure_future(store.append(claim, [b.item("a")]))
    operator.creds(tmp_path / "user.creds")
    assert await append == 3
    assert (await b.row(store, claim.run.id)).done == 1


async def test_who_is_thrown_out_comes_back_when_he_is_let_in_again(servers: Servers, opened: Open) -> None:
    server = servers(f"authorization {{ token: {SECRET} }}")
    store = await opened(f"{server.url}?token={SECRET}", timeout=1, connect_timeout=1)
    other = await opened(f"{server.url}?token={SECRET}", timeout=1, connect_timeout=1)
    claim = await b.claimed(store)
    for token in (WRONG, SECRET):
        server.configure(f"authorization {{ token: {token} }}")
        server.signal(signal.SIGHUP)

        async def settled(let_in: bool = token == SECRET) -> bool:
            try:
                await store.get(claim.run.id)
            except StoreUnavailable:
                return not let_in
            return let_in

        await until(settled)
    await store.append(claim, [b.item("a")])

    async def heard() -> bool:
        return [row.done for row in await other.search(Query())] == [1]

    await until(heard)  # what others follow was taken up again


@pytest.mark.parametrize("turn", range(8))
async def test_a_wrong_token_is_told_of_at_once(servers: Servers, opened: Open, turn: int) -> None:
    """The server says so and hangs up, and a client that is still sending may hear only the latter: many turns."""
    server = servers(f"authorization {{ token: {SECRET} }}")
    for _ in range(5):
        with pytest.raises(StoreUnavailable, match=r"refuses us.*check token=") as told:
            await opened(f"{server.url}?token={WRONG}", connect_timeout=60)
        assert WRONG not in str(told.value)


async def test_who_does_not_say_who_he_is_is_asked(servers: Servers, opened: Open) -> None:
    server = servers(f"authorization {{ token: {SECRET} }}")
    with pytest.raises(StoreUnavailable, match="asks who we are: give creds="):
        await opened(server.url, connect_timeout=60)


async def test_the_environment_says_what_the_address_leaves_open(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers(f"authorization {{ token: {SECRET} }}")
    monkeypatch.setenv("TSUZUKI_NATS_TOKEN", SECRET)
    store = await open_backend(server.url)
    assert isinstance(store, NatsBackend)
    await works(store)
    await store.close()
    with pytest.raises(StoreUnavailable, match=r"refuses us.*check user= and password="):
        await open_backend(server.url.replace("//", "//me:him@"))


# Who the server is


async def test_a_server_proves_who_it_is(servers: Servers, opened: Open, certificates: Certificates) -> None:
    server = servers(certificates.settings())
    secure = server.url.replace("nats:", "tls:")
    store = await opened(f"{secure}?tls_ca={certificates.ca}")
    await works(store)
    await works(await opened(store.url))
    await works(await opened(server.url, tls_ca=str(certificates.ca)))
    with pytest.raises(StoreUnavailable, match=r"no trusted connection.*check tls_ca="):
        await opened(secure, connect_timeout=60)
    with pytest.raises(StoreUnavailable, match=r"no trusted connection.*name of the server"):
        await opened(f"{secure.replace('127.0.0.1', 'localhost')}?tls_ca={certificates.ca}", connect_timeout=60)


async def test_a_server_asks_for_our_certificate(servers: Servers, opened: Open, certificates: Certificates) -> None:
    server = servers(certificates.settings(verify=True))
    url = f"{server.url.replace('nats:', 'tls:')}?tls_ca={certificates.ca}"
    await works(await opened(url, tls_cert=str(certificates.client)))
    with pytest.raises(StoreUnavailable, match="asks for a certificate of ours: give tls_cert="):
        await opened(url, connect_timeout=60)


def test_a_command_over_tls_says_nothing_but_its_answer(servers: Servers, certificates: Certificates) -> None:
    url = f"{servers(certificates.settings()).url.replace('nats:', 'tls:')}?tls_ca={certificates.ca}"
    command = [sys.executable, "-m", "tsuzuki.cli", "-q", "list", "--json", "--backend", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


async def test_a_secret_is_not_told_to_a_server_without_tls(servers: Servers, opened: Open) -> None:
    server = servers(f"authorization {{ token: {SECRET} }}\nlogtime: false\ntrace: true")
    with pytest.raises(StoreUnavailable, match="does not insist on TLS"):
        await opened(f"{server.url.replace('nats:', 'tls:')}?token={SECRET}", connect_timeout=60)
    assert "CONNECT" not in (server.folder / "log").read_text(), "nothing was said to it"


# What cannot be used


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"nats://me:{SECRET}@host?nonsense=1", "unknown options"),
        (f"nats://{SECRET}@host?replicas=many", "bad option"),
        (f"nats://me:{SECRET}@", "no address"),
        (f"natz://me:{SECRET}@host", "no address"),
        (f"host:4222?token={SECRET}", "no address"),
        (f"nats://host?user=me&token={SECRET}", "go together"),
        (f"nats://host?creds=missing.creds&token={SECRET}", "creds=missing.creds is no file"),
        (f"nats://host?tls_ca={__file__}&token={SECRET}", "certificates for NATS cannot be used"),
    ],
)
async def test_an_address_that_makes_no_sense_is_told_without_its_secrets(url: str, told: str) -> None:
    with pytest.raises(BadUsage, match=told) as error:
        await open_backend(url)
    assert SECRET not in str(error.value)


async def test_a_server_without_jetstream_is_told_of(servers: Servers, opened: Open) -> None:
    server = servers(jetstream=None)
    with pytest.raises(StoreUnavailable, match=r"there is no JetStream.*start the server with --jetstream"):
        await opened(server.url, connect_timeout=60)


async def test_a_server_that_is_too_old_is_told_of(servers: Servers, opened: Open) -> None:
    async with Proxy(servers().port) as way:
        way.rewrite = (b'"version":"2.', b'"version":"1.')
        with pytest.raises(StoreUnavailable, match=r"is nats-server 1\.\d+\.\d+; Tsuzuki needs 2.11 or newer"):
            await opened(way.url)


async def test_replicas_need_a_cluster(servers: Servers, opened: Open) -> None:
    with pytest.raises(StoreError, match=r"it is no cluster.*leave replicas= out"):
        await opened(f"{servers().url}?replicas=3")
