"""Every measurement runs in a fresh process on a fresh store, and hands its figures back as one line of JSON."""

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

HERE: Final = Path(__file__).parent
STORES: Final = HERE / ".stores"
"""On the disk of the checkout: /tmp may be memory, where an fsync costs nothing."""
LONGEST: Final = 600
_ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As of a package that is installed: compiled once, and not again by each process."""

Figures = dict[str, Any]


class MeasurementFailed(Exception):
    """A measurement ended without figures."""


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """Gives an empty folder on the measured disk and removes it afterwards."""
    STORES.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=STORES))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(work: str, *values: object, folder: Path | None = None, before: Sequence[str] = ()) -> Figures:
    """Runs `module:function` of this package in a process of its own; `before` goes in front of its command."""
    command = [*before, sys.executable, "-m", "bench.process", work]
    if folder is not None:
        return run([*command, str(folder), *map(str, values)])
    with fresh_folder() as fresh:
        return run([*command, str(fresh), *map(str, values)])


def run(command: Sequence[str]) -> Figures:
    """Runs a command and reads the figures from the last line it prints."""
    try:
        done = subprocess.run(
            command, cwd=HERE.parent, env=_ENVIRONMENT, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise MeasurementFailed(f"it took longer than {LONGEST} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise MeasurementFailed((done.stderr.strip().splitlines() or ["it printed nothing"])[-1])
    figures: Figures = json.loads(lines[-1])
    return figures


class Stopwatch:
    """Takes the time and the processor time of a stretch of work; the latter says more on a busy machine."""

    def __init__(self) -> None:
        self._started, self._cpu = perf_counter(), process_time()

    def figures(self, count: int) -> Figures:
        """Gives the rate and the processor time for each of so many."""
        seconds, cpu = perf_counter() - self._started, process_time() - self._cpu
        return {"rate": count / seconds, "cpu_us": cpu / count * 1e6}


def peak_mb() -> float:
    """Gives the peak resident memory of this process since it was started."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike ru_maxrss, this does not count the parent before exec
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main() -> None:
    work, folder, *values = sys.argv[1:]
    module, name = work.split(":")
    function = getattr(importlib.import_module(module), name)
    print(json.dumps(function(Path(folder), *map(int, values))))


if __name__ == "__main__":
    main()
