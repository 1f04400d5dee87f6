"""An answer written with headings instead of JSON, read tolerantly: small models can do no better.

What is JSON all the same is read as that; raw JSON, a refusal and a word or two are no note.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tsuzuki import llm
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.refusals import EmptyAnswer

NAMES: Final = {
    "title": ("title", "タイトル", "題名", "見出し"),
    "summary": ("summary", "要約", "概要", "まとめ"),
    "content": ("content", "contents", "内容", "本文", "詳細", "details", "note"),
    "tags": ("tags", "タグ", "keywords", "キーワード"),
    "references": ("references", "参考", "参照", "links", "sources"),
}
_WORDS: Final = {word: field for field, words in NAMES.items() for word in words}
_HEAD: Final = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]*|[-*][ \t]+)?(?:\*\*|__)?({'|'.join(map(re.escape, _WORDS))})(?:\*\*|__)?"
    r"[ \t]*+(?:[:：](?:\*\*|__)?[ \t]*+(.*)|#*+[ \t]*+)$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM: Final = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+", re.MULTILINE)
_FENCED: Final = re.compile(r"\A\s*```(?:markdown|md)?[ \t]*\n(.*)\n```\s*\Z", re.DOTALL)
_CODE: Final = re.compile(r"```\w*+[ \t]*+\n((?:[^`]|`(?!``))*+)```")
_BEGINS_AS_JSON: Final = re.compile(r"\{|\[\s*[\[{\"]")
_NO_NOTE: Final = (
    "回答がノートの形をしていない JSON です。再試行してください / the answer is JSON that is no note: retry it"
)
_LETTER: Final = re.compile(r"[^\W\d_]")
_SHORTEST: Final = 40
"""How many bytes an answer without headings has that can be a note: Japanese says as much in a third of the signs."""

FORM: Final = """Answer in this form, and write nothing else:

# Title
one line
# Summary
two or three sentences
# Content
the note itself
# Tags
words, separated by commas
# References
one on each line, or nothing"""


def read(text: str, title: str) -> Note:
    """Reads an answer by its headings; without any, its first paragraph is the summary and all of it the content."""
    fenced = _FENCED.match(text)
    plain = (fenced[1] if fenced else text).strip()
    found = _sections(plain)
    if not found or _BEGINS_AS_JSON.match(found.get("content", "")):
        said = found.get("content") or plain
        if (note := _in_json(said, title)) is not None:
            return note
        _check(said)
    content = found.get("content") or ("" if found else plain)
    summary = found.get("summary") or (content or plain).split("\n\n", maxsplit=1)[0].strip()
    return Note(
        title=" ".join(found.get("title", "").split()) or title,
        summary=summary,
        content=content or summary,
        tags=tuple(listed(found.get("tags", ""), commas=True)),
        references=tuple(listed(found.get("references", ""), commas=False)),
    )


def _in_json(text: str, title: str) -> Note | None:
    """Gives the note in an answer that is JSON, or has some; where it says nothing, so does the note."""
    for _, value in _values(text):
        for each in (value, *(value.values() if isinstance(value, dict) else ())):
            told = _fields(each)
            if "summary" in told and "content" in told:
                name, tags, references = (told.get(field) for field in ("title", "tags", "references"))
                name = name if isinstance(name, str) and name.strip() else title
                return Note(
                    name,
                    told["summary"],
                    told["content"],
                    tuple(listed(tags, commas=True)),
                    tuple(listed(references, commas=False)),
                )
    return None


def _values(text: str) -> Iterator[tuple[str, Any]]:
    """Gives the pieces of a text that are JSON, with what they say: the whole, code, and what is between braces."""
    between = text[text.find("{") : text.rfind("}") + 1]
    for piece in dict.fromkeys((text, *(code[1] for code in _CODE.finditer(text)), between)):
        try:
            yield piece, json.loads(piece, strict=False)
        except (ValueError, RecursionError):
            continue


def _fields(value: Any) -> dict[str, Any]:
    """Gives what an object says of a note; a summary or content that is no text is none."""
    if not isinstance(value, dict):
        return {}
    named = {_WORDS[name.lower()]: each for name, each in value.items() if name.lower() in _WORDS}
    return {field: each for field, each in named.items() if field in ("tags", "references") or isinstance(each, str)}


def check(text: str, *, of_note: bool = False) -> None:
    """Refuses the content of a note that is none although it has the form of one: a refusal, or an object in JSON.

    So it does, with `of_note`, where there is no word in it.
    """
    if of_note and not _LETTER.search(text):
        raise EmptyAnswer
    if llm.text.refuses(text):
        raise EmptyAnswer(f"モデルが回答を断りました。再試行してください / the model has refused, retry it: {text}")
    if text.startswith("{") and any(isinstance(value, dict) and piece == text for piece, value in _values(text)):
        raise EmptyAnswer(_NO_NOTE)


def _check(text: str) -> None:
    """Refuses what is no note, so that it is asked for again."""
    if _BEGINS_AS_JSON.match(text) or any(
        isinstance(value, dict | list) and len(piece) * 2 > len(text) for piece, value in _values(text)
    ):
        raise EmptyAnswer(_NO_NOTE)
    check(text)
    if 0 < len(text.encode()) < _SHORTEST:
        raise EmptyAnswer(
            f"回答が短すぎます。再試行してください / the answer is too short for a note, retry it: {text}"
        )


def _sections(text: str) -> dict[str, str]:
    marks = list(_HEAD.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found: dict[str, str] = {}
    for mark, end in zip(marks, ends, strict=False):
        field = _WORDS[mark[1].lower()]
        body = f"{mark[2] or ''}\n{text[mark.end() : end]}".strip()
        if field not in found and body:
            found[field] = body
    return found


def listed(value: Any, *, commas: bool) -> list[str]:
    """Gives the words of what stands for a list of them: a list, a text with commas or lines, nothing at all."""
    if isinstance(value, list):
        return [word for each in value if (word := _word(each))]
    if not isinstance(value, str):
        return []
    lines = _ITEM.sub("", value).splitlines()
    pieces = [piece for line in lines for piece in (re.split(r"[,、]", line) if commas else [line])]
    return [
        word for piece in pieces if (word := piece.strip().lstrip("#").strip()) and word.lower() not in ("none", "なし")
    ]


def _word(value: Any) -> str:
    """Gives an entry of a list as a text; models also name a source by its parts, such as title and address."""
    if isinstance(value, dict):
        return " ".join(each for each in value.values() if isinstance(each, str)).strip()
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
