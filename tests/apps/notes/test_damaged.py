"""Files of a session that are cut or garbled: it is noticed, mended from what is left, and nothing is paid twice."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, knowledge, lines, records
from tests.apps.notes.exports import chatgpt, claude, said, written, zipped
from tests.apps.notes.test_moved_batches import FOREVER, elsewhere, last, sizes, waiting
from tests.apps.notes.test_sessions import agreed, asked, export
from tests.llm.double import Plan
from tsuzuki.apps.notes import CompletedItemsCache, StageType
from tsuzuki.apps.notes.outputs import entries_of
from tsuzuki.apps.notes.refusals import BatchesDamaged, InputChanged
from tsuzuki.apps.notes.sessions import Session, Sessions


def cut(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def garbled(path: Path) -> None:
    """Spoils the last line, and leaves the file as long as it was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + b"#" * 39 + b"\n")


def reworded(path: Path) -> None:
    """Says something else that makes as much sense and is as long, in items that are not done yet."""
    path.write_bytes(path.read_bytes().replace(b"Otters 7", b"Badgers7"))


def texts(folder: Path) -> Path:
    """Makes an export of several files, which are copied."""
    for number in range(3):
        (folder / "inner").mkdir(parents=True, exist_ok=True)
        (folder / f"inner/{number}.md").write_text(f"# Note {number}\n\nOtters are mammals, and number {number}.\n")
    return folder


def line_of_json(path: Path) -> Path:
    path.write_text(json.dumps({"id": "1", "title": "Otters", "text": "Otters are mammals."}) + "\n")
    return path


@pytest.mark.parametrize("kind", ["file", "folder", "one of a folder"])
async def test_an_export_that_a_power_cut_has_emptied_is_not_taken_for_one_without_notes(
    study: Study, tmp_path: Path, kind: str
) -> None:
    export = line_of_json(tmp_path / "export.jsonl") if kind == "file" else texts(tmp_path / "export")
    provider = "jsonl" if kind == "file" else "markdown"
    options = {"provider": "offline", "chunk": False, "chunk_size": 25_000}
    session = study.desk.sessions.create(export, provider, tmp_path / "vault", options)
    copies = sorted(path for path in (session.phase / "extract/input").rglob("*") if path.is_file())
    for copy in copies[:1] if kind == "one of a folder" else copies:
        copy.write_bytes(b"")
    with pytest.raises(InputChanged, match="lost by a power cut"):
        await study.desk.resume(session)
    assert (await study.desk.standing(session)).status != "COMPLETED"


