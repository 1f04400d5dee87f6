"""Where another process holds a project's file, its run waits and everybody else's go on; what is finished is saved."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.apps.glossary.conftest import TERMS, TEXT, Model, Study
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.saving import saved

HOLDING = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
version = lambda: connection.execute("PRAGMA data_version").fetchone()
while True:
    before = version()
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    if not sys.stdin.readline():
        break
    connection.execute("ROLLBACK")
    for _ in range(60):  # until another has written, or nobody wanted to
        if version() != before:
            break
        time.sleep(0.005)
"""


async def test_the_loop_goes_on_while_another_process_holds_the_file(study: Study, model: Model) -> None:
    project = study.project(TEXT, model=model)
    for term in TERMS:
        project.terms.add(term)
    row = await study.desk.start(project.project.id, "full")
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDING, str(project.ledger.file), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None
    assert other.stdout is not None
    held = 0

    async def let_go() -> None:
        """Lets go of the file again and again: a loop that waits for the file would never come here."""
        nonlocal held
        while await other.stdout.readline():  # type: ignore[union-attr] # it is there, see above
            held += 1
            await asyncio.sleep(0.01)
            other.stdin.write(b"\n")  # type: ignore[union-attr] # it is there, see above

    letting_go = asyncio.create_task(let_go())
    try:
        await study.work()
        done = await study.ended(project, row)
    finally:
        other.stdin.close()
        await other.wait()
        await letting_go
    assert (done.status, done.progress_current) == ("completed", len(TERMS))
    assert held > 5, "the file was held whenever the run wanted to write"
    assert len(project.refined.list()) == len(TERMS)


async def test_a_cancel_while_the_last_write_is_under_way_comes_too_late(
    study: Study, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, complete = threading.Event(), threading.Event(), ProjectFile.complete

    def slowly(self: ProjectFile, number: int, left_out: str) -> Any:
        reached.set()
        go_on.wait(60)
        return complete(self, number, left_out)

    monkeypatch.setattr(ProjectFile, "complete", slowly)
    await study.work()
    project = study.project(TEXT, model=model)
    row = await study.desk.start(project.project.id, "extract")
    await study.until(reached.is_set)
    cancelling = asyncio.create_task(study.desk.cancel(project.project.id, row.id))
    origin = project.run_origin(row.id)
    assert origin is not None
    async with asyncio.timeout(60):
        while (await study.runs.get(origin.engine_run)).status == "RUNNING":
            await asyncio.sleep(0.01)
    go_on.set()
    await cancelling
    assert (await study.ended(project, row)).status == "completed"


async def test_a_write_ends_before_a_cancellation_is_met() -> None:
    written, may_end = list[str](), threading.Event()

    def write(what: str) -> str:
        may_end.wait(60)
        written.append(what)
        return what

    async def work() -> None:
        assert await saved(write, "first") == "first"
        assert await saved(write, "second") == "second"
        await asyncio.sleep(0)
        written.append("never")

    task = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert written == ["first", "second"]
    assert task.cancelling() == 1
