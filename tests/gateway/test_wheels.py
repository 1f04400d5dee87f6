"""Wheels over HTTP: taken in, listed, given back, deleted, told of; refused in the words that clients know."""

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.gateway.conftest import House, Serve
from tests.wheels.making import flow_wheel, make_wheel
from tsuzuki import AsyncClient
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring

NAME = "demo-1.0-py3-none-any.whl"


def form(path: Path | bytes, name: str = NAME) -> dict[str, Any]:
    return {"wheel": (name, path if isinstance(path, bytes) else path.read_bytes())}


async def post(house: House, path: Path | bytes, name: str = "", code: int = 200, **fields: str) -> dict[str, Any]:
    called = name or (path.name if isinstance(path, Path) else NAME)
    answer = await house.client.post("/wheels", files=form(path, called), data=fields)
    assert answer.status_code == code, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_wheel_comes_is_given_back_byte_for_byte_and_goes(house: House, tmp_path: Path) -> None:
    assert await house.get("/wheels") == []
    path = flow_wheel(tmp_path, "demo", "1.0")
    content = path.read_bytes()
    told = await post(house, path, tags="red,blue,red")
    assert (told["name"], told["size_bytes"], told["tags"]) == (NAME, len(content), ["blue", "red"])
    assert told["sha256_hex"] == hashlib.sha256(content).hexdigest()
    assert told["digest"] == f"SHA-256={told['sha256_b64']}"
    assert told["bucket"].endswith("_wheels")
    assert {"nuid", "modified", "mtime"} <= told.keys()
    assert await house.get("/wheels") == [told]
    answer = await house.client.get(f"/wheels/{NAME}")
    assert (answer.content, answer.headers["content-type"]) == (content, "application/octet-stream")
    assert NAME in answer.headers["content-disposition"]
    again = await post(house, path, code=409)
    assert (again["detail"], again["error_id"]) == ("wheel version already exists; bump version", "ERR-TSUZUKI-0022")
    older = await post(house, flow_wheel(tmp_path, "demo", "0.9"), code=409, replace="true")
    assert older["detail"] == "wheel version must be greater than existing latest version"
    gone = await house.client.delete(f"/wheels/{NAME}")
    assert (gone.status_code, gone.json()) == (200, {"name": NAME, "deleted": True})
    for path_ in (f"/wheels/{NAME}", "/wheels/..%2Fx.whl", "/wheels/x"):
        missing = await house.get(path_, 404)
        assert (missing["detail"], missing["error_id"]) == ("wheel not found", "ERR-TSUZUKI-0023")
    assert (await house.client.delete(f"/wheels/{NAME}")).status_code == 404
    await post(house, flow_wheel(tmp_path, "demo", "0.9"), replace="false")
    history = await house.get("/wheels/history")
    assert [(event["action"], event["wheel_name"], event["replace"]) for event in history] == [
        ("upload", "demo-0.9-py3-none-any.whl", False),
        ("delete", NAME, None),
        ("upload", NAME, True),
    ]
    assert history[2]["tags"] == ["blue", "red"]
    assert history[2]["actor"] == {"tenant_id": None, "api_key_id": None}
    assert history[2]["source"]["remote_addr"] == "127.0.0.1"
    assert history[2]["source"]["user_agent"].startswith("python-httpx")
    assert await house.get("/wheels/history", limit=1, action="upload", wheel_name=NAME) == [history[2]]


