"""The parts as processes, started by the commands that people use; what each costs is read from outside."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.ours import address
from bench.process import HERE

PATIENCE: Final = 60.0
FLOWS: Final = "bench/http/flows.py"
TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Part:
    """A process of `tsuzuki …`; what it says goes to a file."""

    said: Path
    process: "subprocess.Popen[bytes]"

    @property
    def family(self) -> list[int]:
        """The process and those that it started."""
        return [self.process.pid, *_children(self.process.pid)]

    def cpu(self) -> float:
        """Gives the processor time that it has used so far, its children included (seconds)."""
        return sum(_ticks(pid) for pid in self.family) / TICK

    def resident(self) -> float:
        """Gives its memory (MB)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def waited(self, word: str) -> str:
        """Waits until it has said a word; gives what it said."""
        until = time.monotonic() + PATIENCE
        while word not in (text := self.said.read_text()):
            assert self.process.poll() is None, f"it ended: {text[-500:]}"
            assert time.monotonic() < until, f"it never said {word!r}: {text[-500:]}"
            time.sleep(0.02)
        return text


def _children(pid: int) -> list[int]:
    found = [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [each for child in found for each in (child, *_children(child))]


def _ticks(pid: int) -> int:
    """Reads user and system time: the 14th and 15th field, counted behind the name, which may have spaces."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Part]:
    """Starts `tsuzuki …` on the store of a folder, and ends it by its id."""
    said = folder / f"{arguments[0]}.said"
    command = [sys.executable, "-m", "tsuzuki.cli", *arguments, "--backend", address(folder)]
    with said.open("wb") as out:
        process = subprocess.Popen(command, cwd=HERE.parent, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield Part(said, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def gateway(folder: Path) -> Iterator[tuple[Part, int]]:
    """Starts the gateway; gives it and its port."""
    with started(folder, "serve", "--port", "0") as part:
        yield part, _port(part.waited(" at http://"))


@contextmanager
def worker(folder: Path) -> Iterator[Part]:
    """Starts a worker, and waits until it takes runs."""
    with started(folder, "worker", "--flows", FLOWS, "--concurrency", "100") as part:
        part.waited("takes runs")
        yield part


def _port(text: str) -> int:
    return int(text.partition("at http://127.0.0.1:")[2].split()[0])
