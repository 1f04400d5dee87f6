"""Notes as files: read back by a YAML and a Markdown library, under names of their own, and nobody's overwritten."""

import asyncio
import datetime as dt
import errno
import itertools
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tsuzuki.apps.notes import ProcessingItem, extractive, headings, vault
from tsuzuki.apps.notes.knowledge import KnowledgeNote, checked, offline_note
from tsuzuki.apps.notes.languages import speaks
from tsuzuki.apps.notes.markdown import Note, is_own, rendered, scalar, shifted
from tsuzuki.apps.notes.names import LONGEST, candidates, safe
from tsuzuki.apps.notes.refusals import EmptyAnswer
from tsuzuki.apps.notes.vault import Sheet, written
from tsuzuki.apps.notes.writing import WriteFile
from tsuzuki.errors import StoreUnavailable
from tsuzuki.llm import Question

MARKDOWN = MarkdownIt()


def parsed(text: str) -> tuple[dict[str, Any], str, list[Any]]:
    """Reads a note with libraries that are not ours: the front matter, the body, and its tokens."""
    _, front, body = text.split("---\n", 2)
    found = yaml.safe_load(front)
    assert isinstance(found, dict)
    return found, body, MARKDOWN.parse(body)


def headings_of(tokens: list[Any]) -> list[tuple[str, str]]:
    return [(token.tag, tokens[at + 1].content) for at, token in enumerate(tokens) if token.type == "heading_open"]


ITEM = ProcessingItem(
    "id-1",
    Path("conversations.json"),
    metadata={"source_provider": "chatgpt", "conversation_id": "c", "created": "2026-01-26"},
)


@given(st.text(), st.text(min_size=1))
@settings(max_examples=150, deadline=None)
def test_any_text_is_valid_yaml(text: str, other: str) -> None:
    front = yaml.safe_load(f"a: {scalar(text)}\nb: [{scalar(other)}, {scalar(text)}]\n")
    wanted, beside = (each.encode("utf-8", "replace").decode().replace("?", "") for each in (text, other))
    told = front["a"].replace("\ufffd", "").replace("?", "")
    assert told == wanted.replace("\ufffd", "")
    assert front["b"][0].replace("\ufffd", "").replace("?", "") == beside.replace("\ufffd", "")


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "null",
        "~",
        "1.5",
        "2026-01-26",
        "0x1F",
        "a: b",
        "a #b",
        "- a",
        "[a]",
        "",
        " a",
        "a ",
        "=",
        "1e3",
        "on",
    ],
)
def test_what_yaml_would_take_for_something_else_is_quoted(text: str) -> None:
    assert yaml.safe_load(f"a: {scalar(text)}") == {"a": text}


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.lists(st.text(), max_size=3))
@settings(max_examples=100, deadline=None)
def test_every_note_is_read_back_by_yaml_and_markdown(title: str, summary: str, content: str, words: list[str]) -> None:
    try:
        note = checked(Note(title, summary, content, tuple(words), tuple(words)), "fallback")
    except EmptyAnswer:
        return
    front, body, tokens = parsed(rendered(ITEM, note, created="2026-01-01"))
    assert (front["title"], front["summary"]) == (note.title, note.summary)
    assert front["created"] == dt.date(2026, 1, 26)
    assert (front["source_provider"], front["source_conversation"], front["item_id"]) == ("chatgpt", "c", "id-1")
    assert front.get("tags", []) == list(note.tags)
    assert body.startswith("\n# ")
    assert headings_of(tokens)[1][1] in ("Summary", "要約")
    if note.references:
        assert headings_of(tokens)[-1][1] in ("References", "参考"), "code that was left open does not swallow the end"


def test_a_reference_that_begins_like_a_heading_is_none() -> None:
    note = Note("T", "S", "C", references=("# not one", "- neither", "https://example.org"))
    _, body, tokens = parsed(rendered(ITEM, note, created="2026-01-01"))
    assert headings_of(tokens)[-1][1] == "References"
    assert "- \\# not one\n- \\- neither\n- https://example.org" in body