async def test_what_makes_no_sense_is_refused_in_words_that_clients_know(small: House, tmp_path: Path) -> None:
    good = flow_wheel(tmp_path, "demo", "1.0")
    for name, fields, detail in (
        ("demo.zip", {}, "invalid wheel name"),
        ("..%2Fx.whl", {}, "invalid wheel name"),
        ("demo.whl", {}, "invalid wheel filename"),
        (NAME, {"tags": "a b"}, "invalid wheel tags"),
        (NAME, {"replace": "perhaps"}, "invalid request"),
        ("other-1.0-py3-none-any.whl", {}, "invalid wheel file: its folder demo-1.0.dist-info"),
    ):
        told = await post(small, good, name, 422, **fields)
        assert told["detail"].startswith(detail), told
        assert told["error_id"] == "ERR-TSUZUKI-0002"
    assert "empty" in (await post(small, b"", code=422))["detail"]
    broken = flow_wheel(tmp_path, "demo", "1.1", imports="def broken(:")
    told = await post(small, broken, code=422)
    assert told["detail"].startswith("invalid wheel file: demo.py, line 3: invalid syntax"), told
    for query in ({"limit": 0}, {"limit": 501}, {"wheel_name": "x"}, {"action": "other"}):
        assert (await small.get("/wheels/history", 422, **query))["error_id"] == "ERR-TSUZUKI-0002"
    assert (await small.get("/wheels/history", 422, action="other"))["detail"] == "invalid action"
    missing = await small.client.post("/wheels", data={"tags": "a"}, files={"other": ("x", b"")})
    assert (missing.status_code, missing.json()["errors"][0]["loc"]) == (422, ["body", "wheel"])
    for body, kind in ((b"--x\r\nbroken", "multipart/form-data; boundary=x"), (b"{}", "application/json")):
        refused = await small.client.post("/wheels", content=body, headers={"content-type": kind})
        assert refused.status_code == 422, refused.text
    assert await small.get("/wheels") == []


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_wheel_that_is_too_large_is_refused_while_it_comes(serve: Serve, tmp_path: Path) -> None:
    house = await serve(Options(max_wheel_bytes=1_000_000))
    for size in (1_000_001, 20_000_000):
        told = await post(house, bytes(size), code=413)
        assert (told["detail"], told["error_id"]) == ("wheel too large", "ERR-TSUZUKI-0002")


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_with_auth_on_uploading_needs_a_key_with_that_right(serve: Serve, tmp_path: Path) -> None:
    house = await serve(Options(auth=True))
    ring = Keyring(house.runs.backend)
    plain, _ = await ring.create("lab")
    trusted, record = await ring.create("ops", rights=["wheels"])
    path = flow_wheel(tmp_path, "demo", "1.0")
    assert (await house.client.post("/wheels", files=form(path))).status_code == 401
    refused = await house.client.post("/wheels", files=form(path), headers={"X-API-Key": plain})
    assert (refused.status_code, refused.json()["error_id"]) == (403, "ERR-TSUZUKI-0015")
    assert "--right wheels" in refused.json()["detail"]
    taken = await house.client.post("/wheels", files=form(path), headers={"X-API-Key": trusted})
    assert taken.status_code == 200
    assert (await house.client.delete(f"/wheels/{NAME}", headers={"X-API-Key": plain})).status_code == 403
    assert (await house.client.get(f"/wheels/{NAME}", headers={"X-API-Key": plain})).status_code == 200
    hidden = (await house.client.get("/wheels/history", headers={"X-API-Key": plain})).json()[0]
    assert (hidden["actor"]["tenant_id"], hidden["source"]["remote_addr"]) == (None, None)
    shown = (await house.client.get("/wheels/history", headers={"X-API-Key": trusted})).json()[0]
    assert shown["actor"] == {"tenant_id": "ops", "api_key_id": record.id}


async def test_of_uploads_at_once_only_versions_that_go_up_are_kept(house: House, tmp_path: Path) -> None:
    wheels = [flow_wheel(tmp_path, "demo", version) for version in ("1.0", "1.1", "1.2")]
    await asyncio.gather(*(house.client.post("/wheels", files=form(each, each.name)) for each in wheels * 3))
    told = [event["wheel_name"] for event in await house.get("/wheels/history")]
    assert told == sorted(set(told), reverse=True)
    assert sorted(told) == [wheel["name"] for wheel in await house.get("/wheels")]
    assert wheels[-1].name in told


@pytest.mark.parametrize("address", ["nats"], indirect=True)
async def test_any_client_of_nats_finds_a_wheel_in_the_object_store(house: House, address: str, tmp_path: Path) -> None:
    path = flow_wheel(tmp_path, "demo", "1.0")
    told = await post(house, path, tags="red")
    connection = await nats.connect(address.partition("?")[0])
    try:
        bucket = await connection.jetstream().object_store(told["bucket"])
        found = await bucket.get(NAME)
        assert found.data == path.read_bytes()
        assert [entry.name for entry in await bucket.list()] == [NAME]
        history = await connection.jetstream().key_value(told["bucket"].replace("_wheels", "_wheel_history"))
        (key,) = await history.keys()
        event = (await house.get("/wheels/history"))[0]
        assert key == f"{int(event['occurred_at'] * 1000)}_{event['event_id']}"
    finally:
        await connection.close()


async def test_neither_gateway_nor_store_nor_client_ever_hold_a_wheel_in_memory(house: House, tmp_path: Path) -> None:
    size = 48 << 20
    path = make_wheel(tmp_path, "large", "1.0", {"large.bin": os.urandom(size)}, packed=False)
    before = peak(anew=True)
    async with AsyncClient(house.url, timeout=60) as client:
        await client.upload_wheel(path.name, path)
        await client.download_wheel(path.name, tmp_path / "back.whl")
    assert peak() - before < size / 2, "client, gateway and store are all in this process"
    assert (tmp_path / "back.whl").stat().st_size == path.stat().st_size
    assert not list(tmp_path.glob("*.part"))


def peak(*, anew: bool = False) -> int:
    """Gives the most memory that this process has had, or, counted anew, what it has now."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(small: House) -> None:
    reader, writer = await asyncio.open_connection(*small.url.removeprefix("http://").split(":"))
    del reader
    head = 'Content-Disposition: form-data; name="wheel"; filename="demo-1.0-py3-none-any.whl"\r\n\r\n'
    body = f"--x\r\n{head}".encode() + bytes(200_000)
    writer.write(b"POST /wheels HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n")
    writer.write(b"Content-Length: 900000\r\n\r\n" + body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert await small.get("/wheels") == []
    assert (await small.client.get("/health")).status_code == 200
