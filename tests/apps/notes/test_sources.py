"""Exports read one conversation at a time: what people saw of each, whatever else is in the file, and no trap."""

import io
import json
import os
import tracemalloc
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.apps.notes.exports import RIGHT_TO_LEFT, chatgpt, claude, nasty_chatgpt, nasty_claude, said, written, zipped
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.chunking import chunks
from tsuzuki.apps.notes.refusals import BadExport, NoInput, UnknownFormat
from tsuzuki.apps.notes.sources import jsonstream
from tsuzuki.apps.notes.sources.conversation import Conversation, Message, Unreadable, transcript
from tsuzuki.apps.notes.sources.jsonstream import PIECE, PassedOver, elements
from tsuzuki.errors import BadUsage

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(path: Path, provider: str = "") -> list[Conversation | Unreadable]:
    return list(sources.conversations(path, sources.recognized(path, provider)))


def texts(path: Path) -> dict[str, str]:
    return {found.id: found.text for found in read(path) if isinstance(found, Conversation)}


# JSON in pieces


class Drip(io.BytesIO):
    """Gives as little at once as a slow connection does."""

    step = 7

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, self.step) if size and size > 0 else self.step)


@given(st.lists(JSON, max_size=6), st.integers(1, 9), st.booleans())
@example([0.5, -1e-30, 12, -0.0, 1e300], 3, True)
@settings(max_examples=60, deadline=None)
def test_an_array_is_read_element_by_element_however_it_arrives(values: list[Any], step: int, ascii_only: bool) -> None:
    drip = Drip(json.dumps(values, ensure_ascii=ascii_only, indent=step % 3 or None).encode("utf-8", "surrogatepass"))
    drip.step = step
    try:
        found = list(elements(drip, "x.json"))
    except BadExport:
        assert not ascii_only, "only half of a pair, which no UTF-8 has, is refused"
        return
    assert json.dumps(found) == json.dumps(values)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"), ("7", "begins with"), ("[1, 2", "ends in the middle"), ("[1,,2]", "Expecting value"),
        ("[1 2]", "stands where"), ('["abc', "ends in the middle"), ("[1]x", "follows the end"),
        ('[{"a": 1}, {"a" 2}]', "delimiter"), ("[" * 100_000, "middle"),
        ('{"a": 1', "ends in the middle"), ('{"a" 1}', "stands where :"), ('{"a": 1 "b": 2}', "stands where ,"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_of_with_its_place(text: str, why: str) -> None:
    with pytest.raises(BadExport, match=f"x.json is broken at character .*({why})"):
        list(elements(io.BytesIO(text.encode()), "x.json"))


def test_a_mistake_early_in_a_large_file_does_not_make_it_read_the_rest() -> None:
    file = io.BytesIO(b'[{"a" 1}, ' + b'"x",' * PIECE * 4 + b"1]")
    with pytest.raises(BadExport, match="delimiter"):
        list(elements(file, "x.json"))
    assert file.tell() <= 2 * PIECE


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    with path.open("w") as file:
        file.write("[" + ",".join(json.dumps(claude(number)) for number in range(15_000)) + "]")
    assert path.stat().st_size > 4_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in sources.conversations(path, "claude")) == 15_000
        assert tracemalloc.get_traced_memory()[1] < 3_500_000
    finally:
        tracemalloc.stop()


@given(st.lists(JSON, max_size=6), st.integers(1, 90), st.booleans(), st.booleans())
@example(["\\\\u3042 \\u3042 \u3042\u3044\U0001f9a6 \u00e9\\" * 20], 1, False, True)
@example(["\\\\u3042 \\u3042 \u3042\u3044\U0001f9a6 \u00e9\\" * 20], 7, False, False)
@settings(max_examples=100, deadline=None)
def test_an_element_that_is_too_long_is_passed_over_whatever_it_holds(
    values: list[Any], step: int, wide: bool, ascii_only: bool
) -> None:
    text = json.dumps(values, indent=4 if wide else None, ensure_ascii=ascii_only)
    drip = Drip(text.encode("utf-8", "replace"))
    drip.step = step
    most = 4_000 if step % 2 else 10**9
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jsonstream, "MOST", most)
        patched.setattr(jsonstream, "PIECE", 44)
        found = list(elements(drip, "x.json"))
    assert len(found) == len(values)
    for element, value in zip(found, json.loads(text.encode("utf-8", "replace")), strict=True):
        if isinstance(element, PassedOver):
            assert not element.beginning or list(element.beginning) == list(value)[: len(element.beginning)]
            assert most == 4_000
        else:
            assert json.dumps(element) == json.dumps(value)
            assert 3 * len(json.dumps(value, ensure_ascii=False)) <= most + 3 * 2 * (44 + step)


