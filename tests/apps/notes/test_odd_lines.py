"""Lines of the log that are odd, late or half: each reader passes them over, and tells what whoever goes on does."""

import json
from pathlib import Path

import pytest

from tests.apps.notes.conftest import Study
from tests.apps.notes.test_moved_batches import elsewhere
from tests.apps.notes.test_sessions import asked, export
from tsuzuki.apps.notes import CompletedItemsCache, StageType, looking
from tsuzuki.apps.notes.completed import lines_in
from tsuzuki.apps.notes.stagelog import Lines

ODD = [
    '{"stage":"transform","status":"success","item_id":{}}',
    '{"stage":["load"],"status":"success","item_id":"claude-0000"}',
    '{"stage":"load","status":{},"item_id":"claude-0000"}',
    '{"item_id":"claude-0000"}',
    "[" * 100_000,
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
async def test_an_odd_line_is_named_and_stops_nobody_also_where_the_database_is_gone(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture, odd: str
) -> None:
    session, _ = await study.imported(export(tmp_path, 4), limit=2)
    number = len(session.stage_log.read_text().splitlines()) + 1
    for path in (session.stage_log, session.error_log):
        with path.open("a") as log:
            log.write(odd + "\n")
    async with elsewhere(study, session) as (there, moved):
        stands = await there.desk.standing(moved)
        assert (stands.success_count, stands.error_count, stands.pending_count) == (2, 0, 2)
        assert (looking.failed_items(moved), len(looking.items(moved))) == ([], 4)
        assert [each["stage"] for each in looking.traced(moved, "claude-0000")["records"]] == [
            "extract", "transform", "load",
        ]  # fmt: skip
        assert (await there.resumed(moved))["success"] == 2
    assert asked(study) == 4, "good lines still count"
    assert f"line {number} is passed over" in caplog.text


async def test_a_failure_told_after_the_note_was_written_is_told_nowhere_as_resume_passes_it_over(
    study: Study, tmp_path: Path
) -> None:
    session, _ = await study.imported(export(tmp_path, 3))
    late = {**json.loads(session.stage_log.read_text().splitlines()[-1]), "stage": "transform", "status": "failed"}
    with session.stage_log.open("a") as log:
        log.write(json.dumps(late) + "\n")
    stands = await study.desk.standing(session)
    assert (stands.status, stands.success_count, stands.error_count, stands.retryable_count) == ("COMPLETED", 3, 0, 0)
    assert looking.failed_items(session) == []
    assert (await study.resumed(session))["skipped"] == 3
    assert asked(study) == 3


async def test_a_line_that_is_being_written_is_no_bad_one_and_neither_is_its_rest(
    study: Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, _ = await study.imported(export(tmp_path, 2))
    told = session.stage_log.read_bytes()
    session.stage_log.write_bytes(told[:-20])
    with session.stage_log.open("rb") as watched, session.stage_log.open("ab") as log:
        seen = lines_in(watched)
        first = [next(seen) for _ in range(told.count(b"\n"))]
        assert (await study.desk.standing(session)).success_count == 1
        assert looking.items(session)[1]["state"] == "pending"
        log.write(told[-20:])
        log.flush()
        assert (b"".join(first), list(seen)) == (told[:-20], []), "its rest is no line of its own"
    assert (await study.desk.standing(session)).success_count == 2
    assert not caplog.records


def test_half_a_line_that_stays_is_told_of_by_whoever_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"stage":"load","status":"success","item_id":"a"}\n{"stage":"lo')
    assert CompletedItemsCache.from_jsonl(path, StageType.LOAD).items == {"a"}
    assert "line 2 is passed over" in caplog.text, "who asks for it is told"
    with Lines(path) as lines:
        lines.append({"stage": "load", "status": "success", "item_id": "b"})
    assert CompletedItemsCache.from_jsonl(path, StageType.LOAD).items == {"a", "b"}
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert CompletedItemsCache.from_jsonl(path, StageType.LOAD).items == {"a", "b"}, (
        "a whole line counts without its end"
    )