def test_headings_stand_below_the_title_and_code_is_left_alone() -> None:
    text = "# One\n```sh\n# no heading\n```\n## Two\n###### Six\n~~~\n# open"
    assert shifted(text) == "## One\n```sh\n# no heading\n```\n### Two\n###### Six\n~~~\n# open\n~~~"
    assert shifted("### Three") == "### Three"
    assert shifted("One\nand more\n=====\n\nTwo\n---\ntext\n\n---\n\n==\n# Three") == (
        "## One and more\n\n### Two\ntext\n\n---\n\n==\n## Three"
    )
    for none in ("- item\n===", "> said\n===", "```\nOne\n===\n```", "\n===", "| a |\n===", "a == b\nTwo\n---"):
        assert shifted(none) == none
    japanese = rendered(
        ITEM, Note("題", "要するにこうです。", "# 一\n\n二", references=("https://example.org",)), created=""
    )
    found = headings_of(parsed(japanese)[2])
    assert found == [("h1", "題"), ("h2", "要約"), ("h2", "一"), ("h2", "参考")]


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_names_are_safe_everywhere(title: str) -> None:
    name = safe(title)
    assert 0 < len(name.encode()) <= LONGEST + 1
    assert not set(name) & set('<>:"/\\|?*\0\n\r\t#^[]')
    assert name == name.strip(" .")
    assert name.split(".")[0].lower() not in ("con", "prn", "aux", "nul", "com1", "lpt1")
    assert all(len(each.encode()) <= 255 for each in candidates(f"{name}_001", "x"))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b\\c", "a b c"),
        ("CON", "_CON"),
        ("LPT¹", "_LPT¹"),
        ("com³.x", "_com³.x"),
        ("...", "untitled"),
        ("川獺について", "川獺について"),
        ("🦦 x", "🦦 x"),
        ("a\u202eb", "ab"),
    ],
)
def test_names_stay_readable(title: str, name: str) -> None:
    assert safe(title) == name


def test_equal_titles_do_not_overwrite_each_other_and_an_item_only_itself(tmp_path: Path) -> None:
    def write(item_id: str, content: str = "text") -> str:
        item = ProcessingItem(item_id, Path("x"), metadata={"title": "T"})
        return str(asyncio.run(WriteFile(tmp_path, "2026-01-01").run(item, Note("T", "s", content))).output_path)

    mine = tmp_path / "T.md"
    mine.write_text("my own note")
    first, second = write("a"), write("b")
    assert len({first, second, "T.md"}) == 3
    assert write("a", "new text") == first
    assert "new text" in (tmp_path / first).read_text()
    assert mine.read_text() == "my own note"
    edited = (tmp_path / second).read_text() + "my own words\n"
    (tmp_path / second).write_text(edited)
    beside = write("b", "again")
    assert beside not in (first, second)
    assert (tmp_path / second).read_text() == edited, "a note that somebody has edited is theirs"
    assert write("b", "and again") == beside
    tagged = (tmp_path / first).read_text().replace("item_id: a", "aliases: [mine]\nitem_id: a")
    (tmp_path / first).write_text(tagged)
    assert write("a") == first
    assert "\naliases: [mine]\n" in (tmp_path / first).read_text(), "properties are kept, and are no edit"
    assert not list(tmp_path.glob(".*"))


def sheet(stem: str, item_id: str) -> Sheet:
    return Sheet(stem, item_id, {"source_provider": "claude"}, Note("T", "s", "text"), "2026-01-01")


def test_a_note_whose_line_ends_a_program_has_changed_is_still_its_own(tmp_path: Path) -> None:
    [name] = written(tmp_path, [sheet("T", "i")])
    place = tmp_path / str(name)
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    assert written(tmp_path, [sheet("T", "i")]) == [name]
    place.write_bytes(place.read_bytes().replace(b"text", b"my text"))
    assert written(tmp_path, [sheet("T", "i")]) != [name]
    assert b"my text" in place.read_bytes()


def test_a_chunk_has_its_number_at_the_end_of_its_name(tmp_path: Path) -> None:
    [first, second] = written(tmp_path, [sheet("T_001", "p_1"), sheet("T_001", "q_1")])
    assert first == "T_001.md"
    assert first != second
    assert str(second).endswith("_001.md")
    assert is_own(rendered(ITEM, Note("t", "s", "c"), created=""), "id-1")