@pytest.mark.parametrize("made", [claude, chatgpt])
def test_a_conversation_that_is_too_long_fails_alone_and_takes_little_memory(tmp_path: Path, made: Any) -> None:
    long = json.dumps(made(2, title="Far too long", name="Far too long")).replace("They eat", r"\" \\ [{ " * 5_000_000)
    path = tmp_path / "conversations.json"
    path.write_text(f"[{json.dumps(made(1))}, {long}, {json.dumps(made(3))}]")
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    try:
        first, failed, last = read(path)
        assert tracemalloc.get_traced_memory()[1] < 90_000_000
    finally:
        tracemalloc.stop()
    assert isinstance(first, Conversation)
    assert isinstance(last, Conversation)
    assert isinstance(failed, Unreadable)
    assert (failed.id, failed.title) == ("conversations.json:2", "Far too long")
    assert "長すぎます" in str(failed.error)
    assert "more than 120 MB of memory; save what you need" in str(failed.error)
    path.write_text(f"[{long}]")
    assert sources.recognized(path) == ("claude" if made is claude else "chatgpt")
    path.write_text(f"[{long[:-9]}")
    with pytest.raises(BadExport, match="ends in the middle"):
        read(path, "chatgpt")


# ChatGPT and Claude


def test_what_people_saw_of_chatgpt_is_read_and_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", nasty_chatgpt())
    found = texts(path)
    assert found["gpt-0001"] == "**User**: first\n\n**Assistant**: the answer that was kept, and it is this one."
    assert found["gpt-0002"].startswith("**User**: [image]\nWhat is it?\n\n**User**: I spoke.")
    assert found["gpt-0003"] == (
        "**User**: Compute it, and tell me the number.\n\n**Assistant**: The number is 42, as everybody knows."
    )
    assert not any(word in text for text in found.values() for word in ("secret", "hidden words", "inner words"))
    assert found["empty"] == ""
    assert "\ufffd and a bell" in found["gpt-0008"]
    by_id = {each.id: each for each in read(path)}
    assert by_id["gpt-0001"].created == "2026-01-02"  # type: ignore[union-attr] # it is a conversation
    assert by_id["gpt-0005"].title == RIGHT_TO_LEFT
    assert by_id["gpt-0007"].title == "What do otters eat? (7)"
    broken = [each for each in by_id.values() if isinstance(each, Unreadable)]
    assert [each.title for each in broken] == ["broken"]


def test_a_branch_without_its_end_is_the_newest_and_a_circle_ends(tmp_path: Path) -> None:
    lost = chatgpt(1, said("user", "a"), said("assistant", "b"), current_node="gone")
    circle = chatgpt(2, said("user", "a"), said("assistant", "b"))
    circle["mapping"]["m0"]["parent"] = "m1"
    found = texts(written(tmp_path / "conversations.json", [lost, circle]))
    assert found["gpt-0001"] == "**User**: a\n\n**Assistant**: b"
    assert found["gpt-0002"] == "**User**: a\n\n**Assistant**: b"


