"""A folder with flows in it, and real processes of the command in it: started, watched, always ended by their id."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tsuzuki import Run, Runs

PATIENCE = 60.0
Thing = TypeVar("Thing")
FLOWS = """
import asyncio, pathlib, time
from tsuzuki import current, flow, task

@task
async def gate(name: str) -> str:
    pathlib.Path(f"{name}.began").touch()
    while not pathlib.Path(f"{name}.open").exists():
        await asyncio.sleep(0.01)
    return name

@flow
async def waits(name: str) -> str:
    return await gate(name)

@task
def held(name: str) -> str:
    pathlib.Path(f"{name}.began").touch()
    while not pathlib.Path(f"{name}.open").exists():
        time.sleep(0.01)
    return name

@flow
def stubborn(name: str) -> str:
    return held(name)

@flow
async def quick(number: int = 1) -> int:
    return 2 * number

@flow
async def repeats(size: int) -> str:
    return "x" * size

@task
def maybe(number: int) -> int:
    if number % 3 == 0 and not pathlib.Path("mended").exists():
        raise ValueError(f"no {number}")
    return number

@flow
def partly(numbers: int = 9) -> int:
    return len(maybe.map(range(numbers), on_error="collect").succeeded)

@task
async def paced(number: int, gate: str) -> int:
    while number and not pathlib.Path(f"{gate}.{number}").exists():
        await asyncio.sleep(0.01)
    current().log.info("item %s is through", number)
    return number

@flow
async def paces(name: str) -> int:
    return len(await paced.map(range(8), gate=name, concurrency=1))

@flow
async def fails() -> None:
    raise RuntimeError("it cannot be done")

@flow
async def dies() -> None:
    import os
    os._exit(9)
"""


class Process:
    """`tsuzuki …` as a process; what it says goes to files."""

    def __init__(self, folder: Path, number: int, *arguments: str, **variables: str) -> None:
        self.out, self.err = folder / f"{number}.out", folder / f"{number}.err"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tsuzuki.cli", *arguments],
                cwd=folder,
                env=environment | variables,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )
        self.pid = self._process.pid

    @property
    def said(self) -> str:
        return self.err.read_text()

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it has logged; a line that is being written is not there yet."""
        return [json.loads(line) for line in self.out.read_text().splitlines(keepends=True) if line.endswith("\n")]

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int) -> None:
        if self.running:
            self._process.send_signal(number)

    def ended(self) -> int:
        return self._process.wait(PATIENCE)

    def leave_alone(self) -> None:
        """Closes our end of its stdin, as the end of a parent does."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        self.leave_alone()
        self.send(signal.SIGKILL)
        self._process.wait()


class Room:
    """A folder in which processes work."""

    def __init__(self, folder: Path, backend: str | None = None) -> None:
        self.folder = folder
        self.backend = backend
        self.store = str(folder / ".tsuzuki")
        (folder / "flows.py").write_text(FLOWS)
        self._processes: list[Process] = []
        self._numbers = count(1)

    def start(self, *arguments: str, **variables: str) -> Process:
        store = {} if self.backend is None else {"TSUZUKI_BACKEND": self.backend}
        process = Process(self.folder, next(self._numbers), *arguments, **(store | variables))
        self._processes.append(process)
        return process

    def worker(self, *arguments: str, before: tuple[str, ...] = (), **variables: str) -> Process:
        """Starts a worker, and waits until it takes runs."""
        process = self.start(*before, "worker", "--flows", "flows.py", *arguments, **variables)
        self.until(lambda: "takes runs" in process.out.read_text() or not process.running, "the worker is ready")
        return process

    def up(self, *arguments: str, **variables: str) -> tuple[Process, str]:
        """Starts everything on free ports, and waits until it is up; gives the process and its address."""
        process = self.start("up", "--port", "0", *arguments, **variables)
        self.until(lambda: "Tsuzuki is up" in process.said or not process.running, "it is up")
        assert process.running, process.said
        return process, process.said.partition("Tsuzuki is up: ")[2].split()[0]

    def submit(self, flow: str, **params: Any) -> Run:
        return self.asked(lambda runs: runs.submit(flow, params))

    def row(self, run: Run) -> Run:
        return self.asked(lambda runs: runs.get(run.id))

    def end_of(self, run: Run) -> Run:
        async def waited(runs: Runs) -> Run:
            async with asyncio.timeout(PATIENCE):
                return await runs.wait(run.id)

        return self.asked(waited)

    def asked(self, ask: Callable[[Runs], Awaitable[Thing]]) -> Thing:
        async def work() -> Thing:
            async with Runs.open(self.backend, data_dir=None if self.backend else self.store) as runs:
                return await ask(runs)

        return asyncio.run(work())

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            time.sleep(0.02)

    def leave(self) -> None:
        for process in self._processes:
            process.send(signal.SIGTERM)
        for process in self._processes:
            try:
                process.ended()
            finally:
                process.kill()
