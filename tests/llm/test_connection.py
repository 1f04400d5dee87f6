"""Our own connections: whatever a server does with bytes, an answer is read rightly or fails as the library's would."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
import trustme
import uvloop

from tests.llm.double import KEY, Double
from tsuzuki import flow, llm
from tsuzuki.errors import BadUsage, ProviderUnavailable
from tsuzuki.llm.connection import MAX_ANSWER_BYTES, STILL, Connections
from tsuzuki.llm.providers import Address, opened
from tsuzuki.llm.questions import Question
from tsuzuki.llm.wire import Patience, Wire
from tsuzuki.testing import run_flow

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
WHOLE = HEAD + b"content-length: 2\r\n\r\n{}"


@asynccontextmanager
async def serving(
    *answers: bytes, close: bool = False, trust: ssl.SSLContext | None = None, pause: float = 0.001
) -> AsyncIterator[str]:
    """A server that says these bytes, piece by piece, to each request."""
    scheme = "http" if trust is None else "https"

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        SEEN.append("connection")
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                SEEN.append(head.decode())
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                for piece in answers:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause)
                if close or not answers:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    SEEN.clear()
    server = await asyncio.start_server(met, "127.0.0.1", 0, ssl=trust)
    async with server:
        yield f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/v1"


SEEN: list[str] = []


def connections(url: str, timeout: float = 5.0, trust: ssl.SSLContext | None = None) -> Connections:
    return Connections(url, {"authorization": "Bearer x"}, timeout, trust)


PIECES = [
    [WHOLE],
    [WHOLE[n : n + 1] for n in range(len(WHOLE))],
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        b"1;x=y\r\n}\r\n0\r\n\r\n",
    ],
    [HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r", b"\n{", b"}\r", b"\n0\r\nx-trailer: a\r\n\r", b"\n"],
]


@pytest.mark.parametrize("pieces", PIECES, ids=["at once", "byte by byte", "chunked", "chunked in splinters"])
async def test_an_answer_is_read_however_it_is_cut_and_the_connection_is_kept(pieces: list[bytes]) -> None:
    async with serving(*pieces) as url:
        mine = connections(url)
        for _ in range(3):
            response = await mine.ask("POST", "/chat", {"a": "b c"}, b"{}")
            assert (response.status_code, response.content) == (200, b"{}")
        mine.close()
        await asyncio.sleep(0)
    assert SEEN.count("connection") == 1
    assert SEEN[1].startswith("POST /v1/chat?a=b+c HTTP/1.1\r\nhost: localhost:")
    assert "authorization: Bearer x\r\n" in SEEN[1]


@pytest.mark.parametrize(
    ("answers", "body"),
    [
        ([HEAD + b"\r\n{", b"}"], b"{}"),
        ([HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\n{}"], b"{}"),
        ([b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"], b""),
    ],
    ids=["until the end", "closed after it", "nothing"],
)
async def test_an_answer_may_end_with_its_connection(answers: list[bytes], body: bytes) -> None:
    async with serving(*answers, close=True) as url:
        mine = connections(url)
        for _ in range(2):
            assert (await mine.ask("GET", "/x", None, None)).content == body
        mine.close()
    assert SEEN.count("connection") == 2


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([], httpx2.ReadError),
        ([HEAD + b"content-length: 9\r\n\r\n{}"], httpx2.ReadError),
        ([b"SSH-2.0-OpenSSH\r\n\r\n"], httpx2.RemoteProtocolError),
        ([HEAD + b"content-length: many\r\n\r\n"], httpx2.RemoteProtocolError),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n"], httpx2.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000], httpx2.RemoteProtocolError),
    ],
)
async def test_what_is_no_answer_fails(answers: list[bytes], error: type[Exception]) -> None:
    async with serving(*answers, close=True) as url:
        with pytest.raises(error):
            await connections(url).ask("GET", "/x", None, None)


@pytest.mark.parametrize("password", ["", "me:secret@"], ids=["our own", "the library's"])
async def test_an_answer_without_end_is_read_up_to_a_bound(password: str) -> None:
    """By our own connections, and by the library, which is asked where the address has a password."""
    piece = b" " * (1 << 20)
    async with serving(HEAD + b"\r\n", *[piece] * (2 * MAX_ANSWER_BYTES >> 20), pause=0) as url:
        wire = Wire("openai", url.replace("//", f"//{password}"), headers={}, patience=Patience(1))
        with pytest.raises(ProviderUnavailable, match="larger than 64 MB"):
            await wire.json("GET", "/models")
        async with wire.lines("GET", "/stream") as lines:
            with pytest.raises(ProviderUnavailable, match="larger than 64 MB"):
                await anext(lines)
        await wire.close()


async def test_silence_and_nobody_there_end_in_time() -> None:
    async with serving(HEAD) as url:
        with pytest.raises(httpx2.ReadTimeout):
            await connections(url, 0.5).ask("GET", "/x", None, None)  # to connect has to be sooner than that
    with pytest.raises(httpx2.ConnectError):
        await connections(url).ask("GET", "/x", None, None)
    with pytest.raises(ValueError, match="line break"):
        Connections(url, {"x": "a\r\nb"}, 1.0, None)


@pytest.mark.parametrize("key", ["sk-secret\n0123", "sk-秘密0123"])
def test_a_key_that_cannot_be_one_is_refused_without_being_told(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(BadUsage, match="the key of openai has signs") as refused:
        llm.opened(llm.Address("openai"))
    assert "0123" not in str(refused.value)


async def test_an_answer_that_keeps_coming_is_not_given_up() -> None:
    slow = [HEAD + b"content-length: 30\r\n\r\n", *[b"x"] * 30]
    async with serving(*slow, pause=0.025) as url:  # in all longer than it waits, each piece far sooner
        mine = connections(url, 0.6)
        assert (await mine.ask("GET", "/x", None, None)).content == b"x" * 30
        mine.close()
        await asyncio.sleep(0)


async def test_a_connection_that_is_answered_after_the_others_were_closed_is_closed_too() -> None:
    async with serving(HEAD + b"content-length: 2\r\n\r\n", b"{", b"}", pause=0.02) as url:
        mine = connections(url)
        asked = asyncio.create_task(mine.ask("GET", "/x", None, None))
        async with asyncio.timeout(20):
            while len(SEEN) < 2:
                await asyncio.sleep(0)
        mine.close()
        assert (await asked).content == b"{}"
        assert mine._idle == []  # noqa: SLF001 - nobody would ever close it
        await asyncio.sleep(0)


async def test_what_came_while_this_process_stood_still_is_read() -> None:
    async with serving(WHOLE) as url:
        mine = connections(url, 0.3)
        await mine.ask("GET", "/x", None, None)
        asked = asyncio.create_task(mine.ask("GET", "/x", None, None))
        await asyncio.sleep(0)
        time.sleep(0.3 + 2 * STILL)
        assert (await asked).content == b"{}"
        mine.close()
        await asyncio.sleep(0)


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    async with serving(WHOLE, close=True) as url:
        mine = connections(url)
        for _ in range(3):
            assert (await mine.ask("GET", "/x", None, None)).content == b"{}"
            async with asyncio.timeout(20):
                while any(each.usable for each in mine._idle):  # noqa: SLF001 - nobody else can tell
                    await asyncio.sleep(0)
    assert SEEN.count("connection") == 3


async def test_certificates_are_checked() -> None:
    authority = trustme.CA()
    served, trusting = (ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT))
    authority.issue_cert("localhost").configure_cert(served)
    async with serving(WHOLE, trust=served) as url:
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await connections(url, trust=ssl.create_default_context()).ask("GET", "/x", None, None)
        authority.configure_trust(trusting)
        mine = connections(url, trust=trusting)
        assert (await mine.ask("POST", "/x", None, b"{}")).content == b"{}"
        mine.close()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
async def test_a_proxy_is_asked_by_the_library(variable: str, monkeypatch: pytest.MonkeyPatch, double: Double) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    provider = llm.opened(llm.Address("openai", f"{double.url}/v1", "m-1"), patience=Patience(1, 0.0))
    with pytest.raises(ProviderUnavailable):
        await provider.complete(Question("why?"))
    await provider.close()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    direct = llm.opened(llm.Address("openai", f"{double.url}/v1", "m-1"))
    assert (await direct.complete(Question("why?"))).text == "answer to why?"
    await direct.close()


async def test_a_password_in_the_address_is_left_to_the_library(double: Double) -> None:
    wire = Wire("openai", double.url.replace("//", f"//me:{KEY}@") + "/v1", headers={})
    await wire.json("POST", "/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "q"}]})
    assert double.headers[-1]["authorization"].startswith("Basic ")
    await wire.close()


async def test_a_password_in_the_address_is_in_no_journal(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    at = double.url.replace("//", f"//me:{KEY}@") + "/v1"

    @flow
    async def asks(base_url: str = "") -> list[str]:
        return [each.text for each in await llm.ask_all([llm.Request("q")], provider="openai", base_url=base_url)]

    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "openai")
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", at)
    done = await run_flow(asks)
    assert done.result == ["answer to q"]
    assert KEY not in str(done.facts)
    monkeypatch.delenv("TSUZUKI_LLM_BASE_URL")
    assert "set TSUZUKI_LLM_BASE_URL instead" in str((await run_flow(asks, base_url=at)).error)


@pytest.mark.parametrize("text", ["nonsense", "http://", "http://[", "ftp://there/v1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="is no address of openai"):
        opened(Address("openai", text))


def test_the_loop_of_the_gateway_has_connections_too(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def asked() -> str:
        provider = llm.opened(llm.Address("openai", base_url=f"{double.url}/v1"))
        try:
            return await provider.health()
        finally:
            await provider.close()

    assert uvloop.run(asked()) == asyncio.run(asked())