def test_claude_is_read_by_blocks_or_text_with_its_attachments(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", nasty_claude())
    found = texts(path)
    assert found["claude-0001"] == "**User**: ask\n\n**Assistant**: The blocks say it, and they say it well.\n\n[image]"
    assert found["claude-0002"] == (
        "**User**: [attachment: notes.txt]\nwhat the attachment says, in full\n\n[attachment: cat.png]"
    )
    assert not any(word in text for text in found.values() for word in ("inner words", "tool words", "secret"))
    assert found["empty"] == ""
    unreadable = [each for each in read(path) if isinstance(each, Unreadable)]
    assert len(unreadable) == 2
    assert all(" / " in str(each.error) for each in unreadable), "in Japanese and English"
    titles = {each.id: each.title for each in read(path)}
    assert titles["claude-0003"] == "What do otters eat? (3)"
    assert titles["claude-0006"] == "a b: [c] #d"


def in_tree(name: str, parent: str | None, second: int = 0, **more: Any) -> dict[str, Any]:
    """A message of Claude in a newer export."""
    told = {} if parent is None else {"parent_message_uuid": parent}
    at = f"2026-03-01T10:00:{second:02d}Z"
    return {"uuid": name, "sender": "human", "text": name, "created_at": at, **told, **more}


NIL = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("messages", "current", "wanted"),
    [
        ([in_tree("a", NIL), in_tree("b", "a", 1), in_tree("c", NIL, 2), in_tree("d", "c", 3)], None, "c d"),
        ([in_tree("a", NIL), in_tree("new", "a", 9), in_tree("old", "a", 1)], None, "a new"),
        ([in_tree("a", NIL), in_tree("new", "a", 9), in_tree("old", "a", 1)], "old", "a old"),
        ([in_tree("a", NIL), in_tree("new", "a", 9), in_tree("old", "a", 1)], "gone", "a new"),
        ([in_tree("a", NIL), in_tree("b", "a", created_at="?"), in_tree("c", "a", created_at=None)], None, "a c"),
        ([in_tree("a", None), in_tree("b", "a", 1), in_tree("c", "a", 2)], None, "a c"),
        ([in_tree("a", None), in_tree("b", None), in_tree("c", "b", 2)], None, "a b c"),
        ([in_tree("a", None), in_tree("b", None)], None, "a b"),
        ([in_tree("a", "b"), in_tree("b", "a")], None, "a b"),
        ([in_tree("a", "b"), in_tree("b", "a"), in_tree("c", "b")], None, "a b c"),
        ([in_tree("a", NIL), in_tree("b", "gone", 1)], None, "a b"),
        ([in_tree("a", NIL), in_tree("a", NIL, text="again"), in_tree("b", "a")], None, "a again b"),
        ([in_tree("a", NIL), in_tree("b", ["odd"], 1)], None, "a b"),  # type: ignore[arg-type] # for that reason
    ],
)  # fmt: skip
def test_the_last_branch_of_claude_is_read_and_without_a_tree_everything(
    tmp_path: Path, messages: list[dict[str, Any]], current: str | None, wanted: str
) -> None:
    path = written(tmp_path / "conversations.json", [claude(1, *messages, current_leaf_message_uuid=current)])
    assert texts(path)["claude-0001"].replace("**User**: ", "").split() == wanted.split()


@given(st.lists(st.dictionaries(st.sampled_from(["uuid", "name", "created_at", "chat_messages", "mapping", "title",
    "current_node", "conversation_id", "create_time"]), JSON), max_size=4))  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_conversation_however_odd_stops_the_others(tmp_path: Path, odd: list[dict[str, Any]]) -> None:
    for provider, good in (("claude", claude(1)), ("chatgpt", chatgpt(1))):
        path = tmp_path / "odd" / "conversations.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps([*odd, good]))
        found = list(sources.conversations(path, provider))
        assert len(found) == len(odd) + 1
        assert isinstance(found[-1], Conversation)
        assert found[-1].title == "Otters 1"
        assert all(each.id and "\x00" not in each.title for each in found)


def test_shards_folders_and_zips_are_the_same(tmp_path: Path) -> None:
    first, second = json.dumps([claude(1)]), json.dumps([claude(2)])
    shards: dict[str, bytes | str] = {
        "conversations-000.json": first,
        "conversations-001.json": second,
        "chat.html": "x",
    }
    zipped(tmp_path / "a.zip", shards)
    zipped(tmp_path / "b.zip", {f"export/{name}": text for name, text in shards.items()})
    (tmp_path / "c").mkdir()
    for name, text in shards.items():
        (tmp_path / "c" / name).write_text(str(text))
    wanted = {"claude-0001", "claude-0002"}
    assert (
        texts(tmp_path / "a.zip").keys() == texts(tmp_path / "b.zip").keys() == texts(tmp_path / "c").keys() == wanted
    )
    only = written(tmp_path / "d" / "renamed.json", [chatgpt(1)])
    assert sources.recognized(only) == "chatgpt"


