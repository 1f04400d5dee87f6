"""API keys: opt-in, on every route that shows or changes anything, and tenants hidden from each other."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import House, Serve
from tsuzuki import tokens
from tsuzuki.backends.address import open_backend
from tsuzuki.errors import BadUsage
from tsuzuki.gateway import create_app
from tsuzuki.gateway.contract import api_routes, protected
from tsuzuki.gateway.options import Options
from tsuzuki.keyring import Keyring
from tsuzuki.testing.stopwatch import Stopwatch

OPEN = {("/health", "get"), ("/health/ready", "get")}
EXAMPLE = "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e"


@pytest.fixture
async def locked(serve: Serve) -> House:
    return await serve(Options(auth=True))


async def key_of(house: House, tenant: str) -> dict[str, str]:
    text, _ = await Keyring(house.runs.backend).create(tenant)
    return {"X-API-Key": text}


def routes() -> list[tuple[str, str]]:
    """Every route, those of applications included, as the document lists them."""
    paths = create_app(options=Options(auth=True)).openapi()["paths"]
    return sorted((path, method) for path, operations in paths.items() for method in operations)


def test_every_route_is_protected_or_known_to_be_open(greetings: Path) -> None:
    app = create_app(options=Options())
    own = sorted((route.path_format, method.lower()) for route in api_routes(app) for method in route.methods)
    applied = [route for route in routes() if route[0].startswith("/api/")]
    assert sorted([*own, *applied]) == routes()
    assert ("/api/greetings/book", "get") in applied
    assert set(own) - set(protected(app)) == OPEN
    assert len(protected(app)) > 20
    paths = app.openapi()["paths"]
    assert {(path, method) for path, method in routes() if "security" not in paths[path][method]} == OPEN


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_every_protected_route_asks_for_a_key(greetings: Path, locked: House) -> None:
    wrong = ["x", "tsz_", f"tsz_{'0' * 12}_{'a' * 43}", "Bearer x", "日本".encode().decode("latin-1")]
    for path, method in routes():
        url = path.replace("{run_id}", EXAMPLE).replace("{letter_id}", "1").replace("{worker_id}", "w")
        answer = await locked.client.request(method.upper(), url)
        if (path, method) in OPEN:
            assert answer.status_code == 200
            continue
        assert (answer.status_code, answer.json()["detail"]) == (401, "api key required"), (path, method)
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0014"
        for text in wrong:
            answer = await locked.client.request(method.upper(), url, headers={b"X-API-Key": text.encode("latin-1")})
            assert (answer.status_code, answer.json()["detail"]) == (403, "invalid api key"), (path, method, text)
            assert answer.json()["error_id"] == "ERR-TSUZUKI-0015"
    assert (await locked.client.get("/")).status_code == 200
    assert (await locked.client.get("/apps/greetings/main.js")).status_code == 200


async def test_a_tenant_cannot_be_called_like_a_folder_above_or_an_option() -> None:
    keyring = Keyring(await open_backend("memory:"))
    for tenant in (".", "..", "-x", "_x", ".hidden", "", "a/b", "x" * 65):
        with pytest.raises(BadUsage, match="a letter or digit first"):
            await keyring.create(tenant)
    await keyring.create("a.b-c_d")
    assert [key.tenant for key in await keyring.list()] == ["a.b-c_d"]


async def test_a_run_belongs_to_the_tenant_whose_key_started_it(locked: House) -> None:
    await locked.work()
    ours, theirs = await key_of(locked, "ours"), await key_of(locked, "theirs")
    answer = await locked.client.post("/runs", json={"flow_name": "fails"}, headers=ours)
    run_id = answer.json()["run_id"]

    async def ended() -> dict[str, Any]:
        while (run := (await locked.client.get(f"/runs/{run_id}", headers=ours)).json())["status"] != "FAILED":
            await asyncio.sleep(0.01)
        shown: dict[str, Any] = run
        return shown

    async with asyncio.timeout(60):
        run = await ended()
    assert run["tenant_id"] == "ours"
    assert run["api_key_id"] == tokens.id_of(ours["X-API-Key"])
    for path in ("", "/tasks", "/watch", "/events", "/items", "/logs", "/result"):
        assert (await locked.client.get(f"/runs/{run_id}{path}", headers=theirs)).status_code == 404
        assert (await locked.client.get(f"/runs/{run['number']}{path}", headers=theirs)).status_code == 404
    for path in ("cancel", "resume"):
        assert (await locked.client.post(f"/runs/{run_id}/{path}", headers=theirs)).status_code == 404
    assert (await locked.client.delete(f"/runs/{run_id}", headers=theirs)).status_code == 404
    body = {"flow_name": "nothing", "continues": run_id}
    assert (await locked.client.post("/runs", json=body, headers=theirs)).status_code == 404
    assert (await locked.client.get("/runs", headers=theirs)).json() == []
    assert len((await locked.client.get("/runs", headers=ours)).json()) == 1
    locked.client.headers |= ours
    [letter] = await locked.letters()
    del locked.client.headers["X-API-Key"]
    assert (await locked.client.get("/dlq", headers=theirs)).json()["items"] == []
    assert (await locked.client.get(f"/dlq/{letter['id']}", headers=theirs)).status_code == 404
    assert (await locked.client.post(f"/dlq/{letter['id']}/replay", headers=theirs)).status_code == 404
    assert (await locked.client.delete(f"/dlq/{letter['id']}", headers=theirs)).status_code == 404
    assert (await locked.client.get(f"/dlq/{letter['id']}", headers=ours)).status_code == 200


async def test_a_tenant_sees_which_of_its_runs_a_worker_executes(locked: House) -> None:
    await locked.work()
    ours, theirs = await key_of(locked, "ours"), await key_of(locked, "theirs")
    answer = await locked.client.post("/runs", json={"flow_name": "hangs"}, headers=ours)
    run_id = answer.json()["run_id"]

    async def shown(headers: dict[str, str], field: str) -> tuple[str, str | None]:
        [worker] = (await locked.client.get("/workers", headers=headers)).json()
        return worker["state"], worker[field]

    async with asyncio.timeout(60):
        while (await shown(ours, "current_run_id")) != ("RUNNING", run_id):
            await asyncio.sleep(0.01)
    assert await shown(theirs, "current_run_id") == ("RUNNING", None)
    await locked.client.post(f"/runs/{run_id}/cancel", headers=ours)
    async with asyncio.timeout(60):
        while (await shown(ours, "last_run_id")) != ("IDLE", run_id):
            await asyncio.sleep(0.01)
    assert await shown(theirs, "last_run_id") == ("IDLE", None)


async def test_tenants_share_neither_keys_nor_idempotency_keys(locked: House) -> None:
    ours, theirs = await key_of(locked, "ours"), await key_of(locked, "theirs")
    body = {"flow_name": "nothing", "key": "k", "tag": "nobody"}
    answers = [
        await locked.client.post("/runs", json=body, headers=headers | {"Idempotency-Key": "once"})
        for headers in (ours, theirs, ours)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    first, second, again = (answer.json()["run_id"] for answer in answers)
    assert first == again != second


async def test_a_revoked_key_is_refused_within_a_second_also_when_another_process_revoked_it(
    locked: House, address: str
) -> None:
    headers = await key_of(locked, "ours")
    assert (await locked.client.get("/runs", headers=headers)).status_code == 200
    other = await open_backend(address)
    try:
        await Keyring(other).revoke(tokens.id_of(headers["X-API-Key"]) or "")
    finally:
        await other.close()
    with Stopwatch() as since:
        while (answer := await locked.client.get("/runs", headers=headers)).status_code == 200:
            assert since.fair < 1
            await asyncio.sleep(0.02)
    assert (answer.status_code, answer.json()["detail"]) == (403, "invalid api key")


async def test_a_revoked_key_ends_what_is_open_with_it_and_nothing_else(locked: House, address: str) -> None:
    ours, other = await key_of(locked, "ours"), await key_of(locked, "ours")
    run = (await locked.client.post("/runs", json={"flow_name": "nothing", "tag": "nobody"}, headers=ours)).json()
    begun, ended = asyncio.Semaphore(0), list[str]()

    async def read(path: str, headers: dict[str, str]) -> None:
        first = True
        async for event in locked.events(f"/runs/{run['run_id']}/{path}", headers=headers):
            assert event.name in ("snapshot", "fact", "heartbeat")
            if first:
                begun.release()
            first = False
        ended.append(path)

    reading = [asyncio.create_task(read(path, ours)) for path in ("watch", "events")]
    staying = asyncio.create_task(read("watch", other))
    for _ in (*reading, staying):
        await begun.acquire()
    backend = await open_backend(address)
    try:
        await Keyring(backend).revoke(tokens.id_of(ours["X-API-Key"]) or "")
    finally:
        await backend.close()
    async with asyncio.timeout(60):
        await asyncio.gather(*reading)
    assert (sorted(ended), staying.done()) == (["events", "watch"], False)
    staying.cancel()
    await asyncio.gather(staying, return_exceptions=True)


async def test_the_header_has_the_name_that_was_chosen(serve: Serve) -> None:
    house = await serve(Options(auth=True, api_key_header="X-Lab-Key"))
    text = (await key_of(house, "ours"))["X-API-Key"]
    assert (await house.client.get("/runs", headers={"X-API-Key": text})).status_code == 401
    assert (await house.client.get("/runs", headers={"X-Lab-Key": text})).status_code == 200
    document = (await house.client.get("/openapi.json")).json()
    assert document["components"]["securitySchemes"]["ApiKey"]["name"] == "X-Lab-Key"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_only_a_salted_hash_of_a_key_is_kept(locked: House) -> None:
    text = (await key_of(locked, "ours"))["X-API-Key"]
    [(_, body)] = await locked.runs.backend.records("key")
    assert text.split("_", 2)[2].encode() not in body
    assert tokens.id_of(text) is not None


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_good_key_costs_less_than_five_milliseconds_a_request(locked: House) -> None:
    headers = await key_of(locked, "ours")
    keyring = locked.app.state.gateway.keyring
    started = time.process_time()
    for _ in range(1000):
        assert await keyring.holder(headers["X-API-Key"]) is not None
    assert time.process_time() - started < 5
