"""What clients and the world do to a gateway: it refuses, lets go or tells, and goes on serving the others."""

import asyncio
import json
import resource
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway.conftest import House, opened
from tests.gateway.processes import PATIENCE, Serving
from tests.gateway.test_workflows import send
from tests.nats_server import NatsServer
from tsuzuki import Worker, flow, task
from tsuzuki.gateway import answers, server, streams
from tsuzuki.testing.stopwatch import Stopwatch

EXCEPTION = {"exc_type", "exc_message", "exc_traceback", "exc_origin"}
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@task
async def chunk(number: int) -> str:
    return f"{number}:" + "x" * 20_000


@flow
async def lengthy(chunks: int) -> int:
    return len(await chunk.map(range(chunks)))


def memory(pid: int) -> int:
    """How much memory a process has (megabytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


@asynccontextmanager
async def connected(url: str, request: str, *, small: bool = False) -> AsyncIterator[socket.socket]:
    """Sends the beginning of a request over a connection of its own; reads nothing."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.socket() as connection:
        if small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
        await asyncio.get_running_loop().sock_sendall(connection, request.encode())
        yield connection


def get(path: str) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def status_of(connection: socket.socket) -> int:
    """Reads as far as the status of an answer."""
    answer = b""
    while b"\r\n" not in answer:
        piece = await asyncio.get_running_loop().sock_recv(connection, 16)
        assert piece, "the gateway let go before it answered"
        answer += piece
    return int(answer.split()[1])


async def test_a_thousand_streams_beyond_the_limit_are_refused_and_the_others_stay(serving: Serving) -> None:
    most, wanted = 400, 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    process, url = serving(TSUZUKI_HTTP_MAX_STREAMS=str(most))
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        run_id = (await client.post("/runs", json={"flow_name": "x"})).json()["run_id"]
        before = memory(process.pid)
        reached: asyncio.Queue[int] = asyncio.Queue()
        leave = asyncio.Event()

        async def watch() -> None:
            async with connected(url, get(f"/runs/{run_id}/watch")) as connection:
                reached.put_nowait(await status_of(connection))
                await leave.wait()

        watchers: list[asyncio.Task[None]] = []
        statuses: list[int] = []
        for some in (*[most // 8] * 8, wanted - most):  # so many that the store answers them in time
            watchers += [asyncio.create_task(watch()) for _ in range(some)]
            async with asyncio.timeout(60):
                statuses += [await reached.get() for _ in range(some)]
        assert statuses == [200] * most + [503] * (wanted - most)
        assert (await client.get("/health")).status_code == 200
        assert (await client.get(f"/runs/{run_id}")).status_code == 200
        assert memory(process.pid) - before < 100
        leave.set()
        await asyncio.gather(*watchers)
        async with asyncio.timeout(60):
            while "tsuzuki_gateway_streams 0.0" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.05)
        async with client.stream("GET", f"/runs/{run_id}/watch") as answer:
            assert answer.status_code == 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_clients_that_stop_reading_cost_little_and_harm_nobody(serving: Serving, address: str) -> None:
    process, url = serving()
    async with opened(address) as runs, Worker(runs.backend, [lengthy]) as worker:
        working = asyncio.create_task(worker.run())
        run = await runs.submit(lengthy, {"chunks": 500})
        await runs.wait(run.id)
        worker.stop()
        await working
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            whole = (await client.get(f"/runs/{run.id}/events")).text
            assert whole.count("event: fact") > 500
            before = memory(process.pid)
            deaf = [connected(url, get(f"/runs/{run.id}/events"), small=True) for _ in range(30)]
            for one in deaf:
                await one.__aenter__()
            async with asyncio.timeout(60):
                while "tsuzuki_gateway_streams 30.0" not in (await client.get("/metrics")).text:
                    await asyncio.sleep(0.02)
            assert (await client.get(f"/runs/{run.id}/events")).text.count("event: fact") == whole.count("event: fact")
            assert memory(process.pid) - before < 100  # all of it for each of them would be 300
            for one in deaf:
                await one.__aexit__(None, None, None)


async def test_a_stream_that_nobody_reads_is_let_go(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STALL", 0.3)
    monkeypatch.setattr(server, "STALL", 0.3)
    await house.work([lengthy])
    run_id = await house.submit("lengthy", {"chunks": 300})
    await house.ended(run_id)
    opened_streams = house.app.state.gateway.streams
    async with connected(house.url, get(f"/runs/{run_id}/events"), small=True) as deaf, asyncio.timeout(60):
        assert await status_of(deaf) == 200  # and not one byte more of it
        while opened_streams.open:
            await asyncio.sleep(0.02)
    assert (await house.get("/health"))["status"] == "ok"


async def test_many_clients_that_say_a_byte_at_a_time_hold_nobody_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADERS_WAIT", 1.0)

    async def drip() -> None:
        async with connected(house.url, "GET /runs HTTP/1.1\r\nX-Slow: ") as connection:
            loop = asyncio.get_running_loop()
            try:
                while True:
                    await loop.sock_sendall(connection, b"x")
                    await asyncio.sleep(0.05)
            except OSError:  # let go, whatever it still says
                return

    slow = [asyncio.create_task(drip()) for _ in range(200)]
    for _ in range(20):
        await house.submit("nothing")
    async with asyncio.timeout(60):
        await asyncio.gather(*slow)


async def test_a_body_that_never_ends_is_not_waited_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "BODY_WAIT", 0.3)
    request = "POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    async with connected(house.url, request) as connection, asyncio.timeout(60):
        assert await status_of(connection) == 422
    assert await house.get("/runs") == []


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/runs/%ff%fe", {404}),
        ("GET", "/runs?flow=%ff&tag=%c3%28", {200}),
        ("GET", "/runs?text=%ed%a0%80", {200}),
        ("GET", "/runs?cursor=%ff", {422}),
        ("PATCH", "/workers/%ff%2f%c3%28", {404}),
        ("GET", "/dlq/%ff", {404}),
        ("GET", "/static/%ff", {404}),
    ],
)
async def test_an_address_that_is_not_utf_8_is_an_answer_and_no_fault(
    house: House, method: str, path: str, allowed: set[int]
) -> None:
    answer = await house.client.request(method, path, json={"hidden": True} if method == "PATCH" else None)
    assert answer.status_code in allowed, answer.text