# Texts and lines


def test_markdown_and_text_are_read_by_their_paths(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a.md").write_text("---\ntitle: 'Front'\ncreated: 2025-03-04\n---\n# Heading\n\nText.")
    (folder / "b.txt").write_text("only text")
    (folder / "c.md").write_bytes(b"\xff\xfe broken")
    (folder / ".hidden.md").write_text("no")
    (tmp_path / "outside.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    found = {each.id: each for each in read(folder)}
    assert found.keys() == {"deep/a.md", "b.txt", "c.md"}
    front = found["deep/a.md"]
    assert isinstance(front, Conversation)
    assert (front.title, front.created, front.text) == ("Front", "2025-03-04", "# Heading\n\nText.")
    assert found["b.txt"].title == "b"
    assert isinstance(found["c.md"], Unreadable)


def test_a_zip_of_texts_leaves_out_what_a_folder_does(tmp_path: Path) -> None:
    hidden = (".git/HEAD.md", ".obsidian/plugins/x.md", "deep/.trash/y.txt", "__MACOSX/._a.md", ".z.md")
    archive = zipped(tmp_path / "x.zip", dict.fromkeys(("a.md", "deep/b.txt", *hidden), "text"))
    with zipfile.ZipFile(archive) as whole:
        whole.extractall(tmp_path / "x")
    assert {each.id for each in read(archive)} == {each.id for each in read(tmp_path / "x")} == {"a.md", "deep/b.txt"}


def test_jsonl_is_for_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = {"id": "a", "title": "T", "created_at": 0, "messages": [{"role": "user", "text": "hi"}]}
    path.write_text(f'{json.dumps(good)}\n\n{{"text": "plain"}}\n{{half\n[1]\n{json.dumps({"messages": [1]})}\n')
    first, second, *bad = read(path)
    assert isinstance(first, Conversation)
    assert (first.id, first.created, first.text) == ("a", "1970-01-01", "**User**: hi")
    assert isinstance(second, Conversation)
    assert (second.title, len(second.id)) == ("plain", 32)
    assert [each.id for each in bad] == ["x.jsonl:4", "x.jsonl:5", "x.jsonl:6"]


def test_a_line_of_jsonl_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"text": "a"}}\n{{"text": "{"x" * 17_000_000}"}}\n{{"text": "c"}}\n{"y" * 17_000_000}')
    first, long, third, last = read(path)
    assert [each.title for each in (first, third)] == ["a", "c"]
    assert [each.id for each in (long, last) if isinstance(each, Unreadable)] == ["x.jsonl:2", "x.jsonl:4"]


# What is refused


def test_formats_that_nobody_knows_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match=r"neither `mapping`.*but: answer, question"):
        read(written(tmp_path / "conversations.json", [{"question": 1, "answer": 2}]))
    with pytest.raises(UnknownFormat, match=r"no conversations\.json"):
        read(zipped(tmp_path / "x.zip", {"photo.png": b"x"}))
    with pytest.raises(NoInput, match=r"\[Error\] No input files"):
        read(tmp_path / "missing.zip")
    with pytest.raises(BadUsage, match="there is no provider 'gemini'"):
        read(tmp_path, "gemini")
    with pytest.raises(UnknownFormat):
        read(written(tmp_path / "c" / "conversations.json", [chatgpt(1)]), "claude")
    assert read(written(tmp_path / "e" / "conversations.json", [])) == []


def test_a_pipe_is_refused_and_nobody_waits_for_its_other_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "export.json")
    for pipe in (tmp_path / "export.json", Path("/dev/null")):
        with pytest.raises(BadExport, match=r"neither a file nor a folder"):
            sources.recognized(pipe)


@pytest.mark.parametrize(
    "name",
    ["../conversations.json", "/etc/conversations.json", "a/../../b.json", "C:\\x.json", "..\\x", "a\x01b", "x" * 2000],
)
def test_an_archive_with_a_name_that_leads_out_of_it_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
        archive.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(BadExport, match="refused"):
        read(path)


