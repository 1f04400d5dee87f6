"""Clients that send too much, too slowly, or do not read; and a store that is gone."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from tests.gateway.conftest import House, Serve
from tests.nats_server import NatsServer
from tsuzuki.errors import StoreUnavailable
from tsuzuki.gateway import server
from tsuzuki.gateway.options import Options


async def test_params_of_ten_megabytes_are_too_large(house: House) -> None:
    answer = await house.client.post("/runs", json={"flow_name": "nothing", "params": {"x": "y" * 10_000_000}})
    assert answer.status_code == 413
    assert answer.json()["detail"].startswith("request too large")
    assert await house.get("/runs") == []


async def test_a_body_without_a_length_is_cut_off_too(small: House) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 100_000

    answer = await small.client.post("/runs", content=endless())
    assert answer.status_code == 413


async def test_params_below_the_limit_are_kept_whole(house: House) -> None:
    text = "日本" * 100_000
    run = await house.get(f"/runs/{await house.submit('nothing', {'x': text})}", include="params")
    assert run["params"] == {"x": text}


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Reads until the server has let go."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_headers_that_never_end_are_not_waited_for(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_WAIT", 0.2)
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    writer.write(b"GET /health HTTP/1.1\r\nX-Slow: ")
    async with asyncio.timeout(60):
        assert await rest(reader) == b""
    writer.close()
    assert (await small.get("/health"))["status"] == "ok"


@pytest.mark.parametrize(
    ("begun", "more", "told"),
    [
        (b"GET /", b"a", True),
        (b"GET /health HTTP/1.1\r\nX-Long: ", b"a", True),
        (b"GET /health HTTP/1.1\r\n", b"X-Many: a\r\n", True),
        (b"POST /runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Late: a\r\n", False),
    ],
    ids=["an address", "a header", "headers", "headers behind the body"],
)
async def test_headers_without_measure_are_taken_to_no_more_than_their_limit(
    small: House, begun: bytes, more: bytes, told: bool
) -> None:
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    writer.write(begun)
    sent, lump = 0, more * (10_000 // len(more))
    answered = asyncio.create_task(rest(reader))
    async with asyncio.timeout(60):
        while not answered.done() and sent < 50_000_000:
            writer.write(lump)
            with suppress(ConnectionError):
                await writer.drain()
            await asyncio.sleep(0)
            sent += len(lump)
        answer = await answered
    writer.close()
    assert sent < 50_000_000
    assert answer == b"" or told == answer.startswith(b"HTTP/1.1 431 "), answer
    assert (await small.get("/health"))["status"] == "ok"


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: %b\r\n\r\n" % (b"a" * 100_000), b"431"),
        (b"GET /health?%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 100_000), b"431"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n%b\r\n" % (b"X-Many: a\r\n" * 10_000), b"431"),
        (b"POST /runs HTTP/1.1\r\nHost: x\r\nX-Long: %b\r\nContent-Length: 3\r\n\r\n{}\n" % (b"a" * 70_000), b"431"),
        (b'POST /runs HTTP/1.1\r\nHost: x\r\nContent-Length: 90013\r\n\r\n{"params": "%b"' % (b"a" * 90_000), b"422"),
    ],
    ids=["a header", "an address", "headers", "a header before a body", "a body"],
)
async def test_the_limit_of_headers_holds_in_one_piece_and_is_none_of_bodies(
    small: House, head: bytes, code: bytes
) -> None:
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    writer.write(head + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(60):
        answer = await rest(reader)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 " + code), answer
    assert (code == b"431") == (b'"status":"ok"' not in answer), answer
    assert await small.get("/runs") == []


async def test_a_refusal_of_long_headers_does_not_stand_in_the_midst_of_an_answer(small: House) -> None:
    run_id = await small.submit("nothing")
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    writer.write(f"GET /runs/{run_id}/watch HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    async with asyncio.timeout(60):
        await reader.readuntil(b"event: snapshot")
        writer.write(b"GET / HTTP/1.1\r\nX-Long: " + b"a" * server.MOST_HEADERS)
        assert b"431" not in await rest(reader)
    writer.close()


async def test_long_headers_that_are_within_the_limit_are_read(small: House) -> None:
    for _ in range(3):
        assert (await small.client.get("/health", headers={"X-Long": "a" * 50_000})).status_code == 200


async def test_a_second_request_on_a_connection_is_waited_for_again(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    for _ in range(3):
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in await reader.readuntil(b"}")
    monkeypatch.setattr(server, "HEADERS_WAIT", 0.2)
    writer.write(b"GET /hea")
    async with asyncio.timeout(60):
        assert await rest(reader) == b""
    writer.close()


async def test_an_answer_is_sent_at_once(small: House) -> None:
    await small.get("/health")
    connections: Any = small.server.server_state.connections
    for connection in connections:
        socket_of = connection.transport.get_extra_info("socket")
        assert socket_of.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def unfinished(house: House) -> list[Any]:
    """The connections with an answer that is not sent yet."""
    connections: Any = house.server.server_state.connections
    return [one for one in connections if one.cycle and not one.cycle.response_complete]


async def test_a_client_that_does_not_read_is_let_go(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STALL", 0.3)
    await house.work()
    run_id = await house.submit("repeats", {"size": 20_000_000})
    await house.ended(run_id)
    host, _, port = house.url.removeprefix("http://").partition(":")
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        await asyncio.get_running_loop().sock_connect(deaf, (host, int(port)))
        deaf.send(f"GET /runs/{run_id}/result HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert await asyncio.get_running_loop().sock_recv(deaf, 12) == b"HTTP/1.1 200"  # and no more of it
            while unfinished(house):
                await asyncio.sleep(0.02)
    assert (await house.get("/health"))["status"] == "ok"


async def test_a_store_that_is_gone_is_told_as_503(nats_server: NatsServer, serve: Serve) -> None:
    house = await serve(Options())
    backend = house.runs.backend
    run_id = await house.submit("nothing")

    async def gone(*_: object, **__: object) -> None:
        raise StoreUnavailable("disk I/O error at a/b/c.db: host 10.0.0.7")

    for name in ("submit", "get", "search", "counts", "workers"):
        setattr(backend, name, gone)
    word = "nats unavailable" if backend.url.startswith("nats") else "store unavailable"
    for path in ("/runs", f"/runs/{run_id}", f"/runs/{run_id}/watch", "/workers", "/metrics", "/health/ready"):
        answer = await house.client.get(path)
        assert answer.status_code == 503, path
        assert answer.json()["detail"] == f"{word}: try again soon; the log of the gateway says why"
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0003"
        assert "10.0.0.7" not in answer.text
    assert (await house.client.post("/runs", json={"flow_name": "x"})).status_code == 503
    assert (await house.get("/health"))["status"] == "ok"
    for name in ("submit", "get", "search", "counts", "workers"):
        delattr(backend, name)


async def test_an_unexpected_error_tells_nothing_of_our_insides(small: House) -> None:
    async def surprise(*_: object, **__: object) -> None:
        raise RuntimeError("the secret is 42")

    setattr(small.runs.backend, "workers", surprise)  # noqa: B010 - a bound method of a real store, for this test
    answer = await small.client.get("/health/ready")
    assert answer.status_code == 500
    assert json.loads(answer.text) == {
        "type": "about:blank",
        "title": "Internal server error",
        "status": 500,
        "detail": "internal server error",
        "error_id": "ERR-TSUZUKI-0001",
    }


async def test_a_page_from_elsewhere_can_change_nothing(house: House) -> None:
    run_id = await house.submit("nothing")
    for origin in ("http://elsewhere.example", "null", "http://127.0.0.1", "http://[", ""):
        answer = await house.client.post(f"/runs/{run_id}/cancel", headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert answer.headers["content-type"] == "application/problem+json"
    assert (await house.get(f"/runs/{run_id}"))["status"] == "PENDING"
    answer = await house.client.post(f"/runs/{run_id}/cancel", headers={"Origin": house.url})
    assert answer.json()["status"] == "CANCELLED"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_name_that_was_pointed_at_this_machine_is_not_answered_to(serve: Serve) -> None:
    house = await serve(Options(only_local=True))
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[", "0.0.0.0"):  # noqa: S104
        assert (await house.client.get("/runs", headers={"Host": host})).status_code in (400, 403), host
    for host in ("localhost:8000", "127.0.0.1", "[::1]:80"):
        assert (await house.client.get("/runs", headers={"Host": host})).status_code == 200, host
