"""PostgreSQL and Redis for the peers that need them: real, fresh, as durable as ours, ended with the measurement."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.process import MeasurementFailed, fresh_folder

PATIENCE: Final = 30.0
ACCOUNT: Final = "postgres"
"""PostgreSQL refuses to run as root; its package brings this account."""


@contextmanager
def postgres() -> Iterator[str]:
    """Starts PostgreSQL with its defaults: every commit is synced before it is acknowledged."""
    programs = _postgres_programs()
    user = ACCOUNT if os.geteuid() == 0 else None
    with fresh_folder() as folder:
        store, port = folder / "store", _free_port()
        store.mkdir()
        if user:
            folder.chmod(0o711)
            shutil.chown(store, user)
        made = [programs / "initdb", "-D", store, "-U", ACCOUNT, "-A", "trust", "--no-locale", "-E", "UTF8"]
        _call(made, user)
        command = [programs / "postgres", "-D", store, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", ""]
        with _serving(command, folder / "log", port, user):
            yield f"postgresql://{ACCOUNT}@127.0.0.1:{port}/{ACCOUNT}"


@contextmanager
def redis() -> Iterator[str]:
    """Starts Redis with an append-only file that is synced at every write; its default keeps snapshots only."""
    program = shutil.which("redis-server")
    if program is None:
        raise MeasurementFailed("there is no redis-server: apt-get install redis-server")
    with fresh_folder() as folder:
        port = _free_port()
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *durable]
        with _serving(command, folder / "log", port):
            yield f"redis://127.0.0.1:{port}/0"


STORES: Final[dict[str, Callable[[], AbstractContextManager[str]]]] = {"postgres": postgres, "redis": redis}


def _postgres_programs() -> Path:
    """Finds initdb and postgres, which Debian puts beside each other and not on the path."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise MeasurementFailed("there is no PostgreSQL server: apt-get install postgresql")


@contextmanager
def _serving(command: list[Any], log: Path, port: int, user: str | None = None) -> Iterator[None]:
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, user=user, cwd="/")
    try:
        _answering(process, port, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answering(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise MeasurementFailed(f"the server does not answer: {log.read_text()[-300:]}") from None
            time.sleep(0.05)
        else:
            return


def _call(command: list[Any], user: str | None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, user=user, cwd="/")
    if done.returncode:
        raise MeasurementFailed((done.stderr.strip().splitlines() or ["it failed"])[-1])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
