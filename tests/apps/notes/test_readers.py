"""What newer exports have beside plain words: citations, voice, and documents that were written in a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.exports import chatgpt, claude, said, written
from tsuzuki.apps.notes import extractive, sources
from tsuzuki.apps.notes.sources.conversation import Conversation


def text_of(folder: Path, conversation: dict[str, Any]) -> str:
    path = written(folder / "conversations.json", [conversation])
    [found] = sources.conversations(path, sources.recognized(path))
    assert isinstance(found, Conversation)
    return found.text


# Citations


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("Tides \ue200cite\ue202turn0search0\ue202turn0search3\ue201 rise.", "Tides rise."),
        ('By \ue200entity\ue202["company","OpenAI","lab"]\ue201 made.', "By OpenAI made."),
        ("By \ue200entity\ue202[broken\ue201 made.", "By [broken made."),
        ("See \ue200url\ue202Tesla\ue202turn0view0\ue201 too.", "See Tesla too."),
        ("Read.\ue200navlist\ue202More\ue202turn0news1,turn0news2\ue201", "Read."),
        ('\ue200image_group\ue202{"query":["otter"]}\ue201\nOtters.', "Otters."),
        ("A \ue203cited\ue204\ue206 word", "A cited word"),
        ("It breaks off \ue200cite\ue202turn0", "It breaks off"),
        ("Said【12†source】 and 【4:0†a file.pdf】.", "Said and."),
        ("「水」と【重要】は残る", "「水」と【重要】は残る"),
    ],
)
def test_marks_of_citations_are_left_out_of_what_the_assistant_said(tmp_path: Path, marked: str, plain: str) -> None:
    text = text_of(tmp_path, chatgpt(1, said("user", marked), said("assistant", marked)))
    assert text == f"**User**: {marked}\n\n**Assistant**: {plain}"


def test_links_that_were_cited_are_listed_once_and_reach_the_note(tmp_path: Path) -> None:
    tides, more, old = "https://tides.example/a", "https://tides.example/b?c=d", "https://old.example/"
    grouped = {
        "type": "grouped_webpages",
        "items": [{"title": "Tide\ntables", "url": tides, "supporting_websites": [{"title": "More", "url": more}]}],
    }
    metadata = {
        "content_references": [grouped, {"type": "webpage", "url": tides}, {"url": "javascript:x"}, 7, None],
        "citations": [{"metadata": {"title": "", "url": old}}, {"metadata": {"url": "https://said.example/x"}}],
    }
    answer = said("assistant", "The moon does it, says https://said.example/x.", metadata=metadata)
    text = text_of(tmp_path, chatgpt(1, said("user", "Why are there tides?"), answer))
    assert text.endswith(f"/x.\n\nReferences:\n- Tide tables: {tides}\n- More: {more}\n- {old}")
    assert extractive.note("Tides", text).references == ("https://said.example/x", tides, more, old)


@pytest.mark.parametrize("odd", [None, 7, "x", [[[[{"url": "https://x.example"}]]]], {"items": {"items": []}}])
def test_odd_citations_cost_nothing(tmp_path: Path, odd: Any) -> None:
    answer = said("assistant", "All the same.", metadata={"content_references": odd, "citations": odd})
    assert text_of(tmp_path, chatgpt(1, answer)) == "**Assistant**: All the same."


# Documents and voice


def canvas(what: str, **told: Any) -> dict[str, Any]:
    return said("assistant", json.dumps(told), recipient=f"canmore.{what}_textdoc")


def test_what_was_written_in_a_canvas_is_read_in_its_last_version(tmp_path: Path) -> None:
    whole = [{"pattern": ".*", "multiple": False, "replacement": "# Otters\n\nThe second version."}]
    part = [{"pattern": "(a+)+$", "multiple": True, "replacement": "never"}]
    spoken = (
        said("user", "Write."),
        canvas("create", name="Otters", type="document", content="The first version."),
        said("tool", "Successfully created"),
        canvas("create", name="swim", type="code/python", content="print('```')\n"),
        canvas("create", name="Otters", type="document", content="The better version."),
        canvas("update", updates=whole),
        canvas("update", updates=part),
        canvas("comment", comments=[{"pattern": "x", "comment": "no words"}]),
        said("assistant", {"content_type": "code", "text": "secret()"}, recipient="python"),
        said("assistant", "Done."),
    )
    assert text_of(tmp_path, chatgpt(1, *spoken)) == (
        "**User**: Write.\n\n**Assistant**: [document: swim]\n````python\nprint('```')\n````\n\n"
        "**Assistant**: [document: Otters]\n# Otters\n\nThe second version.\n\n**Assistant**: Done."
    )


@pytest.mark.parametrize("odd", ["{half", "[1]", json.dumps({"name": 7, "content": ["x"]}), json.dumps({"updates": 1})])
def test_an_odd_canvas_costs_nothing(tmp_path: Path, odd: str) -> None:
    spoken = [said("assistant", odd, recipient=f"canmore.{name}_textdoc") for name in ("create", "update")]
    assert text_of(tmp_path, chatgpt(1, *spoken, said("user", "Hm."))) == "**User**: Hm."


def artifact(**told: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": "artifacts", "input": told}


def by(sender: str, text: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"sender": sender, "text": text, "content": list(blocks)}


def test_artifacts_of_claude_are_read_in_their_last_version(tmp_path: Path) -> None:
    unsupported = "```\nThis block is not supported on your current device yet.\n```"
    page = artifact(id="p", type="text/html", title="Page", command="create", content="<p>old</p>")
    essay = artifact(id="e", type="text/markdown", title="Essay", command="create", content="Otters hold hands.")
    other = {"type": "tool_use", "name": "search", "input": {"content": "no words"}}
    changed, lost = (artifact(id=own, command="update", old_str="old", new_str="new") for own in ("p", "gone"))
    code = artifact(id="c", command="rewrite", type="application/vnd.ant.code", language="go", content="main()")
    spoken = (
        by("human", "Make both."),
        by("assistant", f"Made.\n{unsupported}\n", page, essay, other),
        by("assistant", "", changed),
        by("assistant", "", lost, {"type": "text", "text": "There."}),
        by("assistant", "", code),
    )
    text = text_of(tmp_path, claude(1, *spoken))
    assert text.split("\n\n**Assistant**: ") == [
        "**User**: Make both.",
        "Made.\n\n[document: Essay]\nOtters hold hands.",
        "[document: Page]\n```html\n<p>new</p>\n```",
        "There.",
        "[document: unnamed]\n```go\nmain()\n```",
    ]


def test_files_that_claude_made_are_read_in_their_last_version(tmp_path: Path) -> None:
    def used(tool: str, **told: Any) -> dict[str, Any]:
        return {"type": "tool_use", "name": tool, "input": told}

    spoken = (
        by("human", "Write it down."),
        by("assistant", "", used("create_file", path="/out/otters.md", file_text="# Otters\n\nThey swim badly.")),
        by("assistant", "", used("str_replace", path="/out/otters.md", old_str="badly", new_str="well")),
        by("assistant", "Done.", used("create_file", path="/out/count.py", file_text="print(3)", description="x")),
        by("assistant", "", used("create_file", path=None, file_text=7), used("str_replace"), used("create_file")),
        by("assistant", "", {"type": "tool_use", "name": ["create_file"], "input": {}}),
    )
    text = text_of(tmp_path, claude(1, *spoken))
    assert text.split("\n\n**Assistant**: ") == [
        "**User**: Write it down.",
        "[document: otters.md]\n# Otters\n\nThey swim well.",
        "Done.\n\n[document: count.py]\n```py\nprint(3)\n```",
    ]


def test_a_number_of_thousands_of_digits_costs_nothing(tmp_path: Path) -> None:
    text = json.dumps([claude(1), {**claude(2), "odd": 7}, claude(3)]).replace('"odd": 7', f'"odd": {"7" * 5000}')
    (tmp_path / "conversations.json").write_text(text)
    found = list(sources.conversations(tmp_path / "conversations.json", "claude"))
    assert [each.title for each in found] == ["Otters 1", "Otters 2", "Otters 3"]


def test_what_was_spoken_to_claude_is_read(tmp_path: Path) -> None:
    note = {"type": "voice_note", "title": "On the way", "text": "Remind me of otters."}
    spoken = (by("human", "", note), by("human", "", {**note, "title": None}), by("assistant", "Heard."))
    assert text_of(tmp_path, claude(1, *spoken)) == (
        "**User**: [voice note: On the way]\nRemind me of otters.\n\n**User**: Remind me of otters.\n\n"
        "**Assistant**: Heard."
    )