def test_nothing_in_a_note_is_taken_for_a_link_a_tag_or_a_comment_that_it_is_not() -> None:
    title = "How [[links]] and #tags and %%comments%% work"
    content = "Write `[[page]]` for [[page]].\n\n- ![[picture.png]] and %%no%%\n\n```\n[[code]] %%\n```\n## On [[it]]"
    text = rendered(ITEM, Note(title, "Use [[x]].", content, parts=("Part_001.md",)), created="2026-01-01")
    front, body, _ = parsed(text)
    assert front["title"] == title
    assert "# How \\[\\[links]] and \\#tags and \\%\\%comments\\%\\% work\n" in body
    assert "Use \\[\\[x]]." in body
    assert "Write `[[page]]` for \\[\\[page]]." in body
    assert "!\\[\\[picture.png]] and \\%\\%no\\%\\%" in body
    assert "```\n[[code]] %%\n```" in body
    assert "## On \\[\\[it]]" in body
    assert "- [[Part_001]]" in body, "links to parts lead somewhere"


def test_offline_code_in_a_sentence_stays_code() -> None:
    said = "**User**: How do I link?\n\n**Assistant**: Write `[[page]]` into the note, with `two` brackets."
    made = extractive.note("Links", said)
    assert "Write `[[page]]` into the note, with `two` brackets." in made.content


# What becomes of an answer


def test_an_answer_by_headings_is_read_tolerantly() -> None:
    told = headings.read(
        "```markdown\n**Title:** Otters\n\n## 要約\nThey swim.\n\n# Content\n## Food\nFish.\n\n"
        "Tags: a, b\nReferences:\n- https://x.org\n- none\n```",
        "t",
    )
    assert told == Note("Otters", "They swim.", "## Food\nFish.", ("a", "b"), ("https://x.org",))
    text = "They swim.\n\nAnd they eat fish, mussels and crabs."
    plain = headings.read(text, "t")
    assert (plain.title, plain.summary, plain.content) == ("t", "They swim.", text)
    with pytest.raises(EmptyAnswer):
        checked(headings.read("  ", "t"), "t")


FITS = '{"title": "T", "summary": "They swim.", "content": "All of it.", "tags": ["a"]}'


@pytest.mark.parametrize(
    "answer",
    [FITS, f"```json\n{FITS}\n```", f"Here is the note:\n{FITS}\nIt has all.", f'{{"note": {FITS}}}',
     f"# Title\nT\n# Content\n{FITS}", FITS.replace('"summary"', '"要約"')],
)  # fmt: skip
def test_json_in_place_of_headings_is_read_as_what_it_is(answer: str) -> None:
    assert headings.read(answer, "t") == Note("T", "They swim.", "All of it.", ("a",))


@pytest.mark.parametrize(
    ("tags", "references", "tagged", "named"),
    [
        (
            "otters, sea; 海、川",
            "- https://a.example/?q=1,2\n- A Book",
            ("otters", "sea", "海", "川"),
            ("https://a.example/?q=1,2", "A Book"),
        ),
        (None, None, (), ()),
        (
            ["otters", 7, None],
            [{"title": "A Book", "url": "https://a.example/"}, ["?"]],
            ("otters",),
            ("A Book https://a.example/",),
        ),
        ("#otters", "", ("otters",), ()),
    ],
)
def test_lists_that_a_model_writes_in_its_own_way_are_read(
    tags: object, references: object, tagged: tuple[str, ...], named: tuple[str, ...]
) -> None:
    plain = {"title": "T", "summary": "They swim.", "content": "All of it.", "tags": tags, "references": references}
    made = KnowledgeNote.model_validate(plain)
    by_schema = Note(made.title, made.summary, made.content, tuple(made.tags), tuple(made.references))
    for note in (by_schema, headings.read(json.dumps(plain), "t")):
        assert (checked(note, "t").tags, checked(note, "t").references) == (tagged, named)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"title": "T", "summary": "", "content": " "}', "no summary or no content"),
        ('{"answer": "They swim, and they eat fish and mussels."}', "JSON that is no note"),
        ('{"title": "Otters", "summary": "They swim, and they', "JSON that is no note"),
        (
            'Here is the note, as JSON:\n```json\n{"points": ["They swim.", "They eat fish."]}\n```',
            "JSON that is no note",
        ),
        ('[{"role": "assistant"}]', "JSON that is no note"),
        ("I'm sorry, but I cannot help with that request, since it is against the rules.", "the model has refused"),
        ("申し訳ありませんが、この会話についてノートを作成することはできません。", "the model has refused"),
        ("OK.", "too short"),
    ],
)
def test_what_is_no_note_fails_with_its_reason(answer: str, why: str) -> None:
    with pytest.raises(EmptyAnswer, match=why):
        checked(headings.read(answer, "t"), "t")


