"""A glossary as a file: Markdown, CSV, JSON, TBX-Basic."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final
from xml.sax.saxutils import escape

from tsuzuki.apps.glossary.occurrences import MOST
from tsuzuki.apps.glossary.plaintext import HAS_CJK
from tsuzuki.apps.glossary.records import Entry
from tsuzuki.apps.spreadsheets import no_formula

FORMATS: Final = {"md": "text/markdown", "csv": "text/csv", "json": "application/json", "tbx": "application/x-tbx+xml"}
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SHOWN: Final = 5
"""How many occurrences Markdown shows of a term."""
_WORDS: Final = {
    "ja": {
        "definition": "定義",
        "aliases": "別名",
        "confidence": "信頼度",
        "occurrences": "出現箇所",
        "more": "ほか {} 件",
        "many": "ほか多数",
    },
    "en": {
        "definition": "Definition",
        "aliases": "Aliases (別名)",
        "confidence": "Confidence",
        "occurrences": "Occurrences",
        "more": "and {} more",
        "many": "and many more",
    },
}


def export(kind: str, title: str, entries: Sequence[Entry]) -> str:
    """Gives a glossary in a format."""
    made: Mapping[str, Callable[[str, Sequence[Entry]], str]] = {
        "md": markdown,
        "csv": separated,
        "json": as_json,
        "tbx": tbx_basic,
    }
    return made[kind](title, entries)


def markdown(title: str, entries: Sequence[Entry]) -> str:
    """Gives a glossary as Markdown: definition, aliases, confidence and occurrences of each term."""
    language = _language(" ".join(entry.definition for entry in entries[:50]))
    words = _WORDS[language]
    lines = [f"# {_plain(title)}", ""]
    for entry in sorted(entries, key=lambda each: each.term_name.casefold()):
        lines += [f"## {_plain(entry.term_name)}", "", f"**{words['definition']}**: {_plain(entry.definition)}", ""]
        if entry.aliases:
            lines += [f"**{words['aliases']}**: {', '.join(map(_plain, entry.aliases))}", ""]
        lines += [f"**{words['confidence']}**: {entry.confidence:.0%}", ""]
        if entry.occurrences:
            lines += [f"**{words['occurrences']}**:", ""]
            places = [f"{_plain(place.document_path)}:{place.line_number}" for place in entry.occurrences]
            lines += [f"- `{place.replace('`', '')}`" for place in places[:_SHOWN]]
            if len(places) > _SHOWN:
                more = words["many"] if len(places) >= MOST else words["more"]
                lines += [f"- {more.format(len(places) - _SHOWN)}"]
            lines += [""]
    return "\n".join(lines)


def separated(title: str, entries: Sequence[Entry]) -> str:
    """Return a glossary as CSV with a head line and a BOM, by which Excel knows UTF-8; no text becomes a formula."""
    del title
    text = io.StringIO()
    text.write("\ufeff")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("term", "definition", "confidence", "aliases", "occurrences"))
    for entry in entries:
        places = "; ".join(f"{place.document_path}:{place.line_number}" for place in entry.occurrences)
        cells = (entry.term_name, entry.definition, f"{entry.confidence:.2f}", "; ".join(entry.aliases), places)
        writer.writerow(map(no_formula, cells))
    return text.getvalue()


def as_json(title: str, entries: Sequence[Entry]) -> str:
    """Gives a glossary as JSON."""
    left = {"id", "by_person", "kept"}  # what only this product needs
    told = [{name: value for name, value in asdict(entry).items() if name not in left} for entry in entries]
    return json.dumps({"title": title, "entries": told}, ensure_ascii=False, indent=1) + "\n"


def tbx_basic(title: str, entries: Sequence[Entry]) -> str:
    """Gives a glossary as TBX-Basic (ISO 30042:2019, style dca), for tools of translators."""
    language = _language(" ".join(entry.definition for entry in entries[:50]))
    concepts = "\n".join(_concept(number, entry) for number, entry in enumerate(entries, 1))
    # A body has at least one concept; constraints are the dialect's own since 2019, so no file of them is named.
    body = f"\n    <body>\n{concepts}\n    </body>\n  " if entries else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<tbx type="TBX-Basic" style="dca" xml:lang="{language}" xmlns="urn:iso:std:iso:30042:ed-2">
  <tbxHeader>
    <fileDesc>
      <titleStmt><title>{_xml(title)}</title></titleStmt>
      <sourceDesc><p>Tsuzuki glossary</p></sourceDesc>
    </fileDesc>
  </tbxHeader>
  <text>{body}</text>
</tbx>
"""


def _concept(number: int, entry: Entry) -> str:
    names = [
        (entry.term_name, "preferredTerm-admn-sts"),
        *((alias, "admittedTerm-admn-sts") for alias in entry.aliases),
    ]
    terms = "\n".join(
        f"          <termSec><term>{_xml(name)}</term>"
        '<termNote type="partOfSpeech">noun</termNote>'
        f'<termNote type="administrativeStatus">{status}</termNote></termSec>'
        for name, status in names
    )
    return f"""      <conceptEntry id="c{number}">
        <langSec xml:lang="{_language(f"{entry.term_name} {entry.definition}")}">
          <descripGrp><descrip type="definition">{_xml(entry.definition)}</descrip></descripGrp>
{terms}
        </langSec>
      </conceptEntry>"""


def _language(text: str) -> str:
    return "ja" if HAS_CJK.search(text) else "en"


def _plain(text: str) -> str:
    """Gives a text on one line, which cannot become markup of its own."""
    return " ".join(text.split()).replace("<", "&lt;")


def _xml(text: str) -> str:
    return escape(_FORBIDDEN.sub("", text))
