"""What documents lead to: files and tests that they name as evidence, and headings that they link to."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house import rules

DOCUMENTS = ("SECURITY.md", "docs/guarantees.md", "docs/limits.md", "docs/requirements.md")
NAMED = re.compile(r"`((?:tests|bench)/[\w./-]+|[\w./-]+\.(?:py|sql|js|toml)|[\w-]+(?:/[\w-]+)*/)(?:::(\w+))?`")
ROW = re.compile(r"^\|(?!\s*-|-)(.+)\|$", re.MULTILINE)
TESTED = re.compile(r"`(?:tests/|bench/|testing/contract/)")


def missing(root: Path) -> list[str]:
    """A file or test that a document names as evidence is there."""
    return [
        f"{document}: names {path}{f'::{name}' if name else ''}, which does not exist"
        for document in DOCUMENTS
        for path, name in sorted(set(NAMED.findall(rules.text_of(root / document))))
        if (place := found(root, path)) is None or (name and name not in functions(place))
    ]


def found(root: Path, path: str) -> Path | None:
    places = (root / path, root / rules.PACKAGE / path)
    return next((place for place in places if place.exists()), None)


def functions(place: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(rules.parse(place)) if isinstance(node, kinds)}


def unproven(root: Path) -> list[str]:
    """Every row of a table that has a column of evidence names some."""
    return [
        f"{document}: nothing shows this: {row.strip()[:100]}"
        for document in DOCUMENTS
        for row in rows_with_evidence(rules.text_of(root / document))
        if not NAMED.search(row.rpartition(" | ")[2]) and not TESTED.search(row)
    ]


def rows_with_evidence(text: str) -> Iterator[str]:
    for part in text.split("\n\n"):
        head, *rows = ROW.findall(part) or [""]
        if head.rstrip().endswith("shown by"):
            yield from rows


def lost_headings(root: Path) -> list[str]:
    """A link to a heading of a document leads to one that is there."""
    return [
        f"{path.relative_to(root)}: links to {target}, and there is no such heading"
        for path in rules.files(root, ".md")
        for target in rules.LINK.findall(rules.FENCE.sub("", rules.text_of(path)))
        for name, mark, heading in [target.partition("#")]
        if mark and not re.match(r"[a-z]+:", name) and (name.endswith(".md") or not name)
        if heading not in headings(path.parent / name if name else path)
    ]


@cache
def headings(path: Path) -> set[str]:
    """Gives the headings of a document as links name them."""
    found = re.findall(r"^#+ (.+)$", rules.FENCE.sub("", rules.text_of(path)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-") for said in found}
