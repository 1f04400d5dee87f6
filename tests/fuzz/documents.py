"""A document on its way through the glossary, with all that has to hold of it whatever it says.

Short documents, and many: what becomes of a long one is a matter of time, which the tests of long texts look at.
"""

import csv
import io
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

from tsuzuki.apps.glossary import candidates, exports, extractive, filenames, occurrences, prompts
from tsuzuki.apps.glossary.plaintext import fenced, prose, usual_width
from tsuzuki.apps.glossary.records import Document, Entry, Occurrence

NAME = "a.md"
SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
LOOK_ALIKE = dict.fromkeys(map(ord, "＜﹤‹〈"), "<")
MOST_TERMS = 6
"""So many of the candidates are terms: each is looked for everywhere."""


def named(content: str) -> None:
    """A name that is taken leads into the folder, and is the same when it is looked at again."""
    clean = filenames.checked_name(content)
    path = PurePosixPath(clean)
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert filenames.checked_name(clean) == clean


def read(content: str) -> list[Entry]:
    """Gives the glossary of a document: candidates, places, definitions."""
    documents = [Document(NAME, content)]
    found = [each.text for each in candidates.find_candidates(documents)]
    assert all(text.strip() for text in found)
    terms = [*found[:MOST_TERMS], "term", "用語"]
    index = occurrences.TermIndex({term: term for term in terms})
    lines, entries = content.split("\n"), []
    for place in occurrences.places(index, content):
        line = lines[place.line - 1]
        assert line[place.column - 1 : place.column - 1 + place.length] == place.text.split("\n")[0]
    for term, places in occurrences.find_occurrences(documents, index).items():
        assert all(1 <= place.line_number <= len(lines) for place in places)
        assert all(place.context in usual_width(content) or "\n" in place.context for place in places)
        definition, sure = extractive.found_definition([term], [place.context for place in places])
        assert 0.0 <= sure <= 1.0
        entries.append(Entry(term, definition, sure, [content[:20]], places))
    return entries


def shown(content: str, entries: list[Entry]) -> None:
    """What is written of it stays what it is: a term no formula, no tag, no line of its own."""
    title = content[:40]
    headings = [line for line in exports.export("md", title, entries).split("\n") if line.startswith("## ")]
    assert len(headings) == len(entries)
    concepts = ET.fromstring(exports.export("tbx", title, entries).encode())  # noqa: S314 - our own XML
    assert len(list(concepts.iter("{urn:iso:std:iso:30042:ed-2}conceptEntry"))) == len(entries)
    rows = list(csv.reader(io.StringIO(exports.export("csv", title, entries), newline="")))
    assert len(rows) == len(entries) + 1
    assert not any(cell.startswith(SIGNS) for row in rows[1:] for cell in row)


def asked(content: str, places: list[Occurrence]) -> None:
    """A text cannot leave its tag, and is read out of it as it was, but for what only looks like a tag's first sign."""
    subject = prompts.Subject(
        f"t{content[:40]}", user_notes=f"n{content}", contexts=[place.context for place in places]
    )
    prompt = prompts.define_prompt(subject)
    [notes] = prompts.texts(prompt, "user_notes")
    assert notes.translate(LOOK_ALIKE) == f"n{content}".translate(LOOK_ALIKE).strip()
    assert [len(prompts.parts(prompt, name)) for name in ("term", "context", "definition")] == [1, len(places), 0]


def document(content: str) -> None:
    filenames.check_content(NAME, content)
    for start, end in fenced(content):
        assert 0 <= start < end <= len(content)
    assert prose(content) is not None
    entries = read(content)
    shown(content, entries)
    asked(content, [place for entry in entries for place in entry.occurrences][:3])