async def test_headers_and_forms_that_are_not_utf_8_are_no_fault(house: House) -> None:
    headers: dict[Any, Any] = {b"Idempotency-Key": b"\xff\xfe", b"X-API-Key": b"\xff"}
    answer = await house.client.post("/runs", json={"flow_name": "x"}, headers=headers)
    assert answer.status_code in (200, 422)
    body = b'--b\r\nContent-Disposition: form-data; name="flow_name"\r\n\r\n\xff\xc3(\r\n--b--\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    assert (await house.client.post("/runs/yaml", content=body, headers=kind)).status_code == 422


async def test_a_yaml_bomb_is_refused_at_once(house: House) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.process_time()
    answer = await send(house, "\n".join([*levels, "flow: {graph: *a11}"]), 422)
    assert answer["detail"].startswith("invalid workflow yaml")
    deep = "[" * 50_000
    assert (await send(house, f"flow: {{graph: {deep}}}", 422))["detail"].startswith("invalid workflow yaml")
    assert time.process_time() - began < 5
    assert await house.get("/runs") == []


async def test_a_run_whose_answer_was_lost_with_the_gateway_is_the_same_when_asked_for_again(serving: Serving) -> None:
    (first, one), (_, two) = serving(), serving()
    body = '{"flow_name": "x"}'
    head = f"POST /runs HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: {len(body)}\r\n\r\n"
    async with connected(one, head + body), httpx2.AsyncClient(base_url=two, timeout=PATIENCE) as client:
        async with asyncio.timeout(60):
            while not (listed := (await client.get("/runs")).json()):
                await asyncio.sleep(0.01)
        first.kill()
        for _ in range(2):
            answer = await client.post("/runs", json={"flow_name": "x"}, headers={"Idempotency-Key": "k"})
            assert answer.json()["run_id"] == listed[0]["run_id"]
        assert len((await client.get("/runs")).json()) == 1


