"""An answer written with headings instead of JSON, read tolerantly: small models can do no better."""

import re
from typing import Final

from tsuzuki.apps.notes.markdown import Note

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
    content = found.get("content") or ("" if found else plain)
    summary = found.get("summary") or (content or plain).split("\n\n", maxsplit=1)[0].strip()
    return Note(
        title=" ".join(found.get("title", "").split()) or title,
        summary=summary,
        content=content or summary,
        tags=tuple(_listed(found.get("tags", ""), commas=True)),
        references=tuple(_listed(found.get("references", ""), commas=False)),
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


def _listed(text: str, *, commas: bool) -> list[str]:
    lines = _ITEM.sub("", text).splitlines()
    pieces = [piece for line in lines for piece in (re.split(r"[,、]", line) if commas else [line])]
    return [
        word for piece in pieces if (word := piece.strip().strip("#").strip()) and word.lower() not in ("none", "なし")
    ]
