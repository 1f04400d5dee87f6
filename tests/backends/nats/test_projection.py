"""What a process knows of all runs: rows that gather, lists along indexes, counts that are kept."""

import random
import sqlite3
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tsuzuki.backends import Query
from tsuzuki.backends.nats import frames, projection
from tsuzuki.backends.nats.frames import Frame, Tip
from tsuzuki.backends.nats.kept import Kept
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.rows import Rows
from tsuzuki.clock import SystemClock
from tsuzuki.lifecycle import Run, Status

RUNS = 300
FILTERS: dict[str, tuple[Any, ...]] = {
    "status": ((Status.COMPLETED,), (Status.FAILED, Status.PENDING)),
    "flow": ("crawl", "seldom"),
    "tag": ("default", "gpu"),
    "label": ("common", "rare"),
    "key": ("site-7",),
    "private": (True, False),
    "holder": ("worker-1",),
    "number": (17,),
    "id_prefix": ("1",),
    "tenant": ("", "other"),
}


@pytest.fixture
def known() -> Iterator[Projection]:
    """A projection that knows nothing yet."""
    made = Projection(SystemClock())
    made.open(Kept.private())
    yield made
    made.close()


def made(number: int, dice: random.Random) -> Run:
    status = dice.choice(list(Status))
    return Run(
        id=f"{dice.getrandbits(128):032x}",
        number=number,
        flow=dice.choice(("crawl", "crawl", "seldom")),
        created_at="2026-01-01T00:00:00+00:00",
        tag=dice.choice(("default", "gpu")),
        tags=tuple(label for label, share in (("common", 0.5), ("rare", 0.02)) if dice.random() < share),
        key=dice.choice((None, "site-7")),
        private=dice.random() < 0.3,
        tenant=dice.choice(("", "other")),
        status=status,
        holder="worker-1" if status in (Status.RUNNING, Status.CANCELLING) else None,
        updated_at=float(dice.randrange(100)),
        position=1,
    )


def row(run: Run, **changed: Any) -> Run:
    return msgspec.structs.replace(run, **changed)


def fits(run: Run, asked: dict[str, Any]) -> bool:
    plain = {name: value for name, value in asked.items() if name not in ("status", "label", "id_prefix")}
    return (
        all(getattr(run, name) == value for name, value in plain.items())
        and run.status in asked.get("status", (run.status,))
        and ("label" not in asked or asked["label"] in run.tags)
        and run.id.startswith(asked.get("id_prefix", ""))
    )


