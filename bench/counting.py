"""fsyncs, counted by strace, and the cost of the import: what is seen from outside a process."""

import re
import shutil
import sys
from pathlib import Path
from statistics import median
from typing import Final

from bench.process import Figures, MeasurementFailed, fresh_folder, measure, run

NO_STRACE: Final = "strace is missing (apt-get install strace): no fsyncs were counted"

_IMPORT: Final = """
import time
started = time.perf_counter()
import tsuzuki
took = time.perf_counter() - started
import json
from bench.process import peak_mb
print(json.dumps({"ms": took * 1000, "mb": peak_mb()}))
"""


def fsyncs(work: str, count: int) -> Figures:
    """Counts all fsyncs of a process that does a work, its opening and closing of the store included."""
    if shutil.which("strace") is None:
        raise MeasurementFailed(NO_STRACE)
    with fresh_folder() as folder:
        summary = folder / "strace"
        measure(work, count, before=["strace", "-f", "-qq", "-c", "-o", str(summary), "-e", "trace=fsync,fdatasync"])
        calls = counted(summary)
    return {"per": calls / count, "calls": calls}


def counted(summary: Path) -> int:
    """Reads the calls from the table that `strace -c` writes."""
    rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+).*\b(?:fsync|fdatasync)$", summary.read_text(), re.MULTILINE)
    return sum(map(int, rows))


def importing(processes: int) -> Figures:
    """Imports the package in fresh processes; the memory is that of the whole process."""
    run([sys.executable, "-c", _IMPORT])  # compiles what is not compiled yet
    seen = [run([sys.executable, "-c", _IMPORT]) for _ in range(processes)]
    return {"ms": median(figures["ms"] for figures in seen), "mb": median(figures["mb"] for figures in seen)}
