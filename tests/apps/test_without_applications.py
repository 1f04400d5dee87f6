"""The engine needs no application: with `src/tsuzuki/apps/` deleted its tests pass, on a copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = (
    "tests/fundamentals/test_01_flows_and_tasks.py",
    "tests/cli/test_applications.py",
    "tests/gateway/test_applications.py",
)
"""What would notice: all that finds, loads, serves or executes applications. `make without-apps` runs everything."""
STORE = "not nats and not memory and not http"
"""No store knows of applications: one is enough, and what is served has tests of its own here."""


@pytest.mark.timeout(600)  # it runs tests of its own
def test_the_engine_works_on_a_copy_without_applications(tmp_path: Path) -> None:
    for name in ("src", "tests", "docs", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    shutil.rmtree(tmp_path / "src/tsuzuki/apps")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    where = "import tsuzuki, importlib.util as u; print(tsuzuki.__file__); assert not u.find_spec('tsuzuki.apps')"
    found = subprocess.run([sys.executable, "-c", where], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path))
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", STORE, *ENGINE]
    done = subprocess.run(tests, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
