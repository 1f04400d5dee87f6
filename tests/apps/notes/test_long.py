"""Long conversations, hostile ones, and JSON that is no list: read within bounds, or passed over alone."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.exports import chatgpt, claude, said, written
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.refusals import UnknownFormat
from tsuzuki.apps.notes.sources.conversation import Conversation, Unreadable

MEASURE = """
import resource, sys
from pathlib import Path
from tsuzuki.apps.notes.extracting import extract
from tsuzuki.apps.notes.sessions import Sessions
sessions = Sessions(data_dir=Path(sys.argv[2]))
session = sessions.create(Path(sys.argv[1]), "chatgpt", None, {"chunk": True, "chunk_size": 25_000})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = extract(session)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, counts["PENDING"], counts["FAILED"])
"""
JAPANESE, ENGLISH = "川獺は川に住む。\n", "The otter swims. "


def measured(export: Path) -> tuple[int, int, int]:
    """Extracts in a process of its own; gives how many kilobytes that took, and how many items there are and failed."""
    command = [sys.executable, "-c", MEASURE, str(export), str(export.parent / "data")]
    taken, pending, failed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(taken), int(pending), int(failed)


@pytest.mark.parametrize(
    "texts",
    [[JAPANESE * 190_000], [JAPANESE * 560_000], [ENGLISH * 300_000] * 2, ["🦦" + ENGLISH * 300_000] * 2],
    ids=["5 MB of Japanese", "5 million Japanese letters", "5 MB twice", "5 MB twice with an otter"],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_messages_of_five_megabytes_are_read_in_little_memory(tmp_path: Path, texts: list[str], escaped: bool) -> None:
    path = tmp_path / "conversations.json"
    long = chatgpt(1, *(said("assistant", text) for text in texts))
    path.write_text(json.dumps([long, chatgpt(2)], ensure_ascii=escaped), encoding="utf-8")
    taken, pending, failed = measured(path)
    assert pending > sum(map(len, texts)) // 25_000
    assert failed == 0
    assert taken < 110_000


@pytest.mark.parametrize("tiny", ["{},", "[],", '{"":0},', "257,", "1.5,", '"ab",', '{"a":{"b":[1.5]}},'])
def test_a_conversation_of_many_tiny_things_fails_alone_before_it_takes_much(tmp_path: Path, tiny: str) -> None:
    path = tmp_path / "conversations.json"
    hostile = f'{{"mapping": {{}}, "title": "Tiny", "x": [{tiny * (14_000_000 // len(tiny))}0]}}'
    path.write_text(f"[{hostile}, {json.dumps(chatgpt(2))}]")
    taken, pending, failed = measured(path)
    assert (pending, failed) == (1, 1)
    assert taken < 110_000


def test_a_conversation_that_nests_too_deeply_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    deep = '{"title": "Deep", "mapping": ' + '{"a": ["]"' + ', {"a": [1' * 100_000 + "]}" * 100_001 + "}"
    for before in ("", " " * 300_000):
        path.write_text(f"[{json.dumps(chatgpt(1))}, {before}{deep}, {json.dumps(chatgpt(3))}]")
        first, failed, last = sources.conversations(path, sources.recognized(path))
        assert isinstance(first, Conversation)
        assert isinstance(last, Conversation)
        assert isinstance(failed, Unreadable)
        assert failed.title == "Deep"
        assert "nested too deeply; save" in str(failed.error)
    path.write_text(f"[{deep}]")
    assert sources.recognized(path) == "chatgpt"


@pytest.mark.parametrize(
    "beside", [{}, {"version": 1, "user": {"name": "[{"}}, {"conversations_count": 2, "x": "y" * 600_000}]
)
def test_the_conversations_of_an_object_are_read(tmp_path: Path, beside: dict[str, Any]) -> None:
    path = tmp_path / "conversations.json"
    for whole in (
        {**beside, "conversations": [claude(1), claude(2)]},
        {"conversations": [claude(1), claude(2)], **beside},
    ):
        path.write_text(json.dumps(whole, indent=1))
        assert sources.recognized(path) == "claude"
        assert [each.id for each in sources.conversations(path, "claude")] == ["claude-0001", "claude-0002"]
    path.write_text(json.dumps({**beside, "conversations": []}))
    assert list(sources.conversations(path, "claude")) == []


@pytest.mark.parametrize(("whole", "has"), [({}, "{}"), ({"b": [1], "a": 2}, "b, a")])
def test_an_object_without_conversations_is_of_no_known_format(tmp_path: Path, whole: Any, has: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(UnknownFormat, match=f"has none as `conversations`, but: {has}"):
        sources.recognized(path)
    with pytest.raises(UnknownFormat, match="neither `mapping`"):
        sources.recognized(written(path, [{}]))
