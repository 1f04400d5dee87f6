"""The product as an operator runs it: servers, a gateway and workers as processes, each started again when it ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import tsuzuki
from tests.chaos.witness import append

ROOT = Path(__file__).parents[2]


class Part:
    """One process: started, killed, frozen; what it says goes to a file."""

    def __init__(self, name: str, command: Sequence[str], *, witness: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        """One fault at a time."""
        self._command, self._witness = list(command), witness
        known = {key: value for key, value in os.environ.items() if not key.startswith("TSUZUKI_")}
        path = os.pathsep.join([str(ROOT), str(Path(tsuzuki.__file__).parents[1])])
        self._environment = known | {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"} | environment
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.starts += 1
        with (self._witness / f"{self.name}.out").open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._witness,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        append(self._witness / "events.jsonl", at=time.monotonic(), what="start", part=self.name, pid=self.pid)

    def keep(self) -> None:
        """Starts it again if it has ended by itself, as an operator's supervisor does."""
        if not self.running and not self.lock.locked():
            code = self._process.poll() if self._process else None
            append(self._witness / "events.jsonl", at=time.monotonic(), what="ended", part=self.name, code=code)
            self.start()

    def send(self, number: int) -> None:
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait()

    def stop(self, within: float = 60.0) -> None:
        """Ends it in order, or else at once."""
        if self._process is None:
            return
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            append(self._witness / "events.jsonl", at=time.monotonic(), what="does not end", part=self.name)
            self.send(signal.SIGABRT)  # it writes down where it stands
            self._process.wait()


def python(module: str, *words: object) -> list[str]:
    """Gives the command that runs a module of ours."""
    return [sys.executable, "-m", f"tests.chaos.{module}", *map(str, words)]
