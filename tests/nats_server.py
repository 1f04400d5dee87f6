"""A real nats-server out of its wheel, on a free port of the loopback, with JetStream in a folder."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

SHARES = 32
PORTS = range(10_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % SHARES, 30_000, SHARES)
"""Below those that systems give to whoever asks for any: what is killed comes back to a port that nobody got since.

Each process that runs tests has a share of its own: the port of a server that is away is free for everybody.
"""
_given: set[int] = set()


def free_port() -> int:
    """Gives a port that stays free until a server takes it, and while that server is away."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port := secrets.choice([port for port in PORTS if port not in _given])))
            _given.add(port)
            return port


class NatsServer:
    """A server that can be killed, frozen and started again with its data.

    In a network of its own (`inside`, `dial`) it listens on the addresses that are there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: str = "",
        jetstream: str | None = "",
        listen: str = "127.0.0.1",
        inside: Sequence[str] = (),
        dial: Callable[[], socket.socket] = socket.socket,
    ) -> None:
        self.folder = folder
        self._inside, self._dial = inside, dial
        self.port = free_port()
        self._config = folder / "nats.conf"
        self._jetstream = jetstream
        folder.mkdir(parents=True, exist_ok=True)
        self._listen = listen
        self.configure(settings)
        self._stores = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, settings: str) -> None:
        """Writes the configuration; a server that runs already heeds it on SIGHUP."""
        # Every store reserves room for its log; how many fit must not depend on the disk that is free just now.
        room = "" if "max_file_store" in (self._jetstream or "") else "max_file_store: 4TB, "
        stored = f'jetstream {{ store_dir: "{self.folder / "data"}", {room}{self._jetstream} }}'
        lines = [f'listen: "{self._listen}:{self.port}"', stored if self._jetstream is not None else "", settings]
        self._config.write_text("\n".join(lines) + "\n")

    def fresh(self) -> str:
        """Gives a prefix that no store has yet."""
        return f"t{next(self._stores)}"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts, and waits until it answers."""
        self.launch()
        assert self._process is not None
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "nats-server does not answer"
            time.sleep(0.01)

    def launch(self) -> None:
        """Starts."""
        beside = Path(sys.executable).parent / "nats-server"
        program = str(beside) if beside.exists() else shutil.which("nats-server") or "nats-server"
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*self._inside, program, "-c", str(self._config)], stdout=log, stderr=log)

    def _answers(self) -> bool:
        try:
            with self._dial() as connection:
                connection.settimeout(1)
                connection.connect(("127.0.0.1", self.port))
                return connection.recv(4) == b"INFO"
        except OSError:
            return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
            self.signal(number)
            self._process.wait(20)
            self._process = None

    def reload(self, settings: str) -> None:
        """Lets it take other settings while it runs."""
        self.configure(settings)
        self.signal(signal.SIGHUP)

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def signal(self, number: int) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