@pytest.mark.parametrize(
    "text",
    [
        'Sea otters use stones to open mussels.\n\n```json\n{"a": 1}\n```\n\nThat is how they are configured.',
        "ラッコは石を使って貝を割り、お腹の上で食べます。",
        "[Otters](https://example.org) swim, and they eat fish and mussels.",
    ],
)
def test_plain_words_stay_a_note(text: str) -> None:
    assert headings.read(text, "t").content == text


@given(st.text(max_size=300), st.text(max_size=2000))
@settings(max_examples=60, deadline=None)
def test_offline_every_text_that_says_something_becomes_a_note(title: str, text: str) -> None:
    note = extractive.note(title, text)
    if text.strip():
        try:
            assert checked(note, title).summary
        except EmptyAnswer:
            assert not "".join(sign for sign in text if sign.isprintable()).strip()


def test_offline_the_sentences_that_say_most_are_taken() -> None:
    text = (
        "**User**: What do otters eat?\n\n**Assistant**: Well. Otters eat fish, and otters eat crabs. It is a "
        "fine day. Sea otters open mussels with stones. See https://example.org/otters.\n```\ncode()\n```"
    )
    made = offline_note(Question(f"Title: Otters\n\n<conversation>\n{text}\n</conversation>"))
    assert made.title == "Otters"
    assert "Otters eat fish, and otters eat crabs." in made.summary
    assert made.references == ["https://example.org/otters"]
    assert "otters" in made.tags
    assert made.content.startswith("## What do otters eat?")
    short = "**User**: 川獺は何を食べますか。\n\n**Assistant**: 魚です。貝も食べます。"
    made = offline_note(Question(f"Title: 川獺\n\n<conversation>\n{short}\n</conversation>"))
    assert made.summary in ("魚です。", "貝も食べます。"), "who spoke is no part of it, and the content says the rest"
    assert made.content.endswith("- 魚です。\n- 貝も食べます。")


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([":-bad", "step:", "#plain", "a b", "a/b_c-d"], ("bad", "step", "plain", "a-b", "a/b_c-d")),
        (["a,b", "川獺、海", "don't", "C++"], ("a", "b", "川獺", "海", "dont", "cpp")),
        (["C", "C#", "c++20", "F#", "issue #5", "a#b"], ("C", "csharp", "cpp20", "fsharp", "issue-5", "a-b")),
        (["UPPER", "upper", "Straße", "STRASSE"], ("UPPER", "Straße")),
        (["2026", "y2026", "२०", "!?", "", "/a//b/"], ("y2026", "a/b")),
        (["हिन्दी", "ภาษาไทย", "🦦", "同じ", "同じ"], ("हिन्दी", "ภาษาไทย", "🦦", "同じ")),
    ],
)
def test_tags_are_ones_that_obsidian_takes(words: list[str], made: tuple[str, ...]) -> None:
    assert checked(Note("t", "s", "c", tuple(words)), "t").tags == made


def test_offline_code_and_the_lines_of_tables_are_no_sentences() -> None:
    text = (
        "**User**: ```python\nimport otters as animals\n```\nWhat does this program do?\n\n"
        "**Assistant**: It counts otters in the sea, as far as they are seen.\n\n| Animal | How many there are |\n"
        "|:--------|------------:|\n| Otter | twelve of them |\n\n"
        "1. First:\n    ~~~sh\n    run the otters now\n    ~~~\n\n"
        "**User**: ```\nfor otter in otters: never closed\n\n**Assistant**: That loop has no end, I am afraid."
    )
    made = extractive.note("Otters", text)
    told = f"{made.summary}\n{made.content}"
    assert not any(code in told for code in ("import otters", "run the otters", "for otter in", "---"))
    assert "It counts otters in the sea" in told
    assert "That loop has no end" in told, "code that is left open ends with its message"
    only = extractive.note("Otters", "**User**: ```\nimport otters as animals\n```")
    assert only.summary == "Otters"
    assert "import otters as animals" in only.content


