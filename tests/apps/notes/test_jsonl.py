"""JSONL from whatever wrote it, and conversations that come more than once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, records
from tests.apps.notes.exports import claude, written
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.refusals import NotUtf8
from tsuzuki.apps.notes.sources.conversation import Conversation, Unreadable
from tsuzuki.apps.notes.wanted import previewed


def read(path: Path, *lines: Any) -> list[Conversation | Unreadable]:
    path.write_text("\n".join(map(json.dumps, lines)))
    return list(sources.conversations(path, "jsonl"))


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-8"])
def test_a_byte_order_mark_costs_no_conversation(tmp_path: Path, mark: str) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "水"}\n{"id": "b", "text": "x"}\n', encoding=mark)
    assert [each.id for each in sources.conversations(tmp_path / "x.jsonl", "jsonl")] == ["a", "b"]
    (tmp_path / "x.jsonl").write_text("", encoding=mark)
    assert list(sources.conversations(tmp_path / "x.jsonl", "jsonl")) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_told_of_once_and_by_its_name(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "水"}\n' * 3, encoding=encoding)
    (failed,) = sources.conversations(tmp_path / "x.jsonl", "jsonl")
    assert isinstance(failed, Unreadable)
    assert isinstance(failed.error, NotUtf8)
    assert failed.id == "x.jsonl"


def test_an_id_may_be_a_whole_number(tmp_path: Path) -> None:
    given = (1, -7, 0, 10**30, True, 1.5, [1], "01")
    ids = [each.id for each in read(tmp_path / "x.jsonl", *({"id": each, "text": f"{each}"} for each in given))]
    assert ids[:3] == ["1", "-7", "0"]
    assert ids[-1] == "01"
    assert all(len(each) == 32 for each in ids[4:-1]), "what is no id is made of what is said"
    assert len(set(ids)) == len(given)


def test_a_text_that_is_no_text_fails_with_its_line_and_none_at_all_is_empty(tmp_path: Path) -> None:
    odd: list[Any] = [5, 0, False, ["a"], {}]
    wrong = [{"text": each} for each in odd]
    found = read(tmp_path / "x.jsonl", *wrong, {"messages": [{"role": "user", "text": 7}]})
    assert [each.id for each in found if isinstance(each, Unreadable)] == [f"x.jsonl:{at}" for at in range(1, 7)]
    told = read(tmp_path / "x.jsonl", {"text": None}, {"messages": []}, {"messages": [{"content": None}]})
    assert [each.blank for each in told if isinstance(each, Conversation)] == [True] * 3


async def test_what_comes_more_than_once_is_made_once_and_told_of_before_and_after(
    study: Study, tmp_path: Path
) -> None:
    same = claude(1)
    path = written(tmp_path / "conversations.json", [same, claude(2), same, {**same, "name": "another title"}])
    before = previewed(study.asked(path))
    assert (before.items, before.skipped) == (2, {"repeated": 2})
    session, told = await study.imported(path)
    assert (told["success"], told["skipped"], told["failed"]) == (2, 2, 0)
    skipped = [line for line in records(session, "extract") if line["status"] == "skipped"]
    assert {line["skipped_reason"] for line in skipped} == {"repeated"}
    assert len({line["item_id"] for line in skipped}) == 2
