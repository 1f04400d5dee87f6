"""Groups are written together and refused apart; a full disk loses nothing; the clock may step back."""

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.backends.sqlite.conftest import Start, answer
from tsuzuki import facts as f
from tsuzuki.backends import Claim, Query, WorkerRecord
from tsuzuki.backends.sqlite import SqliteBackend, file, turnstile, writer
from tsuzuki.backends.sqlite.writer import Job
from tsuzuki.errors import ClaimLost, StoreError, StoreUnavailable
from tsuzuki.lifecycle import Status, stamp
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.stopwatch import Stopwatch


async def positions(store: SqliteBackend, run_id: str) -> list[int]:
    return [entry.position for entry in await store.read(run_id, limit=100_000)]


async def test_a_lost_claim_does_not_hurt_the_others_in_its_group(backend: SqliteBackend) -> None:
    good, bad = await b.claimed(backend), await b.claimed(backend)
    stale = Claim(bad.run, "somebody else", bad.attempt)
    done = await asyncio.gather(
        backend.append(good, [b.item("a")]),
        backend.append(stale, [b.item("a")]),
        backend.append(good, [b.item("b")]),
        backend.append(stale, [f.RunCompleted(at=b.AT)]),
        backend.append(bad, [b.item("c")]),
        return_exceptions=True,
    )
    assert [type(each) for each in done] == [int, ClaimLost, int, ClaimLost, int]
    assert [mark.key for mark in await backend.outcomes(good.run.id)] == ["a", "b"]
    assert [mark.key for mark in await backend.outcomes(bad.run.id)] == ["c"]