def test_a_language_is_told_by_its_letters() -> None:
    for japanese in (
        "泳ぎます。",
        "Python の asyncio を使った HTTP client の実装。",
        "GitHub Actions で CI/CD pipeline を構築する。",
        "Kubernetes Pod Security Admission controller を有効化する方法。",
        "詳細は https://example.org/the/way/to/it を参照。",
    ):
        assert speaks(japanese, "ja"), japanese
        assert not speaks(japanese, "en"), japanese
    for english in (
        "They swim.",
        "The kanji 川 means river.",
        "The particle は marks the topic.",
        "It is about what ありがとうございます means in Japanese.",
    ):
        assert speaks(english, "en"), english
        assert not speaks(english, "ja"), english
    for other in ("使用 Docker 部署应用程序的方法和注意事项。", "Они плавают в реке, через API."):
        assert not speaks(other, "ja")
        assert not speaks(other, "en")
    assert speaks("1 + 1 = 2", "ja")
    assert speaks("1 + 1 = 2", "en")
    assert not speaks("Sie schwimmen.", "de"), "of others nothing is told"


def test_notes_of_a_batch_share_a_sync_of_their_names_and_fail_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, sync = list[set[str]](), os.fsync

    def synced(file: int) -> None:
        seen.append({path.name for path in tmp_path.glob("*.md")})
        if len(seen) == 2:
            raise OSError(errno.ENOSPC, "no room")
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    first, failed, second = written(tmp_path, [sheet("A", "a"), sheet("B", "b"), sheet("A", "c")])
    assert (first, getattr(failed, "errno", None)) == ("A.md", errno.ENOSPC)
    assert seen == [set(), set(), set(), {"A.md", second}], "each file, and then the folder once, with all names"
    assert {path.name for path in tmp_path.iterdir()} == {"A.md", second}, "and nothing half done beside them"


def test_files_of_a_large_batch_are_waited_for_at_once_and_each_fails_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, calls, sync = threading.Barrier(2, timeout=30), itertools.count(), os.fsync

    def synced(file: int) -> None:
        if next(calls) < 2:
            together.wait()  # raises where nobody else comes meanwhile
        about = os.fstat(file)
        if stat.S_ISREG(about.st_mode) and about.st_size > 1000:
            raise OSError(errno.EIO, "lost")
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    sheets = [sheet(f"N{number}", f"i{number}") for number in range(16)]
    sheets[5] = sheets[5]._replace(note=Note("T", "s", "x" * 1000))
    outcomes = written(tmp_path, sheets)
    assert [name for name in outcomes if isinstance(name, str)] == [f"N{n}.md" for n in range(16) if n != 5]
    assert getattr(outcomes[5], "errno", None) == errno.EIO
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"N{n}.md" for n in range(16) if n != 5)


def test_what_somebody_saves_just_before_a_note_is_replaced_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written(tmp_path, [sheet("A", "a")]) == ["A.md"]

    def edited(text: str, item_id: str, *, paid: bool) -> bool:
        own = is_own(text, item_id, paid=paid)
        monkeypatch.setattr(vault, "is_own", is_own)
        (tmp_path / "new").write_text("my own words")
        (tmp_path / "new").replace(tmp_path / "A.md")  # as editors save
        return own

    monkeypatch.setattr(vault, "is_own", edited)
    [beside] = written(tmp_path, [sheet("A", "a")])
    assert (tmp_path / "A.md").read_text() == "my own words"
    assert {path.name for path in tmp_path.iterdir()} == {"A.md", beside}


def test_what_is_not_wanted_any_more_or_half_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [error] = written(tmp_path, [sheet("A", "a")], lambda: False)
    assert isinstance(error, InterruptedError)

    def removed(fresh: str, place: str) -> None:
        raise FileNotFoundError(fresh)

    monkeypatch.setattr(os, "link", removed)
    [error] = written(tmp_path, [sheet("A", "a")])
    assert isinstance(error, FileNotFoundError), "whoever has removed the file goes on with the note"

    def unlinkable(fresh: str, place: str) -> None:
        monkeypatch.setattr(os, "fsync", full)
        raise PermissionError(place)

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "link", unlinkable)
    [error] = written(tmp_path, [sheet("A", "a")])
    assert getattr(error, "errno", None) == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_a_vault_that_nobody_may_write_into_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str, flag: int = 0) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(vault, "_open", refused)
    [error] = written(tmp_path, [sheet("A", "a")])
    assert isinstance(error, PermissionError), "that of one file"
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    [error] = written(tmp_path, [sheet("A", "a")])
    assert isinstance(error, StoreUnavailable)
    assert str(tmp_path) in str(error)
