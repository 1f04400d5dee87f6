"""A terminal for tests: a folder of its own with the flows in it, and the real command in it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import told
from tsuzuki import Run, Runs
from tsuzuki.facts import CancelSeen

PATIENCE = 90.0


class Terminal:
    """Runs `tsuzuki …` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, stdin: str | None = None) -> "subprocess.Popen[str]":
        return self._start("-m", "tsuzuki.cli", *arguments, stdin=stdin)

    def python(self, script: str, *, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Runs a script to its end, which must be the expected one."""
        return self.end(self._start("-c", script), code=code)

    def interpreter(self, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Runs `python …` to its end, which must be the expected one."""
        return self.end(self._start(*arguments), code=code)

    def _start(self, *arguments: str, stdin: str | None = None) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment | self.environment,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def tsuzuki(self, *arguments: str, code: int = 0, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end, which must be the expected one."""
        if stdin is None and (seen := told(self.folder, *arguments, variables=self.environment)):
            assert seen.code == code, f"exit code {seen.code}\n{seen.out}\n{seen.err}"
            return subprocess.CompletedProcess(arguments, seen.code, seen.out, seen.err)
        return self.end(self.start(*arguments, stdin=stdin), code=code, stdin=stdin)

    def end(
        self, process: "subprocess.Popen[str]", *, code: int = 0, stdin: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        out, err = process.communicate(stdin, timeout=PATIENCE)
        assert process.returncode == code, f"exit code {process.returncode}\n{out}\n{err}"
        assert "tsuzuki/cli" not in err, f"a traceback of ours:\n{err}"
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.tsuzuki(*arguments, "--json", code=code).stdout)

    def lines(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self.tsuzuki(*arguments).stdout.splitlines()]

    def calls(self) -> list[str]:
        file = self.folder / "calls.txt"
        return file.read_text().split() if file.exists() else []

    def bad(self, *names: str) -> None:
        (self.folder / "bad.txt").write_text("\n".join(names))

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def submit_shared(self, **params: str) -> None:
        """Submits a run that waits for a worker."""
        asyncio.run(self._submit_shared(params))

    async def _submit_shared(self, params: dict[str, str]) -> None:
        async with Runs.open(data_dir=str(self.folder / ".tsuzuki")) as runs:
            await runs.submit("elsewhere", params)

    def row(self, reference: int = 1) -> Run:
        return asyncio.run(self._row(reference))

    async def _row(self, reference: int) -> Run:
        async with Runs.open(data_dir=str(self.folder / ".tsuzuki")) as runs:
            return await runs.get(reference)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that"
            time.sleep(0.01)

    def until_held(self, recorded: int, calls: int) -> None:
        """Waits until a gated run has recorded all that it can, and holds the rest."""
        self.until(lambda: len(self.calls()) >= calls)
        self.until(lambda: self.row().done >= recorded)

    def until_cancel_seen(self) -> None:
        """Waits until whoever executes the run knows of the cancel: work that ends before completes the run."""
        self.until(lambda: any(isinstance(fact, CancelSeen) for fact in asyncio.run(self._facts())))

    async def _facts(self) -> list[Any]:
        async with Runs.open(data_dir=str(self.folder / ".tsuzuki")) as runs:
            return [entry.fact async for entry in runs.journal(1)]

    def leave(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    shutil.copy(Path(__file__).with_name("flows.py"), tmp_path / "flows.py")
    terminal = Terminal(tmp_path)
    terminal.bad()
    yield terminal
    terminal.leave()