async def fill(client: httpx2.AsyncClient) -> tuple[list[str], httpx2.Response]:
    """Submits until there is no room; gives what was accepted, and the answer that was none."""
    accepted: list[str] = []
    for _ in range(400):
        answer = await client.post("/runs", json={"flow_name": "x", "params": {"text": "y" * 100_000}})
        if answer.status_code != 200:
            return accepted, answer
        accepted.append(answer.json()["run_id"])
    raise AssertionError("there was always room")


async def all_there(client: httpx2.AsyncClient, accepted: list[str]) -> None:
    for run_id in accepted:
        run = (await client.get(f"/runs/{run_id}")).json()
        assert (run["status"], len(run["params"]["text"])) == ("PENDING", 100_000)
    assert [run["run_id"] for run in (await client.get("/runs", params={"limit": 200})).json()] == accepted[::-1]


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_full_disk_is_told_loses_nothing_and_passes(serving: Serving, tmp_path: Path) -> None:
    process, url = serving()
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
        accepted, answer = await fill(client)
        assert answer.status_code == 503
        assert answer.json()["detail"].startswith("store unavailable: the disk ")  # a full one, or one that refuses
        assert "free some space" in answer.json()["detail"]
        assert ".db" not in answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.json()["error_id"], answer.headers["retry-after"]) == ("ERR-TSUZUKI-0003", "1")
        assert accepted
        assert (await client.get("/health/ready")).status_code == 503
        await all_there(client, accepted)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        assert (await client.get("/health/ready")).status_code == 200
        answer = await client.post("/runs", json={"flow_name": "x", "params": {"text": "y" * 100_000}})
        assert answer.status_code == 200, answer.text
        await all_there(client, [*accepted, answer.json()["run_id"]])
    errors = [line for line in map(json.loads, (tmp_path / "log").read_text().splitlines()) if line["level"] == "ERROR"]
    assert any((line["http_method"], line["http_path"]) == ("POST", "/runs") for line in errors)
    for line in errors:
        assert line.keys() >= EXCEPTION, line
        assert line["err_id"] == "ERR-TSUZUKI-0003"
        assert "Traceback" in line["exc_traceback"]


@pytest.mark.parametrize("address", ["of its own"], indirect=True)
async def test_a_full_nats_is_told_and_loses_nothing(serving: Serving, own_nats: NatsServer) -> None:
    _, url = serving()
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        accepted, answer = await fill(client)
        assert answer.status_code == 503
        assert answer.json()["detail"].startswith("nats unavailable: JetStream is full; nothing was half-written")
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0003"
        assert accepted
        await all_there(client, accepted)
        assert own_nats.alive


@pytest.mark.parametrize("address", ["of its own"], indirect=True)
async def test_while_nats_is_away_that_is_told_in_time_and_all_is_well_when_it_is_back(
    serving: Serving, own_nats: NatsServer
) -> None:
    _, url = serving()
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        run_id = (await client.post("/runs", json={"flow_name": "x"})).json()["run_id"]
        assert (await client.get("/health/ready")).status_code == 200
        own_nats.kill()
        for method, path in (("GET", "/health/ready"), ("POST", "/runs"), ("GET", "/workers")):
            with Stopwatch() as since:
                answer = await client.request(method, path, json={"flow_name": "x"} if method == "POST" else None)
                assert answer.status_code == 503, path
                assert answer.json()["detail"].startswith("nats unavailable: "), path
                assert since.fair < 5
        assert (await client.get("/health")).status_code == 200
        own_nats.start()
        async with asyncio.timeout(60):
            while (await client.get("/health/ready")).status_code != 200:
                await asyncio.sleep(0.1)
        assert (await client.get(f"/runs/{run_id}")).json()["status"] == "PENDING"
        assert (await client.post("/runs", json={"flow_name": "x"})).status_code == 200
