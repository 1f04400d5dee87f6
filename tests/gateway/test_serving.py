"""`tsuzuki serve` and `tsuzuki keys` as processes: started, asked, told to stop, killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.gateway.conftest import AUTHORITIES
from tests.gateway.processes import PATIENCE, Serving, told
from tests.nats_server import free_port
from tsuzuki import Runs
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.server import serve_runs
from tsuzuki.listening import bound
from tsuzuki.testing.stopwatch import Stopwatch


def test_it_serves_until_it_is_told_to_stop_also_while_somebody_watches(serving: Serving, tmp_path: Path) -> None:
    process, url = serving()
    run_id = httpx2.post(f"{url}/runs", json={"flow_name": "x"}).json()["run_id"]
    with httpx2.stream("GET", f"{url}/runs/{run_id}/watch", timeout=PATIENCE) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: snapshot"
        process.send_signal(signal.SIGTERM)
        list(lines)
    assert process.wait(PATIENCE) == 0
    assert "graceful shutdown exceeded" not in (tmp_path / "log").read_text(), "it waited for whoever watches"


def test_a_stop_that_comes_while_it_starts_is_heard(tmp_path: Path) -> None:
    @asynccontextmanager
    async def opening(_: float) -> AsyncIterator[Runs]:
        async with Runs.open(f"sqlite:{tmp_path}/tsuzuki.db") as runs:
            signal.raise_signal(signal.SIGTERM)
            yield runs

    served: list[bool] = []
    reminder = threading.Timer(10, signal.raise_signal, (signal.SIGTERM,))  # ends one that did not hear
    reminder.start()
    with bound("127.0.0.1", 0) as listening:
        serve_runs(opening, Options(), listening, lambda: served.append(True))
    reminder.cancel()
    assert not served


def test_a_repeated_submission_after_a_crash_gives_the_same_run(serving: Serving) -> None:
    """The gateway is killed while answers are under way; whoever asks again with the same key gets the same run."""
    process, url = serving()
    accepted: dict[str, str] = {}
    tried: set[str] = set()

    def submit(numbers: range) -> None:
        with httpx2.Client(base_url=url, verify=AUTHORITIES) as client:
            for number in numbers:
                headers = {"Idempotency-Key": f"k{number}"}
                tried.add(f"k{number}")
                try:
                    answer = client.post("/runs", json={"flow_name": "x"}, headers=headers)
                except httpx2.HTTPError:
                    return
                accepted[f"k{number}"] = answer.json()["run_id"]

    threads = [threading.Thread(target=submit, args=(range(at * 1000, at * 1000 + 1000),)) for at in range(4)]
    for thread in threads:
        thread.start()
    while len(accepted) < 40:
        time.sleep(0.001)
    process.kill()
    for thread in threads:
        thread.join()
    _, url = serving()
    with httpx2.Client(base_url=url) as client:
        again = {
            key: client.post("/runs", json={"flow_name": "x"}, headers={"Idempotency-Key": key}).json()["run_id"]
            for key in tried
        }
        listed = client.get("/metrics").text
    assert {key: again[key] for key in accepted} == accepted
    assert f'tsuzuki_runs_total{{status="PENDING"}} {len(set(again.values()))}.0' in listed


def test_two_gateways_serve_one_store(serving: Serving) -> None:
    (_, first), (_, second) = serving(), serving()
    run_id = httpx2.post(f"{first}/runs", json={"flow_name": "x"}).json()["run_id"]
    with httpx2.stream("GET", f"{second}/runs/{run_id}/watch", timeout=PATIENCE) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data"))
        assert '"PENDING"' in next(lines)
        httpx2.post(f"{first}/runs/{run_id}/cancel")
        assert '"CANCELLED"' in next(lines)


def test_the_network_is_not_listened_to_without_keys(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):  # noqa: S104 - it is refused
        _, err = told("serve", "--host", host, folder=tmp_path, code=1)
        assert "--allow-unauthenticated" in err
    _, err = told("serve", folder=tmp_path, code=1, TSUZUKI_HTTP_AUTH="perhaps")
    assert "TSUZUKI_HTTP_AUTH" in err


def test_a_port_that_is_taken_and_a_store_that_is_gone_are_told_in_a_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        _, err = told("serve", "--port", port, folder=tmp_path, code=1)
    assert "cannot listen on" in err
    _, err = told(
        "serve", "--port", "0", "--backend", f"nats://127.0.0.1:{port}?connect_timeout=1", folder=tmp_path, code=1
    )
    assert "ERR-TSUZUKI-0003" in err
    assert "Traceback" not in err


def test_keys_are_made_listed_used_and_revoked(serving: Serving, address: str, tmp_path: Path) -> None:
    key, err = told("keys", "create", "--backend", address, "--tenant", "lab", "--name", "laptop", folder=tmp_path)
    assert "shown this once" in err
    headers = {"X-API-Key": key.strip()}
    _, url = serving("--host", "127.0.0.1", TSUZUKI_HTTP_AUTH="api_key")
    assert httpx2.get(f"{url}/runs").status_code == 401
    assert httpx2.get(f"{url}/runs", headers=headers).json() == []
    out, _ = told("keys", "list", "--backend", address, "--json", folder=tmp_path)
    [record] = json.loads(out)
    assert (record["tenant"], record["name"], record["revoked_at"]) == ("lab", "laptop", None)
    assert key.strip() not in out
    told("keys", "revoke", "--backend", address, record["id"], folder=tmp_path)
    with Stopwatch() as since:
        while httpx2.get(f"{url}/runs", headers=headers).status_code == 200:
            assert since.fair < 1
    assert "revoked" in told("keys", "list", "--backend", address, folder=tmp_path)[0]
    told("keys", "revoke", "--backend", address, "nothing", folder=tmp_path, code=1)
    told("keys", "create", "--backend", address, "--tenant", "a b", folder=tmp_path, code=1)


def test_any_server_can_run_the_factory(address: str, tmp_path: Path) -> None:
    port = free_port()
    arguments = ["uvicorn", "tsuzuki.gateway:create_app", "--factory", "--port", str(port)]
    environment = os.environ | {"TSUZUKI_DATA_DIR": str(tmp_path), "TSUZUKI_BACKEND": address}
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                assert httpx2.get(f"http://127.0.0.1:{port}/runs").json() == []
                break
            except httpx2.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        process.terminate()
        process.wait(PATIENCE)
