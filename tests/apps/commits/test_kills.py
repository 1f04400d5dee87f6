"""`kill -9` in the middle of a bulk run, again and again: nothing is lost, nothing is counted twice, it always ends."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.apps.commits.conftest import consistent
from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tsuzuki import Runs, settings
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.commits.gathering import gathering
from tsuzuki.apps.commits.records import Commit, Target

BRANCHES = 24
PATIENCE = 120.0


def tsuzuki(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
    command = [sys.executable, "-m", "tsuzuki.cli", "commits", *arguments, "--data-dir", str(folder)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


async def prepared(folder: Path, gitlab: GitLabDouble, repository: Repository) -> None:
    """Registers the project, and lets every branch have a history of its first commit."""
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with Runs.open(data_dir=str(folder)) as runs:
            desk = Desk(runs, runs.submit, folder=folder)
            project = (await desk.sync(desk.connect("gitlab", gitlab.url, TOKEN)))[0]
            first = repository.head("main~1")
            for number in range(BRANCHES):
                target = Target(project.project_id, f"branch/{number:02d}")
                with gathering(desk.ledger, target, "", bulk=False) as gathered:
                    gathered.add([Commit(first, "Ada", "ada@example.com", "2026-01-10T10:00:00+00:00", 3, 0, 0, 1)])
                    gathered.settle(first)


def successes(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(folder / "commits.db")) as connection:
            found: int = connection.execute(
                "SELECT coalesce(max(success_count), 0) FROM bulk_collection_runs"
            ).fetchone()[0]
            return found
    except sqlite3.OperationalError:
        return 0


def test_a_bulk_run_survives_kills_at_any_moment(tmp_path: Path, repository: Repository, chaos_kills: int) -> None:
    folder, chance = tmp_path / "files", random.Random(7)
    for number in range(BRANCHES):
        repository.git("branch", f"branch/{number:02d}")
    with GitLabDouble(delay=0.02) as gitlab:
        gitlab.host(repository.path)
        asyncio.run(prepared(folder, gitlab, repository))
        gitlab.requests.clear()
        kills = min(max(chaos_kills // 5, 6), BRANCHES - 2)
        for kill in range(kills):
            process = tsuzuki(folder, "bulk", "--pause", "0", "-q")
            wanted = (kill + 1) * (BRANCHES - 2) // kills
            deadline = time.monotonic() + PATIENCE
            while process.poll() is None and successes(folder) < wanted:
                assert time.monotonic() < deadline, "the run does not go on"
                time.sleep(0.005)
            time.sleep(chance.random() * 0.03)  # so that the kill falls anywhere between two transactions
            process.send_signal(signal.SIGKILL)
            process.communicate()
            consistent(folder / "commits.db")
        _, said = tsuzuki(folder, "status").communicate(timeout=PATIENCE)
        assert "interrupted: " in said.decode()
        assert "tsuzuki commits bulk goes on" in said.decode()
        last = tsuzuki(folder, "bulk", "--pause", "0", "-q")
        _, said = last.communicate(timeout=PATIENCE)
        assert last.returncode == 0, said.decode()
    consistent(folder / "commits.db")
    with closing(sqlite3.connect(folder / "commits.db")) as connection:
        runs = connection.execute(
            "SELECT status, total_targets, success_count, failed_count FROM bulk_collection_runs"
        ).fetchall()
        counts = connection.execute("SELECT DISTINCT status, new_commits_count FROM bulk_collection_results").fetchall()
        heads = connection.execute("SELECT DISTINCT head_sha FROM branch_heads").fetchall()
    assert runs[-1] == ("completed", BRANCHES, BRANCHES, 0)
    assert len(runs) == 1, "the same run goes on after every kill"
    assert counts == [("success", 1)]
    assert heads == [(repository.head("main"),)]
    asked = Counter(path for path in gitlab.requests if "/branches/" in path)
    assert sum(asked.values()) <= BRANCHES + kills + 1, "at most one target is repeated for each kill"
