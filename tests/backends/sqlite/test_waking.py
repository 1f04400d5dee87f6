"""Other processes wake those who wait here, within milliseconds, and without the datagram a little later."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.backends.sqlite.conftest import Start, answer
from tsuzuki import facts as f
from tsuzuki.backends import Line
from tsuzuki.backends.sqlite import SqliteBackend, bell
from tsuzuki.testing import builders as b

LONG = 20.0


async def wakes(waiting: "asyncio.Task[None]", process_of: Start, code: str, *arguments: object) -> None:
    await b.waiting(waiting)
    process = process_of(code, *arguments)
    await asyncio.wait_for(waiting, LONG)
    await answer(process)


SUBMIT = """
    async def main():
        store = await SqliteBackend.open(path)
        await b.submitted(store)
        await store.close()
    asyncio.run(main())
"""


async def test_a_worker_wakes_when_another_process_submits(backend: SqliteBackend, start: Start) -> None:
    await wakes(asyncio.create_task(backend.work(LONG)), start, SUBMIT)
    assert await backend.claim("w", tags=("default",))


async def test_a_run_that_ends_wakes_those_who_wait_for_it_but_no_worker(backend: SqliteBackend) -> None:
    claim = await b.claimed(backend)
    await backend.work(0.0)
    await backend.changed(claim.run.id, claim.run.position, 0.0)
    await asyncio.sleep(bell.FRESH)  # so that nothing is fresh any more
    work = asyncio.create_task(backend.work(LONG))
    end = asyncio.create_task(backend.changed(claim.run.id, claim.run.position, LONG))
    await b.waiting(work)
    await b.waiting(end)
    await backend.append(claim, [f.RunCompleted(at=b.AT)])
    await asyncio.wait_for(end, LONG)
    assert not work.done()
    await b.submitted(backend)
    await asyncio.wait_for(work, LONG)


async def test_without_a_socket_the_file_is_looked_at(
    path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell, "LONGEST_PATH", 0)
    store = await SqliteBackend.open(path)
    # A first wait, so that nothing is fresh any more.
    await asyncio.sleep(bell.FRESH)
    await wakes(asyncio.create_task(store.work(LONG)), start, SUBMIT)
    await store.close()


async def test_a_watcher_wakes_when_another_process_writes_to_the_log(backend: SqliteBackend, start: Start) -> None:
    run = await b.submitted(backend)
    code = """
        from tsuzuki.backends import Line
        async def main():
            store = await SqliteBackend.open(path)
            await store.log(arguments[0], [Line(at=0.0, text="hello")])
            await store.close()
        asyncio.run(main())
    """
    for _ in range(8):  # the run is fresh: those who come to wait are sent to read again
        await backend.changed(run.id, 1, 0.1)
    await wakes(asyncio.create_task(backend.changed(run.id, 1, LONG)), start, code, run.id)
    assert [line.text for line in await backend.read_log(run.id)] == ["hello"]


async def test_a_follower_never_misses_a_line(path: Path) -> None:
    here, there = await SqliteBackend.open(path), await SqliteBackend.open(path)
    run = await b.submitted(here)
    read: list[int] = []

    async def follow() -> None:
        while len(read) < 200:
            lines = await here.read_log(run.id, after=read[-1] if read else 0)
            read.extend(line.number for line in lines)
            if not lines:
                await here.changed(run.id, 1, LONG)

    follower = asyncio.create_task(follow())
    for n in range(200):
        await (here if n % 2 else there).log(run.id, [Line(at=0.0, text=str(n))])
    await asyncio.wait_for(follower, LONG)
    assert read == list(range(1, 201))
    await here.close()
    await there.close()


async def test_the_socket_of_a_dead_process_is_removed(path: Path, backend: SqliteBackend, start: Start) -> None:
    code = """
        import os
        async def main():
            await SqliteBackend.open(path)
            os._exit(0)
        asyncio.run(main())
    """
    await answer(start(code))
    folder = backend._bell._line._folder  # noqa: SLF001 - where it is nobody else needs to know
    assert len(list(folder.iterdir())) == 2
    await b.submitted(backend)
    assert len(list(folder.iterdir())) == 1


async def test_nobody_looks_at_the_file_while_nobody_waits(backend: SqliteBackend) -> None:
    await backend.work(0.01)
    await asyncio.sleep(2 * bell.LOOK_EVERY)
    assert backend._bell._next_look is None  # noqa: SLF001 - idle means no timer


async def test_who_waits_for_work_looks_seldom_after_a_while_and_who_watches_a_run_does_not(
    backend: SqliteBackend,
) -> None:
    run, waits = await b.submitted(backend), backend._bell  # noqa: SLF001 - how often it looks nobody else needs to know
    loop = asyncio.get_running_loop()

    def next_look() -> float:
        assert waits._next_look is not None  # noqa: SLF001 - the same
        return waits._next_look.when() - loop.time()  # noqa: SLF001 - the same

    waits._stirred_at -= 2 * bell.CALM * bell.SELDOM  # noqa: SLF001 - nothing came for long
    for_work = asyncio.create_task(backend.work(LONG))
    await asyncio.sleep(0)
    waits._look()  # noqa: SLF001 - as its timer does
    assert 0 < next_look() <= bell.SELDOM
    waits._next_look = loop.call_later(bell.SELDOM, waits._look)  # noqa: SLF001 - the furthest away that it can be
    for_run = asyncio.create_task(backend.changed(run.id, run.position, LONG))
    await asyncio.sleep(0)
    assert next_look() <= bell.LOOK_EVERY
    await b.submitted(backend)
    await asyncio.wait_for(for_work, LONG)
    assert waits._look_at() - loop.time() <= bell.LOOK_EVERY  # noqa: SLF001 - something came just now
    for_run.cancel()


async def test_a_reader_sees_no_unfinished_write(path: Path, backend: SqliteBackend) -> None:
    run = await b.submitted(backend)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM params")
    assert (await b.row(backend, run.id)).params == run.params
    other.execute("ROLLBACK")
    other.close()
