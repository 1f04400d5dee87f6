"""The whole product on one of three stores: what processes there are, on which hosts, and with which settings."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.faults import LEASE, Victims
from tests.chaos.parts import ROOT, Part, python
from tests.chaos.surroundings import NETWORK, Disk, Network
from tests.llm.double import KEY

PORT = 8000
SETTLE = 4
NATS_PORT = 4222


class Stage:
    """A store with its servers, a gateway and three workers; one of them on another host where there are hosts."""

    def __init__(self, store: str, folder: Path, repositories: list[Path]) -> None:
        self.store, self.folder = store, folder
        self.witness = folder / "witness"
        (self.witness / "once").mkdir(parents=True)
        self.network = None if store == "sqlite" else Network()
        if self.network is None:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self._addresses = {host: self.network.add(host) for host in self._hosts()} if self.network else {}
        self.disks = {name: Disk(folder / f"disk-{name}") for name in ("files", *self._servers())}
        self.files = self.disks["files"].folder / "files"
        self.parts: dict[str, Part] = {}
        self._repositories = repositories
        self._doubles: subprocess.Popen[bytes] | None = None
        self.outside: dict[str, str] = {}

    def _servers(self) -> tuple[str, ...]:
        return {"sqlite": (), "nats": ("n0",), "cluster": ("n0", "n1", "n2")}[self.store]

    def _hosts(self) -> tuple[str, ...]:
        return (*self._servers(), "a", "b")

    @property
    def url(self) -> str:
        return f"http://{self._addresses.get('a', '127.0.0.1')}:{PORT}"

    @property
    def backend(self) -> str:
        """The address of the store; nothing for the file."""
        if self.store == "sqlite":
            return ""
        servers = ",".join(f"{self._addresses[name]}:{NATS_PORT}" for name in self._servers())
        return f"nats://{servers}" + ("?replicas=3" if self.store == "cluster" else "")

    def start(self) -> None:
        """Starts everything and waits until it is there."""
        self._start_doubles()
        for name in self._servers():
            self._add(name, self._server(name))
        inside = self._inside("a")
        options = ("--allow-unauthenticated",) if self.network else ()
        host = self._addresses.get("a", "127.0.0.1")
        self._add("gateway", [*inside, *self._tsuzuki("a", "serve", "--host", host, "--port", PORT, *options)])
        work = ("worker", "--flows", ROOT / "tests/chaos/flows.py", "--allow-callables", "tests.chaos.*")
        for name in ("w0", "w1"):
            self._add(name, [*inside, *self._tsuzuki("a", *work, "--tags", "default,files", "--concurrency", 6)])
        apart, where = self._inside("b", apart=True), "b" if self.network else "a"
        tags = "default" if self.network else "default,files"
        self._add("w2", [*apart, *self._tsuzuki(where, *work, "--tags", tags, "--concurrency", 6)], elsewhere=True)

    def _inside(self, host: str, *, apart: bool = False) -> tuple[str, ...]:
        return self.network.inside(host, apart=apart) if self.network else ()

    def _tsuzuki(self, host: str, *words: object) -> list[str]:
        return python("started", self._clock(host), *words)

    def _clock(self, host: str) -> Path:
        return self.witness / f"clock-{host}"

    def _add(self, name: str, command: list[str], *, elsewhere: bool = False) -> None:
        files = self.folder / "files-b" if elsewhere and self.network else self.files
        environment = {
            "TSUZUKI_DATA_DIR": str(files),
            "TSUZUKI_BACKEND": self.backend,
            "TSUZUKI_LOAD_DOTENV": "0",
            "TSUZUKI_LEASE_SECONDS": str(LEASE),
            "TSUZUKI_GRACE_SECONDS": "5",
            "TSUZUKI_LLM_PROVIDER": "openai",
            "TSUZUKI_LLM_BASE_URL": self.outside["model"],
            "TSUZUKI_LLM_MODEL": "m-1",
            "TSUZUKI_LLM_CONCURRENCY": "3",
            "TSUZUKI_LLM_TIMEOUT_SEC": "20",
            "TSUZUKI_LLM_POLL_SEC": "1",
            "TSUZUKI_LLM_SETTLE_SEC": str(SETTLE),
            "TSUZUKI_COMMITS_TAG": "files",
            "TSUZUKI_GLOSSARY_TAG": "files",
            "TSUZUKI_NOTES_TAG": "files",
            "OPENAI_API_KEY": KEY,
        }
        self.parts[name] = part = Part(name, command, witness=self.witness, environment=environment)
        part.start()

    def _server(self, name: str) -> list[str]:
        folder = self.disks[name].folder
        routes = ", ".join(f'"nats://{self._addresses[each]}:6222"' for each in self._servers())
        cluster = f'cluster {{ name: c, listen: "0.0.0.0:6222", routes: [{routes}] }}'
        single = self.store == "nats"
        config = self.witness / f"{name}.conf"
        config.write_text(
            f'server_name: {name}\nlisten: "0.0.0.0:{NATS_PORT}"\n'
            f'jetstream {{ store_dir: "{folder / "data"}", max_file_store: 4TB'
            f"{', sync_interval: always' if single else ''} }}\n{'' if single else cluster}\n"
        )
        beside = Path(sys.executable).parent / "nats-server"
        program = str(beside) if beside.exists() else shutil.which("nats-server") or "nats-server"
        return [*self._inside(name), program, "-c", str(config)]

    def _start_doubles(self) -> None:
        command = python("doubles", self.witness / "ledger.jsonl", *self._repositories)
        self._doubles = subprocess.Popen(
            [*self._inside("a"), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self._doubles.stdout is not None
        self.outside = json.loads(self._doubles.stdout.readline())

    def victims(self) -> Victims:
        """Says what can be harmed; the world outside cannot."""
        hosts = ("a", "b") if self.network else ("a",)
        clocks = {host: self._clock(host) for host in hosts}
        return Victims(self.parts, self.disks, self._hosts() if self.network else (), clocks, self.network)

    async def keep(self, stopping: asyncio.Event) -> None:
        """Starts again what has ended by itself."""
        while not stopping.is_set():
            for part in self.parts.values():
                part.keep()
            await asyncio.sleep(0.2)

    def stop(self) -> None:
        """Ends everything in order: workers, the gateway; servers stay for those who read."""
        for name in ("w0", "w1", "w2", "gateway"):
            if name in self.parts:
                self.parts[name].stop()

    def leave(self) -> None:
        for part in self.parts.values():
            part.stop(10)
        if self._doubles is not None and self._doubles.stdin is not None:
            self._doubles.stdin.close()
            self._doubles.wait(30)
        for disk in self.disks.values():
            disk.remove()

    def figures(self) -> dict[str, Any]:
        return {"starts": {name: part.starts for name, part in self.parts.items()}, "at": time.time(), "net": NETWORK}