def test_bombs_and_broken_archives_are_refused(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {"conversations.json": b"[" + b" " * 70_000_000 + b"]"})
    with pytest.raises(BadExport, match="ZIP bomb"):
        read(bomb)
    whole = zipped(tmp_path / "whole.zip", {"conversations.json": json.dumps([claude(n) for n in range(200)])})
    (tmp_path / "half.zip").write_bytes(whole.read_bytes()[:2000])
    with pytest.raises(BadExport, match="broken ZIP"):
        read(tmp_path / "half.zip")
    spoiled = bytearray(whole.read_bytes())
    spoiled[500:600] = bytes(100)
    (tmp_path / "spoiled.zip").write_bytes(spoiled)
    with pytest.raises(BadExport, match="broken"):
        read(tmp_path / "spoiled.zip")
    with zipfile.ZipFile(tmp_path / "linked.zip", "w") as archive:
        link = zipfile.ZipInfo("conversations.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(BadExport, match="is a link"):
        read(tmp_path / "linked.zip")


# Chunks

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["user", "assistant", ""]), st.text(min_size=1, max_size=700)))


@given(MESSAGES, st.integers(200, 900))
@settings(max_examples=60, deadline=None)
def test_chunks_have_everything_in_order_and_none_is_too_long(messages: list[Message], size: int) -> None:
    made = list(chunks(messages, size))
    assert all(0 < len(transcript(piece)) <= size for piece in made)
    text, at = "".join(message.text for message in messages), 0
    for piece in made:
        whole = "".join(message.text for message in piece)
        overlaps = [n for n in range(min(3, len(piece))) if text.startswith("".join(m.text for m in piece[n:]), at)]
        assert overlaps, "after at most two messages of the piece before, it goes on"
        at += len("".join(message.text for message in piece[overlaps[0] :]))
        assert whole
    assert at == len(text)


def test_a_piece_begins_with_the_last_two_messages_of_the_one_before() -> None:
    messages = [Message("user", f"{number}" * 80) for number in range(9)]
    made = list(chunks(messages, 400))
    assert len(made) > 2
    for before, after in pairwise(made):
        assert after[:2] == before[-2:]


def test_a_message_before_that_does_not_fit_in_whole_is_there_with_its_end() -> None:
    long = [Message("user", f"{number} begins. " + "word " * 120 + f"{number} ends.") for number in range(4)]
    made = list(chunks(long, 1000))
    assert len(made) == 4
    for number, piece in enumerate(made[2:], start=2):
        assert piece[-1] == long[number]
        assert [message.text[0] for message in piece[:-1]] == ["…", "…"]
        assert [message.text[-7:] for message in piece[:-1]] == [f"{number - 2} ends.", f"{number - 1} ends."]
        assert len(transcript(piece)) <= 1000
    short = [Message("user", "short"), *long[:1], Message("user", "x" * 980), Message("user", "y" * 500)]
    assert [len(piece) for piece in chunks(short, 1000)] == [2, 1, 3], "one that fills a piece has nobody before it"


def test_claude_messages_that_name_no_parent_are_all_kept(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    for parent in (None, root):
        told = claude(1)
        senders = ("human", "assistant", "human", "assistant")
        told["chat_messages"] = [
            {"uuid": f"u{n}", "sender": sender, "text": f"said {n}", "parent_message_uuid": parent}
            for n, sender in enumerate(senders)
        ]
        path = written(tmp_path / str(parent) / "conversations.json", [told])
        [found] = sources.conversations(path, "claude")
        assert isinstance(found, Conversation)
        assert [message.text for message in found.messages] == [f"said {n}" for n in range(4)]


def test_older_citations_and_what_a_model_thinks_are_left_out(tmp_path: Path) -> None:
    thought = said("assistant", "hidden reasoning")
    thought["channel"] = "analysis"
    told = chatgpt(1, said("user", "why"), thought, said("assistant", "So. :contentReference[oaicite:0]{index=0}"))
    [found] = sources.conversations(written(tmp_path / "conversations.json", [told]), "chatgpt")
    assert isinstance(found, Conversation)
    assert [message.text for message in found.messages] == ["why", "So."]
