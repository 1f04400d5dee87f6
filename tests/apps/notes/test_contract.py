"""The words and files of the requirement, one by one: items, records, the cache, statistics, contexts."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsuzuki.apps.notes import (
    CompletedItemsCache,
    ItemStatus,
    Phase,
    PhaseStatistics,
    PhaseStatus,
    ProcessingItem,
    Stage,
    StageContext,
    StageLogRecord,
    StageType,
)
from tsuzuki.apps.notes.stagelog import Lines, Place, error_detail, line_of
from tsuzuki.apps.notes.times import checked_session_id, session_id_at
from tsuzuki.errors import BadUsage

CHUNK = {"is_chunked": True, "chunk_index": 0, "total_chunks": 2, "parent_item_id": "p", "chunk_filename": "p_001.md"}
AT = Place("20260126_100000", StageType.TRANSFORM, "extract_knowledge")


def line(item_id: str = "abc-123", stage: str = "transform", status: str = "success", **more: Any) -> str:
    record = {
        "timestamp": "2026-01-26T10:00:00+00:00", "session_id": "20260126_100000", "filename": "conv.json",
        "stage": stage, "step": "extract_knowledge", "timing_ms": 5000, "status": status, "item_id": item_id, **more,
    }  # fmt: skip
    return json.dumps(record)


def log(tmp_path: Path, *content: str) -> Path:
    path = tmp_path / "pipeline_stages.jsonl"
    path.write_text("".join(f"{each}\n" for each in content), encoding="utf-8")
    return path


# ProcessingItem


def test_an_item_has_the_fields_and_states_of_the_requirement() -> None:
    item = ProcessingItem(
        item_id="a", source_path=Path("conv.json"), current_step="", status=ItemStatus.PENDING, metadata={},
        content=None, transformed_content=None, output_path=None, error=None,
    )  # fmt: skip
    assert item.source_path == Path("conv.json")
    assert [status.name for status in ItemStatus] == ["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "SKIPPED"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # how busy the machine is says nothing
@given(st.text(min_size=1), st.text(), st.none() | st.text(), st.dictionaries(st.text(), st.integers()))
def test_an_item_survives_being_written_down(
    item_id: str, step: str, content: str | None, more: dict[str, int]
) -> None:
    more.pop("is_chunked", None)
    item = ProcessingItem(item_id, Path("a/b.json"), step, ItemStatus.FAILED, more, content, None, Path("x.md"), "e")
    assert ProcessingItem.from_dict(json.loads(json.dumps(item.to_dict()))) == item


@pytest.mark.parametrize(
    "wrong",
    [{"chunk_index": None}, {"total_chunks": None}, {"parent_item_id": ""}, {"chunk_index": 2}, {"chunk_index": -1}],
)
def test_a_chunk_says_which_piece_of_what_it_is(wrong: dict[str, Any]) -> None:
    assert ProcessingItem("p_1", Path("x"), metadata=dict(CHUNK)).is_chunk
    with pytest.raises(BadUsage, match="chunk"):
        ProcessingItem("p_1", Path("x"), metadata={**CHUNK, **wrong})


# StageLogRecord and error_details.jsonl


def test_a_record_has_the_keys_of_the_requirement_and_none_that_is_not_set() -> None:
    item = ProcessingItem("abc-123", Path("deep/conv.json"), metadata={"file_id": "sha256:0"})
    plain = line_of(item, AT, "success", 5.0, before_chars=10000, after_chars=3000)
    assert plain.pop("timestamp").endswith("+00:00")
    assert plain == {
        "session_id": "20260126_100000", "filename": "conv.json", "stage": "transform", "step": "extract_knowledge",
        "timing_ms": 5000, "status": "success", "item_id": "abc-123", "file_id": "sha256:0", "before_chars": 10000,
        "after_chars": 3000, "diff_ratio": 0.3,
    }  # fmt: skip
    chunk = line_of(
        ProcessingItem("p_1", Path("x"), metadata=dict(CHUNK)), AT, "failed", 0.0, before_chars=0, after_chars=1
    )
    assert (chunk["is_chunked"], chunk["parent_item_id"], chunk["chunk_index"]) == (True, "p", 0)
    assert "diff_ratio" not in chunk
    assert StageLogRecord.from_dict(chunk).to_dict() == chunk


@pytest.mark.parametrize("wrong", [{"stage": "other"}, {"status": "done"}, {"timing_ms": -1}, {"timing_ms": 0.5}])
def test_a_record_says_nothing_else(wrong: dict[str, Any]) -> None:
    plain = json.loads(line(file_id="0123456789ab"))  # an old log has twelve digits
    assert StageLogRecord.from_dict(plain).file_id == "0123456789ab"
    with pytest.raises(ValueError, match=r"record|other"):
        StageLogRecord.from_dict({**plain, **wrong})


def test_lines_are_whole_unescaped_and_follow_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": "half')
    with Lines(path) as written:
        written.append({"text": "二行\n目", "emoji": "🦦"})
    assert path.read_text(encoding="utf-8") == '{"a": "half\n{"text":"二行\\n目","emoji":"🦦"}\n'


def test_a_failure_is_told_with_its_class_its_traceback_and_no_secret() -> None:
    with pytest.raises(ValueError, match="Expecting") as raised:
        json.loads("{api_key=sk-0123456789abcdefgh")
    told = error_detail(ProcessingItem("def-456", Path("x"), metadata={"title": "t"}), AT, raised.value)
    assert list(told) == [
        "timestamp", "session_id", "item_id", "stage", "step", "error_type", "error_message", "backtrace", "metadata",
    ]  # fmt: skip
    assert told["error_type"] == "JSONDecodeError"
    assert "Traceback" in told["backtrace"]
    secret = error_detail(ProcessingItem("x", Path("x")), AT, RuntimeError("key sk-0123456789abcdefgh refused"))
    assert "0123456789" not in json.dumps(secret)


@pytest.mark.parametrize("wrong", ["20261301_000000", "20260230_100000", "2026", "../../etc", "20260126_100000x"])
def test_a_session_id_is_a_moment(wrong: str) -> None:
    assert checked_session_id(session_id_at(1769421600)) == "20260126_100000"
    with pytest.raises(BadUsage, match="session id"):
        checked_session_id(wrong)


# CompletedItemsCache


def test_the_cache_has_successes_of_its_stage_alone(tmp_path: Path) -> None:
    path = log(
        tmp_path, line("a"), line("b", status="failed"), line("c", status="skipped"), line("d", stage="load"), line("e")
    )
    cache = CompletedItemsCache.from_jsonl(path, StageType.TRANSFORM)
    assert (cache.items, cache.stage, len(cache)) == ({"a", "e"}, StageType.TRANSFORM, 2)
    assert cache.is_completed("a")
    assert not cache.is_completed("d")
    assert CompletedItemsCache.from_jsonl(path, StageType.LOAD).items == {"d"}
    with pytest.raises(ValueError, match="extract"):
        CompletedItemsCache.from_jsonl(path, StageType.EXTRACT)


def test_the_latest_record_decides(tmp_path: Path) -> None:
    path = log(tmp_path, line("a"), line("a", status="failed"), line("b", status="failed"), line("b"))
    assert CompletedItemsCache.from_jsonl(path, StageType.TRANSFORM).items == {"b"}


def test_bad_lines_are_named_and_the_good_ones_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = log(tmp_path, line("a"), "{half", "", "   ", '{"stage": "transform"}', "[1]", line("b", status="failed"))
    path.write_bytes(path.read_bytes() + line("川獺").encode() + b"\n" + '{"item_id": "川'.encode()[:-1])
    with caplog.at_level(logging.WARNING, logger="tsuzuki.notes"):
        cache = CompletedItemsCache.from_jsonl(path, StageType.TRANSFORM)
    assert cache.items == {"a", "川獺"}
    named = [number for number in range(1, 12) if f"line {number} " in caplog.text]
    assert named == [2, 5, 6, 9]


def test_a_file_that_cannot_be_read_warns_and_one_that_is_missing_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tsuzuki.notes"):
        assert len(CompletedItemsCache.from_jsonl(tmp_path / "missing", StageType.LOAD)) == 0
        assert not caplog.records
        assert len(CompletedItemsCache.from_jsonl(tmp_path, StageType.LOAD)) == 0
        (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00\x80")
        assert len(CompletedItemsCache.from_jsonl(tmp_path / "bytes", StageType.LOAD)) == 0
    assert len(caplog.records) == 2


def test_a_parent_is_done_when_all_its_chunks_are(tmp_path: Path) -> None:
    def chunk(number: int, status: str = "success") -> str:
        return line(f"p_{number}", status=status, is_chunked=True, parent_item_id="p", chunk_index=number)

    def cached(*content: str) -> CompletedItemsCache:
        return CompletedItemsCache.from_jsonl(log(tmp_path, *content), StageType.TRANSFORM)

    assert not cached(chunk(0), chunk(1, "failed")).is_parent_completed("p", 2)
    assert not cached(chunk(0)).is_parent_completed("p", 2)
    assert cached(chunk(0), chunk(1)).is_parent_completed("p", 2)
    assert cached(chunk(0), chunk(1)).items == {"p_0", "p_1"}
    assert cached(chunk(0), chunk(1), line("p")).is_completed("p")
    assert not cached(chunk(0), chunk(1), line("p"), chunk(1, "failed")).is_completed("p")


# Statistics and contexts


@pytest.mark.parametrize(
    ("counts", "status", "told"),
    [
        ((5, 2, 3, 10), PhaseStatus.PARTIAL, "5 success, 2 failed, 3 skipped"),
        ((5, 0, 0, 5), PhaseStatus.COMPLETED, "5 success, 0 failed"),
        ((0, 4, 0, 4), PhaseStatus.FAILED, "0 success, 4 failed"),
        ((1, 9, 0, 10), PhaseStatus.PARTIAL, "1 success, 9 failed"),
        ((0, 0, 7, 7), PhaseStatus.COMPLETED, "0 success, 0 failed, 7 skipped"),
        ((0, 0, 0, 0), PhaseStatus.COMPLETED, "0 success, 0 failed"),
        ((3, 0, 0, 10), PhaseStatus.PARTIAL, "3 success, 0 failed"),
    ],
)
def test_statistics_say_how_a_phase_ended(counts: tuple[int, int, int, int], status: PhaseStatus, told: str) -> None:
    figures = PhaseStatistics(*counts)
    assert (figures.status, str(figures)) == (status, told)


@pytest.mark.parametrize(
    ("counts", "passed_over", "status"),
    [
        ((0, 2, 3, 5), 3, PhaseStatus.FAILED),
        ((0, 2, 3, 5), 2, PhaseStatus.PARTIAL),
        ((1, 2, 3, 6), 3, PhaseStatus.PARTIAL),
        ((0, 2, 3, 9), 3, PhaseStatus.PARTIAL),
        ((0, 0, 3, 3), 3, PhaseStatus.COMPLETED),
    ],
)
def test_what_was_empty_is_no_success_of_a_phase(
    counts: tuple[int, int, int, int], passed_over: int, status: PhaseStatus
) -> None:
    assert PhaseStatistics(*counts).ended(passed_over=passed_over) is status


def test_a_limit_counts_what_is_not_done(tmp_path: Path) -> None:
    ids = [f"i{number}" for number in range(10)]
    phase, stage = Phase("20260126_100000"), Stage(StageType.TRANSFORM)
    assert StageContext(phase, stage, limit=3).chosen(ids) == ids[:3]
    assert StageContext(phase, stage, debug_mode=True).completed_cache is None
    cache = CompletedItemsCache.from_jsonl(log(tmp_path, *map(line, [*ids[:5], "gone"])), StageType.TRANSFORM)
    context = StageContext(phase, stage, limit=3, completed_cache=cache)
    assert context.chosen(ids) == ids[5:8]
