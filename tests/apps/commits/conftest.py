"""An office for tests: a store, a desk, a worker when asked for, and real repositories behind a GitLab double."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tsuzuki import Run, Runs, Worker, settings
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.collecting import PATIENCE
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.commits.records import Project
from tsuzuki.apps.commits.sources.asking import Patience

LONGEST = 30.0


class Office:
    """A desk whose runs are carried out by a worker of the test."""

    def __init__(self, runs: Runs, folder: Path, stack: AsyncExitStack) -> None:
        self.runs = runs
        self.folder = folder
        self._stack = stack
        self.desk = Desk(runs, self._submit, folder=folder)
        self.file = folder / "commits.db"

    async def _submit(self, flow: Any, params: dict[str, Any]) -> Run:
        return await self.runs.submit(flow, params)

    async def work(self) -> Worker:
        worker = await self._stack.enter_async_context(Worker(self.runs.backend, flows.flows(), grace=5.0))
        task = asyncio.create_task(worker.run())

        async def stop() -> None:
            worker.stop()
            await task

        self._stack.push_async_callback(stop)
        return worker

    async def connected(self, gitlab: GitLabDouble) -> list[Project]:
        return await self.desk.sync(self.desk.connect("gitlab", gitlab.url, TOKEN))

    async def collected(self, project: Project, *branches: str, every: bool = False, **span: str) -> dict[str, Any]:
        run = await self.desk.collect(await self.desk.collection(project, list(branches), every=every, **span))
        result: dict[str, Any] = await self.runs.result((await self.ended(run.id)).id)
        return result

    async def bulk(self, **options: Any) -> Any:
        """Starts a bulk run, waits for its end, and sums it up."""
        started = await self.desk.start(pause=0, **options)
        return await self.settled(started.run_id)

    async def settled(self, run_id: str) -> Any:
        await self.ended(run_id)
        stands = await self.desk.standing(run_id)
        assert stands is not None
        return stands.summary

    async def ended(self, run_id: str) -> Run:
        async with asyncio.timeout(LONGEST):
            return await self.runs.wait(run_id)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(statement, values).fetchall()

    def shas(self, branch: str = "main") -> set[str]:
        return {row[0] for row in self.rows("SELECT sha FROM commits WHERE branch_name = ?", branch)}

    def messages(self, run_id: str) -> dict[str, str]:
        return {r.branch_name: r.error_message or "" for r in self.desk.bulk_runs.results(run_id, "failed")}


def consistent(file: Path) -> None:
    """Checks what must hold at every moment, whatever was killed."""
    with closing(sqlite3.connect(file)) as connection:
        said = connection.execute(
            "SELECT r.run_id, r.status, r.completed_at_utc, r.total_targets, r.completed_count, r.success_count, "
            "r.failed_count, sum(b.status = 'success'), sum(b.status = 'failed'), count(*) "
            "FROM bulk_collection_runs r JOIN bulk_collection_results b USING (run_id) GROUP BY 1"
        ).fetchall()
        for _, status, at, total, completed, success, failed, succeeded, failures, targets in said:
            assert (success, completed, failed, total) == (succeeded, succeeded, failures, targets)
            assert completed + failed <= total
            assert (status == "running") == (at is None)
        assert sum(row[1] == "running" for row in said) <= 1
        missing = connection.execute(
            "SELECT count(*) FROM branch_heads h WHERE NOT EXISTS (SELECT 1 FROM commits c WHERE "
            "c.project_id = h.project_id AND c.branch_name = h.branch_name AND c.sha = h.head_sha)"
        ).fetchone()
        assert missing == (0,), "a head whose commit is not stored"
        sums = connection.execute("SELECT sum(commits), sum(additions), sum(deletions) FROM activity").fetchone()
        counted = connection.execute(
            "SELECT count(*), sum(additions), sum(deletions) FROM (SELECT * FROM commits WHERE "
            "(project_id, branch_name, sha) NOT IN (SELECT * FROM unreachable_commits) GROUP BY project_id, sha)"
        ).fetchone()
        assert (sums[0] or 0, sums[1], sums[2]) == counted
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit("2026-01-10T10:00:00+00:00", {"a.txt": "1\n2\n3\n"})
    made.commit("2026-02-10T10:00:00+00:00", {"a.txt": "1\n2\n3\n4\n"})
    return made


@pytest.fixture
def gitlab() -> Iterator[GitLabDouble]:
    with GitLabDouble() as double:
        yield double


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """An office with a worker, whose sources do not wait long."""
    folder = tmp_path / "files"
    token = PATIENCE.set(Patience(tries=3, first=0.01, longest=60.0, timeout=10.0))
    try:
        with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
            async with Runs.open(data_dir=str(folder)) as runs, AsyncExitStack() as stack:
                yield Office(runs, folder, stack)
    finally:
        PATIENCE.reset(token)
    if (folder / "commits.db").exists():
        consistent(folder / "commits.db")
