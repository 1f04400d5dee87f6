"""Many runs in one process leave no threads, no open files and no memory behind."""

import json
from pathlib import Path

from tests.acceptance.processes import finished


def test_two_hundred_runs_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    early, late = map(json.loads, finished("many", 200, folder=tmp_path).splitlines())
    assert late["threads"] <= early["threads"]
    assert late["files"] <= early["files"]
    assert late["kilobytes"] - early["kilobytes"] < 4000, (early, late)
