"""Lists by flow, tag, tenant and privacy go by shelves: few are merged, many with few runs sorted, others scanned."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tsuzuki.backends import Query
from tsuzuki.backends.sqlite import SqliteBackend, lists, migrations
from tsuzuki.lifecycle import Run
from tsuzuki.testing import builders as b

MANY = 40
"""Tenants, so that a flow stands on more shelves than are merged."""


async def filled(backend: SqliteBackend, dice: random.Random) -> list[Run]:
    """Fills a store with runs that agree in some fields and differ in others; gives them, the newest first."""
    made = [
        await b.submitted(
            backend,
            flow=dice.choice(["crawl", "crawl", "crawl", "seldom"]),
            tag=dice.choice(["default", "gpu"]),
            tenant=f"t{dice.randrange(MANY)}",
            private=dice.random() < 0.2,
            tags=("red",) if dice.random() < 0.3 else (),
            key=f"key-{number}" if dice.random() < 0.1 else None,
        )
        for number in range(300)
    ]
    return made[::-1]


def fits(run: Run, query: Query) -> bool:
    asked = {name: getattr(query, name) for name in ("flow", "tag", "tenant", "private", "key")}
    same = all(value is None or getattr(run, name) == value for name, value in asked.items())
    return same and (query.label is None or query.label in run.tags)


def drawn(dice: random.Random) -> Query:
    return Query(
        flow=dice.choice([None, "crawl", "seldom", "unknown"]),
        tag=dice.choice([None, "default", "gpu"]),
        tenant=dice.choice([None, None, "t7"]),
        private=dice.choice([None, None, True, False]),
        label=dice.choice([None, None, "red"]),
        limit=20,
    )


@pytest.mark.parametrize("few", [5, 1000], ids=["most are many", "most are few"])
async def test_any_mixture_of_filters_gives_what_a_look_at_every_run_gives(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(lists, "_FEW", few)
    dice = random.Random(few)
    runs = await filled(backend, dice)
    for _ in range(150):
        query = drawn(dice)
        expected = [run.id for run in runs if fits(run, query)]
        page = await backend.search(query)
        assert [run.id for run in page] == expected[:20], query
        if len(page) == query.limit:
            cursor = (page[-1].updated_at, page[-1].id)
            following = await backend.search(msgspec.structs.replace(query, before=cursor))
            assert [run.id for run in following] == expected[20:40], query


async def test_runs_of_a_file_without_shelves_are_put_on_some(path: Path) -> None:
    with closing(sqlite3.connect(path)) as old, old:
        for number in (1, 2, 3):
            for statement in migrations.statements(migrations.steps()[number]):
                old.execute(statement)
        counts = ("private", "priority", "attempt", "not_before", "done", "failed", "skipped", "steps", "barren")
        texts = ("digest", "source", "fingerprint", "blob", "cancel_asked_by", "cancel_reason")
        row: dict[str, object] = {**dict.fromkeys(counts, 0), **dict.fromkeys(texts, ""), "position": 1, "version": 1}
        row |= {"flow": "crawl", "created_at": "2026-01-01T00:00:00+00:00"}
        row |= {"tag": "default", "tags": "[]", "status": "PENDING", "progress": "[]"}
        for number, tenant in enumerate(["one", "other", "one"], 1):
            run = {**row, "id": f"run-{number}", "tenant": tenant, "updated_at": float(number)}
            places = ", ".join(f":{name}" for name in run)
            old.execute(f"INSERT INTO runs ({', '.join(run)}) VALUES ({places})", run)  # noqa: S608 - names of our own
            old.execute("INSERT INTO params (run, body) VALUES (?, '{}')", (number,))
        old.execute(f"PRAGMA application_id = {migrations.MARK}")
        old.execute("PRAGMA user_version = 3")
    backend = await SqliteBackend.open(path)
    try:
        found = await backend.search(Query(tenant="one", flow="crawl"))
        assert [run.id for run in found] == ["run-3", "run-1"]
    finally:
        await backend.close()


async def test_a_run_that_is_claimed_while_a_list_is_read_is_in_it(
    backend: SqliteBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held runs and others are read by statements of their own: they look at one state of the file."""
    read = lists._unheld  # noqa: SLF001 - it is between the two statements

    def claimed_meanwhile(*asked: Any) -> Any:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE runs SET status = 'RUNNING', holder = 'another'")
            connection.commit()
        return read(*asked)

    run = await b.submitted(backend)
    monkeypatch.setattr(lists, "_unheld", claimed_meanwhile)
    assert [each.id for each in await backend.search(Query())] == [run.id]
    assert [each.holder for each in await backend.search(Query())] == ["another"], "the next look sees it"