async def test_after_claims_are_lost_the_next_holder_is_alone_again(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of claims that are over would make a long-lived worker write everything the longer way."""
    lost, quiet = await b.claimed(backend), await b.claimed(backend)
    for claim in (lost, quiet):
        await backend.append(claim, [b.item("a")])
        await b.claim_of(backend, claim.run.id, "another", dead="worker")
    with pytest.raises(ClaimLost):
        await backend.append(lost, [b.item("b")])
    kept, told = await b.claimed(backend), list[bool]()
    put = backend._writer.put  # noqa: SLF001 - whether it writes at once also depends on how busy the machine is

    def putting(job: Job, *, alone: bool = False) -> None:
        told.append(alone)
        put(job, alone=alone)

    monkeypatch.setattr(backend._writer, "put", putting)  # noqa: SLF001 - the same
    await backend.append(kept, [b.item("a")], alone=True)
    await backend.beat(WorkerRecord(id="worker"))
    await backend.append(kept, [b.item("b")], alone=True)
    assert told == [False, False, True]  # a heartbeat never is
    assert await positions(backend, kept.run.id) == [1, 2, 3, 4]


async def test_a_fact_that_cannot_be_stored_fails_only_itself(backend: SqliteBackend) -> None:
    claim = await b.claimed(backend)
    done = await asyncio.gather(
        backend.append(claim, [b.item("a")]),
        backend.append(claim, [b.item("\ud800")]),
        backend.append(claim, [b.item("b")]),
        return_exceptions=True,
    )
    assert isinstance(done[1], UnicodeEncodeError)
    assert [mark.key for mark in await backend.outcomes(claim.run.id)] == ["a", "b"]
    assert await positions(backend, claim.run.id) == [1, 2, 3, 4]


async def test_a_transaction_that_fails_as_it_begins_does_not_stay_open(backend: SqliteBackend) -> None:
    def broken(action: int, what: str | None, *_: object) -> int:
        return sqlite3.SQLITE_DENY if (action, what) == (sqlite3.SQLITE_PRAGMA, "data_version") else sqlite3.SQLITE_OK

    backend._writing.set_authorizer(broken)  # noqa: SLF001 - a disk that cannot be read in just that moment
    with pytest.raises(StoreError):
        await b.submitted(backend)
    backend._writing.set_authorizer(None)  # noqa: SLF001 - it can be read again
    assert (await b.submitted(backend)).number == 1


async def test_the_first_write_wins_in_a_group_and_leaves_no_gap(backend: SqliteBackend) -> None:
    claim = await b.claimed(backend)
    await backend.append(claim, [b.item("a")])
    await asyncio.gather(
        backend.append(claim, [b.item("b"), b.item("a"), b.item("c")]),
        backend.append(claim, [b.item("c"), b.item("d")]),
        backend.append(claim, [b.item("a")]),
    )
    assert [mark.key for mark in await backend.outcomes(claim.run.id)] == ["a", "b", "c", "d"]
    assert await positions(backend, claim.run.id) == [1, 2, 3, 4, 5, 6]
    row = await b.row(backend, claim.run.id)
    assert (row.done, row.position) == (4, 6)
    await backend.append(claim, [b.item("d"), b.item("e"), f.RunCompleted(at=b.AT)])
    assert (await b.row(backend, claim.run.id)).done == 5
    assert await positions(backend, claim.run.id) == list(range(1, 9))


async def test_runs_that_are_claimed_together_keep_what_is_their_own(backend: SqliteBackend) -> None:
    given: list[dict[str, Any]] = [
        {},
        {"key": "k", "idempotency_key": 'a "word"', "tags": ("続き", "b"), "params": msgspec.Raw(b'{"a":1}')},
        {},
        {"tag": "gpu"},
        {"tag": "gpu", "priority": 7, "tenant": "t", "source": "http", "api_key": "id", "continues": "another"},
        {"workflow": "sha", "workflow_bytes": 3},
        {"flow": "other"},
        {},
    ]
    ids = [(await b.submitted(backend, **fields)).id for fields in given]
    claims = await backend.claim("w", tags=("default", "gpu"), limit=100, fingerprints={"crawl": "f", "other": "g"})
    assert [claim.run.id for claim in claims] == [ids[4], *ids[:4], *ids[5:]]
    assert [claim.run for claim in claims] == [await b.row(backend, claim.run.id) for claim in claims]
    for claim in claims:
        assert await backend.rebuild(claim.run.id) == msgspec.structs.replace(
            claim.run, updated_at=(await b.row(backend, claim.run.id)).updated_at
        )


async def test_runs_that_complete_together_keep_what_is_their_own(backend: SqliteBackend) -> None:
    texts = ["", 'a "word" \\ and a \\n', "続き \x7f", "half a page " * 1000]
    results = [msgspec.json.encode(text) for text in texts] + [
        b"1.0",
        b"null",
        b'{"a":[1,{}]}',
        b"123456789012345678901",
    ]
    claims = [
        await b.claimed(backend, tags=("odd", "all") if number % 2 else ("all",)) for number in range(len(results))
    ]
    await backend.append(claims[0], [f.Released(at=b.AT)])
    claims[0] = (await backend.claim("w", run_id=claims[0].run.id))[0]
    ends = [
        f.RunCompleted(at=b.AT + number % 3, attempt=claim.attempt, result=msgspec.Raw(result))
        for number, (claim, result) in enumerate(zip(claims, results, strict=True))
    ]
    ended = await asyncio.gather(*(backend.append(claim, [end]) for claim, end in zip(claims, ends, strict=True)))
    rows = [row for claim in claims if (row := await backend.get(claim.run.id)) is not None]
    assert [bytes(row.result or b"") for row in rows] == results
    assert [row.finished_at for row in rows] == [stamp(end.at) for end in ends]
    assert {row.status for row in rows} == {Status.COMPLETED}
    assert [row.position for row in rows] == ended == [5, *[3] * (len(claims) - 1)]
    assert len({row.updated_at for row in rows}) == len(rows)
    latest_first = sorted(rows, key=lambda row: -row.updated_at)
    assert await backend.search(Query(label="all")) == latest_first
    assert await backend.search(Query(label="odd")) == [row for row in latest_first if "odd" in row.tags]
    for row, end in zip(rows, ends, strict=True):
        assert [entry.fact for entry in await backend.read(row.id, after=row.position - 1)] == [end]
        folded = await backend.rebuild(row.id)
        assert folded is not None
        assert msgspec.structs.replace(folded, updated_at=row.updated_at) == row


async def test_a_run_that_changed_meanwhile_does_not_keep_others_from_completing(backend: SqliteBackend) -> None:
    claims = [await b.claimed(backend) for _ in range(3)]
    await backend.ask(claims[1].run.id, f.CancelAsked(at=b.AT, by="somebody"))
    taken = Claim(claims[2].run, "somebody else", claims[2].attempt)
    done = await asyncio.gather(
        *(backend.append(claim, [f.RunCompleted(at=b.AT)]) for claim in (*claims[:2], taken)), return_exceptions=True
    )
    assert (done[0], done[1], type(done[2])) == (3, 4, ClaimLost)
    rows = [await backend.get(claim.run.id) for claim in claims]
    assert [row and row.status for row in rows] == [Status.COMPLETED, Status.COMPLETED, Status.RUNNING]


async def test_a_group_is_one_commit(backend: SqliteBackend, path: Path) -> None:
    claim = await b.claimed(backend)
    seen: set[int] = set()
    with sqlite3.connect(path, isolation_level=None) as other:
        versions = [other.execute("PRAGMA data_version").fetchone()]
        for n in range(3):
            await asyncio.gather(*(backend.append(claim, [b.item(f"{n}.{m}")]) for m in range(100)))
            seen.add(len(await positions(backend, claim.run.id)))
            versions.append(other.execute("PRAGMA data_version").fetchone())
    other.close()
    assert seen == {102, 202, 302}
    assert len(set(versions)) == 4


async def test_who_stops_waiting_does_not_stop_the_write(backend: SqliteBackend) -> None:
    claim = await b.claimed(backend)
    waiting = asyncio.ensure_future(backend.append(claim, [b.item("a")]))
    waiting.cancel()
    await backend.append(claim, [b.item("b")])
    assert [mark.key for mark in await backend.outcomes(claim.run.id)] == ["a", "b"]


async def test_a_row_is_what_its_journal_folds_to(backend: SqliteBackend) -> None:
    claim = await b.claimed(backend)
    await asyncio.gather(*(backend.append(claim, [b.item(str(n))]) for n in range(20)))
    await backend.append(claim, [f.RunFailed(at=b.AT, error=f.Problem("E", "m"))])
    row = await b.row(backend, claim.run.id)
    rebuilt = await backend.rebuild(claim.run.id)
    assert rebuilt is not None
    assert rebuilt.updated_at > row.updated_at
    names = set(row.__struct_fields__) - {"updated_at"}
    assert {name: getattr(rebuilt, name) for name in names} == {name: getattr(row, name) for name in names}


async def test_updated_at_grows_although_the_clock_steps_back(path: Path) -> None:
    one_clock, two_clock = ShiftedClock(), ShiftedClock()
    one = await SqliteBackend.open(path, clock=one_clock)
    two = await SqliteBackend.open(path, clock=two_clock)
    seen = [(await b.submitted(one)).updated_at]
    one_clock.jump(-3600)
    seen.append((await b.submitted(one)).updated_at)
    two_clock.jump(-7200)
    seen.append((await b.submitted(two)).updated_at)
    claim = await b.claimed(two)
    seen.append(claim.run.updated_at)
    await one.append(claim, [b.item("a"), f.RunCompleted(at=b.AT)])
    seen.append((await b.row(one, claim.run.id)).updated_at)
    await one.purge([claim.run.id])
    seen.append((await b.submitted(two)).updated_at)
    await two.close()
    third = await SqliteBackend.open(path, clock=two_clock)
    seen.append((await b.submitted(third)).updated_at)
    assert seen == sorted(set(seen))
    await third.close()
    await one.close()


async def test_four_processes_append_at_once_without_an_error(backend: SqliteBackend, start: Start) -> None:
    code = """
        async def main():
            store = await SqliteBackend.open(path)
            claim = await b.claimed(store)
            for n in range(200):
                await store.append(claim, [b.item(str(n))])
            await store.close()
            print(claim.run.id)
        asyncio.run(main())
    """
    runs = await asyncio.gather(*(answer(start(code)) for _ in range(4)))
    for run_id in runs:
        assert await positions(backend, run_id) == list(range(1, 203))
        assert (await b.row(backend, run_id)).done == 200


async def test_one_of_fifty_simultaneous_starts_wins(backend: SqliteBackend, start: Start) -> None:
    code = """
        from tsuzuki.errors import KeyHeld
        async def submit(store):
            try:
                return await b.submitted(store, key="nightly")
            except KeyHeld as error:
                assert error.run_id and "run 1, which is PENDING" in str(error), error
        async def main():
            store = await SqliteBackend.open(path)
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            won = await asyncio.gather(*(submit(store) for _ in range(10)))
            await store.close()
            print(sum(run is not None for run in won))
        asyncio.run(main())
    """
    processes = [start(code) for _ in range(5)]
    for process in processes:
        assert process.stdout is not None
        assert (await asyncio.to_thread(process.stdout.readline)).strip() == "ready"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [int(await answer(process)) for process in processes]
    assert sum(won) == 1
    assert len(await backend.search(Query(key="nightly"))) == 1


FILL = """
    import resource, signal
    from tsuzuki.errors import StoreUnavailable
    async def main():
        store = await SqliteBackend.open(path)
        claim = await b.claimed(store)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        kept, refused = [], 0
        for n in range(2000):
            try:
                await asyncio.gather(*(store.append(claim, [b.item(f"{n}.{m}", result="x" * 200)]) for m in range(10)))
                kept += [f"{n}.{m}" for m in range(10)]
            except StoreUnavailable as error:
                assert "free some space" in str(error), error
                refused += 1
                if refused == 5:
                    break
        assert refused == 5, "the disk was never full"
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.append(claim, [b.item("after")])
        keys = [mark.key for mark in await store.outcomes(claim.run.id, limit=100_000)]
        assert keys == [*kept, "after"], (len(keys), len(kept))
        await store.close()
        print("ok")
    asyncio.run(main())
"""


async def test_a_full_disk_refuses_and_loses_nothing(start: Start) -> None:
    assert await answer(start(FILL)) == "ok"


async def test_a_program_that_locks_the_file_delays_writes_and_not_the_loop(backend: SqliteBackend, path: Path) -> None:
    claim = await b.claimed(backend)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.ensure_future(backend.append(claim, [b.item("a")]))
    with Stopwatch() as watch:
        await asyncio.sleep(0.05)
    assert watch.fair < 0.5
    assert not write.done()
    other.execute("ROLLBACK")
    other.close()
    assert await asyncio.wait_for(write, 30) == 3


async def test_a_file_that_stays_locked_is_told_at_last(
    backend: SqliteBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked by another program"):
        await b.submitted(backend)
    other.execute("ROLLBACK")
    other.close()
    await b.submitted(backend)


@contextlib.contextmanager
def holding_its_turn(path: Path, *, writes: bool) -> Iterator[int]:
    """A process that was stopped in its turn, or whose interpreter is kept by a long call; gives its number."""
    code = (
        "import sqlite3, sys; from pathlib import Path; from tsuzuki.backends.sqlite.turnstile import Turnstile\n"
        f"turnstile = Turnstile(Path({str(path)!r})); turnstile.enter()\n"
        f"file = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        f"file.execute('BEGIN IMMEDIATE' if {writes} else 'SELECT 1')\n"
        "print(flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


async def test_a_process_that_hangs_in_its_turn_delays_others_and_no_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.1)
    store = await SqliteBackend.open(path)
    with holding_its_turn(path, writes=False) as process:
        numbers = [(await b.submitted(store)).number for _ in range(3)]
        numbers += [run.number for run in await asyncio.gather(*(b.submitted(store) for _ in range(20)))]
        late = await SqliteBackend.open(path)
        numbers.append((await b.submitted(late)).number)
        turns = next(check for check in await store.examine() if check.name == "turns")
        assert not turns.ok
        assert f"process {process} has kept its turn" in turns.text
    assert sorted(numbers) == list(range(1, 25))
    assert (await b.submitted(store)).number == 25
    assert all(check.ok for check in await store.examine())
    await store.close()
    await late.close()


async def test_a_process_that_hangs_while_it_writes_is_named_to_those_who_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.1)
    monkeypatch.setattr(writer, "LONGEST_TURN", 0.3)
    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    monkeypatch.setattr(file, "PATIENCE", 0.1)
    store = await SqliteBackend.open(path)
    run = await b.submitted(store)
    with holding_its_turn(path, writes=True) as process:
        with pytest.raises(
            StoreUnavailable, match=rf"another process has been writing .*\(process {process}\)"
        ) as told:
            await store.ask(run.id, b.cancel())
        assert f"process {process}" in told.value.advice, "who asks over HTTP is told, too"
        with pytest.raises(StoreUnavailable, match=f"process {process} is in the middle of writing"):
            await SqliteBackend.open(path)
    assert (await b.submitted(store)).number == 2
    assert (await b.row(store, run.id)).status is Status.PENDING
    await store.close()


async def test_a_slow_disk_is_written_by_the_thread_and_a_fast_one_by_the_loop(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SLOW", 0.0)
    monkeypatch.setattr(writer, "TRY_AGAIN", 60.0)
    store = await SqliteBackend.open(path)
    claim = await b.claimed(store)
    for n in range(20):
        await store.append(claim, [b.item(str(n))])
    assert "tsuzuki-writer" in {thread.name for thread in threading.enumerate()}
    assert await positions(store, claim.run.id) == list(range(1, 23))
    await store.close()
    assert "tsuzuki-writer" not in {thread.name for thread in threading.enumerate()}


async def test_closing_writes_what_waits_and_leaves_nothing(path: Path) -> None:
    store = await SqliteBackend.open(path)
    claim = await b.claimed(store)
    waiting = [store.append(claim, [b.item(str(n))]) for n in range(10)]
    await store.close()
    assert await asyncio.gather(*waiting) == list(range(3, 13))
    assert "tsuzuki-writer" not in {thread.name for thread in threading.enumerate()}
    assert {file.name for file in path.parent.iterdir()} == {"tsuzuki.db", "tsuzuki.db-main", "tsuzuki.db-next"}
    await store.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        await store.append(claim, [b.item("late")])
    with pytest.raises(StoreUnavailable, match="was closed"):
        await store.get(claim.run.id)


async def test_runs_whose_numbers_are_far_apart_are_claimed_in_order_and_not_stamped_in_the_future(
    backend: SqliteBackend, path: Path
) -> None:
    first = await b.submitted(backend)
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE sqlite_sequence SET seq = seq + 5000000")
    second = await b.submitted(backend)
    claims = await backend.claim("worker", tags=["default"], limit=10)
    assert [claim.run.id for claim in claims] == [first.id, second.id]
    assert claims[1].run.updated_at - claims[0].run.updated_at < 1


@pytest.mark.parametrize(("times", "unclear"), [(1, False), (9, True)])
async def test_what_was_refused_because_the_disk_cannot_sync_does_not_come_back_after_a_kill(
    tmp_path: Path, times: int, unclear: bool
) -> None:
    """Its commit is in the log whole; SQLite would take it for one of a process that died."""
    path = tmp_path / "store.db"
    command = [sys.executable, "-m", "tests.backends.sqlite.failing_syncs", str(path), str(times)]
    process = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert "the disk refused to read or write" in process.stdout
    assert ("whether this was kept is unclear" in process.stdout) is unclear
    store = await SqliteBackend.open(path)
    assert [run.flow for run in await store.search(Query())] == ["first"]
    await store.close()