@pytest.mark.parametrize("few", [0, 10_000])
def test_every_pair_of_filters_lists_what_fits_it_in_order(
    known: Projection, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(projection, "FEW", few)
    dice = random.Random(7)
    runs = [made(number, dice) for number in range(1, RUNS + 1)]
    for seq, run in enumerate(runs, 1):
        known.put(Tip(seq, seq, "", run))
    runs.sort(key=lambda run: (run.updated_at, run.id), reverse=True)
    single = [{name: value} for name, values in FILTERS.items() for value in values]
    pairs = [one | other for one, other in combinations(single, 2) if one.keys() != other.keys()]
    for asked in ({}, *single, *pairs):
        expected = [run.id for run in runs if fits(run, asked)]
        assert [tip.run.id for tip in known.search(Query(**asked, limit=RUNS)) if tip.run] == expected, asked
        before = next(((run.updated_at, run.id) for run in runs if expected[:1] == [run.id]), None)
        page = known.search(Query(**asked, before=before, limit=5))
        assert [tip.run.id for tip in page if tip.run] == (expected[1:6] if before else []), asked


def test_of_rows_that_gather_the_last_one_counts(known: Projection) -> None:
    run = row(made(1, random.Random(1)), status=Status.PENDING, holder=None, private=False, tag="default")
    known.put(Tip(1, 1, "", run))
    known.put(Tip(3, 1, "", row(run, status=Status.COMPLETED, position=3)))
    known.put(Tip(2, 1, "", row(run, status=Status.RUNNING, position=2)))
    assert known.position(run.id) == 3
    assert known.counts() == {"COMPLETED": 1}
    assert known.candidates(["default"], None, 1e12, frozenset(), 10) == []
    known.put(Tip(2, 1, "", row(run, status=Status.RUNNING, position=2)))
    found = known.get(run.id)
    assert found is not None
    assert found.run is not None
    assert (found.seq, found.run.status) == (3, Status.COMPLETED)


def test_counts_follow_each_row_whether_it_is_written_down_or_not(known: Projection) -> None:
    dice = random.Random(3)
    runs = [row(made(number, dice), status=Status.PENDING, tags=("rare",)) for number in range(1, 601)]
    for seq, run in enumerate(runs, 1):
        known.put(Tip(seq, seq, "", run))
    for seq, run in enumerate(runs[:400], 1000):
        known.put(Tip(seq, 1, "", row(run, status=Status.FAILED)))
    known.bury(runs[0].id)
    known.bury(runs[599].id)
    known.bury(runs[599].id)
    known.put(Tip(5000, 1, "", runs[599]))
    assert known.counts() == {"PENDING": 199, "FAILED": 399}
    assert len(known.search(Query(label="rare", limit=1000))) == 598


def test_large_params_outlive_the_message_that_brought_them(known: Projection) -> None:
    params = msgspec.Raw(b'"' + b"x" * frames.LARGE_PARAMS + b'"')
    run = row(made(1, random.Random(1)), params=params)
    known.put(Tip(1, 1, "", run))
    known.follow(run.id, 2, Frame("", 2, 1, frames.encode_row(row(run, position=2)), []))
    found = known.get(run.id)
    assert found is not None
    assert found.run is not None
    assert (found.run.position, found.run.params) == (2, params)


def test_progress_after_a_row_that_still_waits_is_the_last_update(known: Projection) -> None:
    run = row(made(1, random.Random(1)), status=Status.RUNNING, updated_at=10.0)
    known.put(Tip(1, 1, "", run))
    known.progressed(run.id, 20.0, b'[{"name":"a"}]')
    found = known.row(run.id)
    assert found is not None
    assert (found.updated_at, bytes(found.progress)) == (20.0, b'[{"name":"a"}]')
    known.put(Tip(2, 1, "", row(run, status=Status.COMPLETED, updated_at=30.0)))
    ended = known.get(run.id)
    assert ended is not None
    assert ended.run is not None
    assert bytes(ended.run.progress) == bytes(run.progress)


def test_a_process_that_claims_counts_by_itself_what_it_hears(known: Projection) -> None:
    dice = random.Random(4)
    runs = [row(made(number, dice), status=Status.PENDING, private=False, holder=None) for number in range(1, 401)]
    for seq, run in enumerate(runs, 1):
        frame = Frame(f"{seq}", 1, 0, frames.encode_row(run), [])
        known.heard(run.id, seq, frame)
        known.follow(run.id, seq, frame)
    known.begin_to_claim()
    assert known.counted(0.0)
    moves = [(400, Status.RUNNING), (300, Status.COMPLETED), (200, Status.PENDING), (100, Status.RUNNING)]
    seq = 1000
    for upto, status in moves:  # those that had ended and go on are found in the file
        for run in runs[:upto]:
            seq += 1
            known.put(Tip(seq, 1, "", row(run, status=status, position=seq)), ours=True)
    new = row(made(401, dice), status=Status.PENDING)
    known.put(Tip(seq + 1, seq + 1, "", new), ours=True)
    expected = {"PENDING": 101, "RUNNING": 200, "COMPLETED": 100}
    assert known.counts() == expected
    known.bury(new.id)
    assert not known.counted(0.0)
    assert known.counts() == expected | {"PENDING": 100}
    known.file.save()
    assert known.counts() == expected | {"PENDING": 100}


def test_what_is_known_of_runs_outlives_the_process(tmp_path: Path) -> None:
    dice = random.Random(5)
    runs = [row(made(number, dice), private=False) for number in range(1, 101)]
    params = msgspec.Raw(b'"' + b"x" * frames.LARGE_PARAMS + b'"')
    runs[0] = row(runs[0], params=params, updated_at=1000.0)
    first = Projection(SystemClock())
    first.open(Kept.at(tmp_path / "lists.1.db", "a journal"))
    for seq, run in enumerate(runs, 1):
        frame = Frame(f"{seq}", 1, 0, frames.encode_row(run), [])
        first.heard(run.id, seq, frame)
        first.put(Tip(seq, seq, "", run), ours=True)
    pages = [first.search(Query(label="common", limit=100)), first.search(Query(limit=100))]
    counts = first.counts()
    first.close()
    second = Projection(SystemClock())
    second.open(Kept.at(tmp_path / "lists.1.db", "a journal"))
    assert [second.search(Query(label="common", limit=100)), second.search(Query(limit=100))] == pages
    assert second.counts() == counts
    found = second.get(runs[0].id)
    assert found is not None
    assert found.run is not None
    assert bytes(found.run.params) == bytes(params)
    assert second.stamp() > 1000.0
    second.close()


def message(number: int, updated_at: float, **changed: Any) -> tuple[str, int, Frame]:
    """A message of a run of its own, as it comes."""
    run = row(made(number, random.Random(changed.pop("of", number))), updated_at=updated_at, **changed)
    return run.id, number, Frame(f"m{number}", 1, 0, frames.encode_row(run), [])


def seen_after(known: Projection, updated_at: float) -> list[tuple[str, float]]:
    page = known.search(Query(updated_after=updated_at, limit=100))
    return [(tip.run.id, tip.run.updated_at) for tip in page if tip.run is not None]


def test_who_follows_the_list_learns_of_what_came_late(known: Projection) -> None:
    """Its writer was cut off between saying the time and writing."""
    for number, at in ((1, 10.0), (2, 20.0)):
        known.heard(*message(number, at))
    (_, latest), _ = seen_after(known, 0.0)
    assert latest == 20.0
    late = message(3, 15.0)
    known.heard(*late)
    [(run_id, at)] = seen_after(known, latest)
    assert (run_id, at > latest) == (late[0], True)
    again = message(4, 16.0, of=3)  # the same run once more, late again
    known.heard(*again)
    [(run_id, following)] = seen_after(known, at)
    assert (run_id, following > at) == (late[0], True)
    known.heard(*message(5, 30.0))
    assert [at for _, at in seen_after(known, following)] == [30.0], "who is in time keeps its time"


def test_what_this_process_wrote_keeps_its_time_when_it_comes_back(known: Projection) -> None:
    run_id, seq, frame = message(1, 10.0)
    known.put(frames.tip_of(frame, seq), ours=True)
    late = message(2, 9.0)
    known.heard(*late)
    known.heard(run_id, 3, frame)
    known.heard(run_id, seq, frame)
    assert dict(seen_after(known, 0.0))[late[0]] > 10.0, "what was shown of ours was later"


def test_a_transaction_whose_end_is_refused_is_undone() -> None:
    """A full disk refuses the commit: a transaction left open would keep everybody from writing for good."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(
        "PRAGMA foreign_keys = ON; CREATE TABLE one (id INTEGER PRIMARY KEY);"
        "CREATE TABLE two (one INTEGER REFERENCES one (id) DEFERRABLE INITIALLY DEFERRED);"
    )
    rows = Rows(database)
    with pytest.raises(sqlite3.IntegrityError), rows.transaction():
        database.execute("INSERT INTO two VALUES (1)")
    assert not database.in_transaction
    with rows.transaction():
        database.execute("INSERT INTO one VALUES (1)")
    rows.close()
