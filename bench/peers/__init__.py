"""Peers: each is a script for the Python of its own environment, installed from PyPI by name."""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.peers.stores import STORES
from bench.process import Figures, MeasurementFailed, fresh_folder, run

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = HERE.parent / ".peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer: its package, how durable it is, and how many it does per work (slow ones do fewer, rates compare)."""

    package: str
    durability: str
    counts: dict[str, int]
    store: str = ""
    """The server that it needs, started afresh for each measurement."""
    extra: str = ""
    """What of the package is optional, and needed here."""

    @property
    def name(self) -> str:
        """The peer for people: its package, and on what."""
        return f"{self.package} on {self.store}" if self.store else self.package

    @property
    def python(self) -> Path:
        """The Python of its environment."""
        return ENVIRONMENTS / self.package / "bin" / "python"

    def install(self) -> str:
        """Installs it if need be; gives its version."""
        if not self.python.exists():
            _call(sys.executable, "-m", "venv", str(ENVIRONMENTS / self.package))
        version = f"from importlib.metadata import version; print(version({self.package!r}))"
        try:
            return _call(str(self.python), "-c", version)
        except MeasurementFailed:
            _call(str(self.python), "-m", "pip", "install", "--quiet", self.package + self.extra)
            return _call(str(self.python), "-c", version)

    def measure(self, work: str, folder: Path | None = None) -> Figures:
        """Lets it do a work in a fresh process on a fresh store, or with what a folder holds."""
        if folder is None:
            with ExitStack() as stack:
                fresh = stack.enter_context(fresh_folder())
                if self.store:
                    (fresh / "address").write_text(stack.enter_context(STORES[self.store]()))
                return self.measure(work, fresh)
        script = HERE / f"{self.package.replace('-', '_')}_peer.py"
        return run([str(self.python), str(script), work, str(folder), str(self.counts[work])])


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementFailed((done.stderr.strip().splitlines() or ["it failed"])[-1])
    return done.stdout.strip()


PEERS: Final = (
    Peer(
        "dbos",
        "SQLite, WAL switched on (its default, the rollback journal, is slower), synchronous=FULL, results kept",
        {"steps": 1000, "items": 1000, "runs": 500},
    ),
    Peer(
        "dbos",
        "PostgreSQL as it comes: every commit is synced, results kept",
        {"steps": 1000, "items": 1000, "runs": 500},
        store="postgres",
    ),
    Peer(
        "huey",
        "SqliteHuey as it comes: WAL, synchronous=FULL; a task is deleted before it runs (at most once)",
        {"items": 2000, "runs": 2000},
    ),
    Peer(
        "pgqueuer",
        "PostgreSQL as it comes: every commit is synced; no results, a job that is done leaves the queue for a log",
        {"items": 5000, "runs": 2000},
        store="postgres",
        extra="[asyncpg]",
    ),
    Peer(
        "procrastinate",
        "PostgreSQL as it comes: every commit is synced; no results, a job that is done keeps its row",
        {"items": 2000, "runs": 1000, "raw": 1000},
        store="postgres",
    ),
    Peer(
        "celery",
        "Redis with an append-only file that is synced at each write (its default loses the last second or more); "
        "acknowledged late, results kept for a day",
        {"items": 2000, "runs": 2000, "raw": 1000},
        store="redis",
        extra="[redis]",
    ),
    Peer(
        "taskiq-nats",
        "pull-based JetStream broker, results in its object store, acknowledged once the result is kept",
        {"nats": 5000, "nats unkept": 5000},
    ),
)
