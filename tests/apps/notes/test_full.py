"""A disk that is full, and a process that is frozen in the midst of a session: the import waits, and nothing fails."""

import errno
import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.apps.notes.conftest import Study, lines, records
from tests.apps.notes.exports import claude, written
from tsuzuki import stumbles
from tsuzuki.apps.notes import flows
from tsuzuki.apps.notes.items import ProcessingItem
from tsuzuki.apps.notes.refusals import TooManyFailed
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.apps.notes.stages import BENCH, Workbench
from tsuzuki.apps.notes.writing import WriteFile
from tsuzuki.errors import StoreClosed, StoreUnavailable

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stumbles, "FIRST_PAUSE", 0.1)


async def test_an_import_waits_for_room_and_records_no_failure(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = written(tmp_path / "export/conversations.json", [claude(number) for number in range(5)])
    write = WriteFile.run
    refused: list[str] = []

    async def run(self: WriteFile, item: ProcessingItem, note: Any) -> ProcessingItem:
        if len(refused) < 2:
            refused.append(item.item_id)
            raise FULL
        return await write(self, item, note)

    monkeypatch.setattr(WriteFile, "run", run)
    session, told = await study.imported(export)
    assert (told["success"], told["failed"]) == (5, 0)
    assert len(refused) == 2
    assert {record["status"] for record in records(session)} == {"success"}
    assert sum(study.model.prompts.values()) == 5, "notes that were made are not asked for again"


@pytest.mark.parametrize("refused", ["asked", "intended", "created", "settled"])
async def test_a_batch_that_finds_no_room_to_be_noted_is_created_once(
    study: Study, tmp_path: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_SETTLE_SEC", "0.05")
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "2")
    export = written(tmp_path / "export/conversations.json", [claude(number) for number in range(3)])
    append, tries = Lines.append, count()

    def full(self: Lines, plain: dict[str, Any]) -> tuple[int, int]:
        if plain.get("event") == refused and "group" in plain and next(tries) < 2:
            raise FULL
        return append(self, plain)

    monkeypatch.setattr(Lines, "append", full)
    session, told = await study.imported(export, strategy="batch")
    assert (told["success"], told["failed"]) == (3, 0)
    assert len(study.model.batches) == 1
    assert {record["status"] for record in records(session)} == {"success"}
    assert lines(session.batches_log)[-1]["event"] == "settled"


async def test_a_vault_that_cannot_be_made_for_a_while_has_crashed_nothing(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = written(tmp_path / "export/conversations.json", [claude(1)])
    make, states = Path.mkdir, list[dict[str, Any]]()

    def mkdir(self: Path, *given: Any, **more: Any) -> None:
        if self == study.vault and len(states) < 2:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))
        make(self, *given, **more)

    enter = Session.enter

    def entered(self: Session, *given: Any, **more: Any) -> None:
        enter(self, *given, **more)
        states.append(self.state())

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Session, "enter", entered)
    _, told = await study.imported(export)
    assert told["success"] == 1
    assert [state["status"] for state in states] == ["IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]


async def test_a_session_that_finds_no_room_is_refused_and_leaves_nothing(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = written(tmp_path / "export/conversations.json", [claude(1)])

    def refuse(descriptor: int) -> None:
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr("tsuzuki.apps.notes.sessions.os.fsync", refuse)
        with pytest.raises(StoreUnavailable, match="No space left"):
            await study.desk.start(study.asked(export))
    assert study.desk.sessions.all() == []
    assert list(study.desk.sessions.root.iterdir()) == []
    _, told = await study.imported(export)
    assert told["success"] == 1


def test_a_line_after_one_that_found_no_room_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, tries = os.write, count()

    def half(descriptor: int, line: bytes) -> int:
        if next(tries):
            raise FULL
        return write(descriptor, line[: len(line) // 2])

    with Lines(tmp_path / "log") as log:
        log.append({"item_id": "a"})
        with monkeypatch.context() as patch:
            patch.setattr("tsuzuki.apps.notes.stagelog.os.write", half)
            with pytest.raises(OSError, match="No space"):
                log.append({"item_id": "b"})
        begins, length = log.append({"item_id": "c"})
        assert log.read(begins, length) == b'{"item_id":"c"}\n'
    assert (tmp_path / "log").read_bytes() == b'{"item_id":"a"}\n{"item_i\n{"item_id":"c"}\n'


async def test_a_run_that_was_taken_over_waits_until_who_had_it_lets_go(study: Study, tmp_path: Path) -> None:
    export = written(tmp_path / "export/conversations.json", [claude(number) for number in range(3)])
    started = await study.desk.start(study.asked(export), limit=1)
    await study.told(started)
    session = study.desk.sessions.find(started.session_id)
    with session.held():
        run = await study.runs.submit("notes_import", {"session_id": session.session_id})
        assert (await study.ended(run.id)).status == "FAILED", "another store may be at work on it"
        await study.runs.resume(run.id)
        async for entry in study.runs.follow(run.id):
            if entry.fact.attempt == 2 and type(entry.fact).__name__ == "Claimed":
                break
        for _ in range(20):
            await study.moment()
        assert not (await study.runs.get(run.id)).status.terminal
    assert (await study.ended(run.id)).status == "COMPLETED"
    assert len(lines(session.loaded)) == 3


async def test_both_stages_have_ended_before_what_stopped_them_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    kept: list[Any] = []  # so that nobody ends them but who is to

    async def stage(name: str, items: Any) -> AsyncIterator[Any]:
        try:
            async for item in items:
                yield item
        finally:
            ended.append(name)

    async def ids(given: list[str]) -> AsyncIterator[Any]:
        for item_id in given:
            yield {"item_id": item_id, "note": {}}

    def stream(name: str, items: Any) -> Any:
        kept.append(stage(name, items))
        return kept[-1]

    class Impatient:
        def transformed(self, outcome: Any) -> None:
            pass

        def failed(self, outcome: Any) -> None:
            raise TooManyFailed

    transform = SimpleNamespace(stream=lambda given, **_: stream("transform", ids(given)))
    load = SimpleNamespace(stream=lambda made, **_: stream("load", made))
    bench = SimpleNamespace(options={}, settled=0, cost=None, ready={}, ensure=lambda *_: None)
    monkeypatch.setattr(flows, "transform", transform)
    monkeypatch.setattr(flows, "load", load)
    with pytest.raises(TooManyFailed):
        await flows._written(cast("Any", bench), ["a", "b"], 2, cast("Any", Impatient()))  # noqa: SLF001 - it is what closes them
    assert ended == ["load", "transform"]


async def test_what_still_works_on_a_session_that_was_closed_has_not_failed(study: Study, tmp_path: Path) -> None:
    export = written(tmp_path / "export/conversations.json", [claude(1), claude(2)])
    session, _ = await study.imported(export, limit=1)
    left = next(record["item_id"] for record in records(session, "extract") if record["item_id"] not in loaded(session))
    bench = Workbench(session)
    bench.close()
    before = records(session)
    token = BENCH.set(bench)
    try:
        for stage in (flows.transform, flows.load):
            with pytest.raises(StoreClosed):
                await cast("Any", stage(left))
    finally:
        BENCH.reset(token)
    assert records(session) == before


def loaded(session: Session) -> set[str]:
    return {record["item_id"] for record in records(session, "load")}