@pytest.mark.parametrize("name", ["export.jsonl", "export", "export.zip"])
def test_an_export_is_on_the_disk_before_there_is_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What the system was asked to sync, and when the file got its name that makes a session of a folder."""
    happened: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        sync(descriptor)
        happened.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    def replaced(source: Path, target: Path, **more: Any) -> None:
        replace(source, target, **more)
        happened.append(f"named {Path(target).name}")

    export = tmp_path / name
    if name == "export":
        texts(export)
    elif name == "export.zip":
        zipped(export, {"conversations.json": json.dumps([claude(1)])})
    else:
        line_of_json(export)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    providers = {"export.jsonl": "jsonl", "export": "markdown", "export.zip": "claude"}
    session = Sessions(data_dir=tmp_path / "data").create(export, providers[name], tmp_path / "vault", {})
    before = set(happened[: happened.index("named session.json")])
    place = session.phase / "extract/input"
    wanted = {str(path) for path in place.rglob("*")} | {str(each) for each in (place, *list(place.parents)[:4])}
    assert wanted <= before, wanted - before


@pytest.mark.parametrize(
    ("harm", "name"),
    [
        *((harm, name) for harm in (cut, garbled) for name in ("items.jsonl", "index.jsonl")),
        (reworded, "items.jsonl"),
    ],
)
async def test_a_damaged_extract_is_noticed_and_done_anew(
    study: Study, tmp_path: Path, harm: Callable[[Path], None], name: str
) -> None:
    session, _ = await study.imported(export(tmp_path, 8), limit=2)
    before = (session.extracted / name).read_bytes()
    harm(session.extracted / name)
    assert (session.extracted / name).read_bytes() != before
    await study.desk.standing(session)
    row = await study.ended((await study.desk.resume(session)).run.id)
    stands = await study.desk.standing(session)
    if row.status == "FAILED":  # it was as long as before: who came to the bad line has noticed
        assert stands.error is not None
        assert "resume" in stands.error
        assert (stands.status, stands.error_count) == ("CRASHED", 0), "no conversation has failed"
        await study.resumed(session)
        stands = await study.desk.standing(session)
    assert (stands.status, stands.success_count, stands.error_count) == ("COMPLETED", 8, 0)
    assert asked(study) == 8, "nothing is asked for again"
    agreed(study, session)


def long_and_short(tmp_path: Path) -> Path:
    messages = [said("user" if n % 2 == 0 else "assistant", f"part {n} " + "word " * 60) for n in range(6)]
    return written(tmp_path / "e" / "conversations.json", [chatgpt(1, *messages, title="Long"), chatgpt(2)])


async def test_a_piece_that_the_log_has_lost_is_not_asked_about_again_and_its_whole_is_merged_anew(
    study: Study, tmp_path: Path
) -> None:
    session, told = await study.imported(long_and_short(tmp_path), chunk=True, chunk_size=1000)
    before, [entry] = asked(study), [entry for entry in entries_of(session.extracted) if entry.parts]
    kept = [line for line in lines(session.stage_log) if line.get("item_id") != entry.parts[0]]
    session.stage_log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    stands = await study.desk.standing(session)
    assert stands.pending_count == 2, "the piece, and the whole that it belongs to"
    async with elsewhere(study, session) as (there, moved):
        await there.resumed(moved)
        assert (await there.desk.standing(moved)).success_count == told["success"]
        assert asked(study) == before, "its note lies in what transform put out"


async def test_a_piece_that_is_made_again_says_the_same_as_the_whole(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(long_and_short(tmp_path), chunk=True, chunk_size=1000)
    [entry] = [entry for entry in entries_of(session.extracted) if entry.parts]
    shutil.rmtree(session.transformed.parent)
    for path in (session.stage_log, session.loaded):  # as if the whole had never been written
        kept = [line for line in lines(path) if line.get("item_id") != entry.item_id or line.get("stage") == "extract"]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    study.model.answer = lambda prompt: knowledge(prompt).replace("In short.", "Now otherwise.")
    async with elsewhere(study, session) as (there, moved):
        await there.resumed(moved)
        notes = [text for text in study.notes().values() if "Long" in text]
        assert len(notes) == len(entry.parts) + 1
        assert all("Now otherwise." in text for text in notes)


async def test_without_log_and_database_what_the_stages_put_out_is_enough(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 6), limit=4)
    session.stage_log.unlink()
    async with elsewhere(study, session) as (there, moved):
        told = await there.resumed(moved)
        assert (told["success"], told["failed"], told["skipped"]) == (2, 0, 4)
    assert asked(study) == 6


async def test_a_log_that_was_written_anew_is_warned_of_nowhere(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, _ = await study.imported(export(tmp_path, 6), limit=3)
    cut(session.stage_log)
    session.stage_log.write_bytes(session.stage_log.read_bytes().rpartition(b"\n")[0] + b"\n")
    await study.resumed(session)
    assert not [line for line in caplog.messages if "passed over" in line]
    assert len(records(session, "load")) == 6


@pytest.mark.parametrize("event", ["asked", "intended"])
async def test_a_line_of_a_batch_that_is_lost_pays_for_nothing_twice(
    study: Study, tmp_path: Path, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 3))
    told = session.batches_log.read_text().splitlines(keepends=True)
    spoiled = ["#" + line[1:] if f'"event":"{event}"' in line else line for line in told]
    session.batches_log.write_text("".join(spoiled))
    last(study.model).plan = Plan()
    async with elsewhere(study, session) as (there, moved):
        if event == "asked":
            with pytest.raises(BatchesDamaged, match="has lost the line"):
                await there.desk.resume(moved)
            moved.batches_log.write_text("".join(told))
        assert (await there.resumed(moved))["success"] == 3
    assert sizes(study.model) == [3]


async def test_a_lost_line_of_a_batch_that_is_settled_or_in_the_journal_stops_nobody(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_POLL_SEC", "0.05")
    study.model.plan = Plan(polls=FOREVER)
    session = await waiting(study, export(tmp_path, 3))
    first = session.batches_log.read_text().partition("\n")[0]
    session.batches_log.write_text(session.batches_log.read_text().replace(first, "#" + first[1:]))
    assert (await study.desk.standing(session)).owed_batches == list(study.model.batches)
    last(study.model).plan = Plan()
    await study.work()
    [run] = session.about["runs"]
    assert (await study.ended(run)).status == "COMPLETED"
    assert sizes(study.model) == [3]
    session.batches_log.write_text(session.batches_log.read_text().replace('"event":"asked"', '"event":"gone"'))
    async with elsewhere(study, session) as (there, moved):
        assert (await there.resumed(moved))["skipped"] == 3
        assert (await there.desk.standing(moved)).owed_batches == []


async def test_a_bad_line_of_the_extract_costs_no_answer_that_is_under_way(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(export(tmp_path, 12), limit=2)
    path = session.extracted / "items.jsonl"
    told = path.read_bytes().splitlines(keepends=True)
    told[2] = b"#" * (len(told[2]) - 1) + b"\n"
    path.write_bytes(b"".join(told))
    row = await study.ended((await study.desk.resume(session)).run.id)
    stands = await study.desk.standing(session)
    assert row.status == "FAILED"
    assert (stands.success_count, stands.pending_count, stands.total_count) == (11, 1, 12)
    assert (await study.resumed(session))["success"] == 1
    assert asked(study) == 12, "nothing is asked for again"


async def test_an_import_that_is_stopped_while_it_reads_its_export_is_not_completed(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(session: Session, tell: Callable[[int], None]) -> dict[str, int]:
        loop.call_soon_threadsafe(began.set)
        number = 0
        while True:
            tell(number := number + 1)

    with monkeypatch.context() as patch:
        patch.setattr("tsuzuki.apps.notes.flows.extracted", slowly)
        started = await study.desk.start(study.asked(export(tmp_path, 3)))
        session = study.desk.sessions.find(started.session_id)
        async with asyncio.timeout(60):
            await began.wait()
            await study.desk.cancel(session)
            await study.ended(started.run.id)
    stands = await study.desk.standing(session)
    assert (stands.status, stands.total_count) == ("PARTIAL", 0)
    assert (await study.resumed(session))["success"] == 3


def logged(path: Path, *told: tuple[str, str, int | None]) -> CompletedItemsCache:
    """Writes a log of a whole `p` and its chunks, by item, status and chunk; gives what it says of load."""
    head = {"timestamp": "2026-01-26T10:00:00+00:00", "session_id": "20260126_100000", "filename": "c.json",
            "stage": "load", "step": "write_file", "timing_ms": 1}  # fmt: skip
    with path.open("wb") as file:
        file.write(b"\xef\xbb\xbf")  # as some editors save it
        for item_id, status, chunk in told:
            piece = {} if chunk is None else {"is_chunked": True, "parent_item_id": "p", "chunk_index": chunk}
            file.write(json.dumps({**head, "item_id": item_id, "status": status, **piece}).encode() + b"\n")
    return CompletedItemsCache.from_jsonl(path, StageType.LOAD)


def test_a_whole_is_done_only_where_all_its_chunks_are(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first, second, whole = ("c1", "success", 0), ("c2", "success", 1), ("p", "success", None)
    assert logged(path, first, second, whole).items == {"c1", "c2", "p"}
    assert logged(path, first, ("c2", "failed", 1), whole).items == {"c1"}
    assert logged(path, second, whole).items == {"c2"}, "the first chunk is missing"
    assert logged(path, first, second, whole, second).items == {"c1", "c2"}, "a chunk that was made anew"
