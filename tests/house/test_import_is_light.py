"""`import tsuzuki` brings nothing heavy; how many milliseconds it takes is measured by bench/."""

import json
import subprocess
import sys
from typing import TypedDict

import pytest

MEGABYTE = 1024 * 1024
HEAVY = {"click", "fastapi", "httpx", "httpx2", "nats", "rich", "starlette", "uvicorn", "yaml"}

# VmHWM and not ru_maxrss: the latter starts with the size of the process that started this one.
IMPORT_AND_LOOK = """
import json, pathlib, resource, sys
import tsuzuki
try:
    status = pathlib.Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
except FileNotFoundError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"modules": sorted(sys.modules), "peak": peak}))
"""


class Footprint(TypedDict):
    modules: list[str]
    peak: int


@pytest.fixture(scope="module")
def footprint() -> Footprint:
    """What a fresh process looks like after `import tsuzuki`."""
    done = subprocess.run([sys.executable, "-c", IMPORT_AND_LOOK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"import tsuzuki fails in a fresh process:\n{done.stderr}"
    seen: Footprint = json.loads(done.stdout)
    return seen


def test_importing_the_package_imports_nothing_heavy(footprint: Footprint) -> None:
    heavy = HEAVY & set(footprint["modules"])
    assert not heavy, f"import tsuzuki also imports {sorted(heavy)}; import them where they are used"


def test_importing_the_package_needs_at_most_40_megabytes(footprint: Footprint) -> None:
    assert footprint["peak"] <= 40 * MEGABYTE, f"{footprint['peak'] / MEGABYTE:.1f} MB; see `python -X importtime`"
