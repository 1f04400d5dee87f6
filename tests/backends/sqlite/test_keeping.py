"""Blobs, doctor, shared limits and the statements themselves."""

import os
import re
from pathlib import Path

import pytest

from tsuzuki import facts as f
from tsuzuki.backends.sqlite import SqliteBackend, queries
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import ACTIVE, TERMINAL
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import FakeClock

PACKAGE = Path(queries.__file__).parent


async def test_a_damaged_blob_is_not_handed_out(backend: SqliteBackend, path: Path) -> None:
    run = await b.submitted(backend)
    blob = await backend.put_blob(run.id, b"x" * 1000)
    (path.with_name(f"{path.name}-blobs") / run.id / blob).write_bytes(b"y" * 1000)
    with pytest.raises(StoreError, match="damaged"):
        await backend.get_blob(run.id, blob)


@pytest.mark.parametrize("name", ["../tsuzuki.db", "..", "", "a/b", ".hidden"])
async def test_a_name_cannot_lead_out_of_the_blobs(backend: SqliteBackend, name: str) -> None:
    run = await b.submitted(backend)
    with pytest.raises(StoreError):
        await backend.get_blob(run.id, name)
    with pytest.raises(StoreError):
        await backend.get_blob(name, "0")


async def test_doctor_sweeps_what_a_crash_left_behind(backend: SqliteBackend, path: Path) -> None:
    run = await b.submitted(backend)
    await backend.put_blob(run.id, b"kept")
    folder = path.with_name(f"{path.name}-blobs")
    (folder / "unknown-run").mkdir()
    (folder / "unknown-run" / "blob").write_bytes(b"x")
    old, new = folder / run.id / ".part-old", folder / run.id / ".part-new"
    old.write_bytes(b"x")
    os.utime(old, (1, 1))
    new.write_bytes(b"x")
    checks = {check.name: check for check in await backend.examine()}
    assert all(check.ok for check in checks.values())
    assert "2 left behind" in checks["blobs"].text
    assert not (folder / "unknown-run").exists()
    assert not old.exists()
    assert new.exists(), "somebody may be writing it just now"


async def test_doctor_notices_a_row_that_disagrees_with_its_journal(backend: SqliteBackend) -> None:
    run = await b.submitted(backend)
    backend._writing.execute("UPDATE runs SET position = 7")  # noqa: SLF001 - what no verb of ours does
    checks = {check.name: check for check in await backend.examine()}
    assert not checks["journals"].ok
    await backend.rebuild(run.id)
    assert all(check.ok for check in await backend.examine())


async def test_a_shared_rate_survives_a_restart_of_the_machine(path: Path) -> None:
    clock = FakeClock()
    clock.advance(10_000)
    before = await SqliteBackend.open(path, clock=clock)
    assert [await before.take("api", interval=1.0) for _ in range(3)] == [0.0, 1.0, 2.0]
    await before.close()
    after = await SqliteBackend.open(path, clock=FakeClock())
    assert [await after.take("api", interval=1.0) for _ in range(2)] == [0.0, 1.0]
    await after.close()


async def test_a_shared_rate_does_not_mind_a_clock_that_steps_back(path: Path) -> None:
    clock = FakeClock()
    store = await SqliteBackend.open(path, clock=clock)
    await store.take("api", interval=1.0)
    clock.jump(-3600)
    assert await store.take("api", interval=1.0) == 1.0
    await store.close()


def test_the_statements_know_the_kinds_and_states_of_the_engine() -> None:
    schema = (PACKAGE / "migrations" / "0001_the_store.sql").read_text(encoding="utf-8")
    for text in (schema, *queries.SQL.values()):
        for kinds in re.findall(r"kind IN \(([^)]*)\)", text):
            assert set(re.findall(r"'(\w+)'", kinds)) == f.OUTCOMES
        for states in re.findall(r"status IN \(('[^)]*)\)", text):
            assert set(re.findall(r"'(\w+)'", states)) in (ACTIVE, TERMINAL)


def test_every_statement_is_used_and_explained() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    text = (PACKAGE / "queries.sql").read_text(encoding="utf-8")
    for name in queries.SQL:
        assert f'"{name}"' in code or f"{{{name}}}" in text or name.startswith(("list_by_", "few_by_")), (
            f"nobody uses {name}"
        )
        assert re.search(rf"^-- {name}: [A-Z].*\.$", text, re.MULTILINE), f"{name} needs one sentence"
