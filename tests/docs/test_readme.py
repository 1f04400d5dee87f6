"""What the README says to save and to type does what it says, and both READMEs say the same."""

import re
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT
from tests.docs.snippets import File, Typed, parts_of, typed_in

READMES = ("README.md", "README.ja.md")


@pytest.mark.timeout(300)  # everything that a reader types, one after another
def test_the_readme_does_what_it_says(tmp_path: Path) -> None:
    parts = parts_of(ROOT / "README.md")
    up, made = next((at, part) for at, part in enumerate(parts) if isinstance(part, Typed) and part.line == "make up")
    typed_in(tmp_path / "script", parts[:up])
    (bin_folder := tmp_path / "clone/.venv/bin").mkdir(parents=True)
    (bin_folder / "activate").touch()
    started = Typed("tsuzuki up &", made.answer)  # this is what `make up` does in a `.venv` that has everything
    typed_in(tmp_path / "clone", [started, *parts[up + 1 :], Typed("tsuzuki cancel 1 --wait", ())])


def test_both_say_to_save_and_to_type_the_same() -> None:
    english, japanese = (
        [File(part.name, re.sub(r"  # .*", "", part.text)) if isinstance(part, File) else part for part in parts]
        for parts in (parts_of(ROOT / name) for name in READMES)
    )
    assert english == japanese
    assert any(isinstance(part, Typed) for part in english)


def test_both_have_the_same_parts_in_the_same_order() -> None:
    english, japanese = ((ROOT / name).read_text() for name in READMES)
    for pattern in (r"^#+ ", r"^\|", r"^- ", r"`(?:make|tsuzuki) [^`]*`", r"\b\d+\.\d+\b"):
        count = [len(re.findall(pattern, text, re.MULTILINE)) for text in (english, japanese)]
        assert count[0] == count[1] > 0, pattern
    places = [
        re.findall(r"\]\(((?!README)[^)]*?)(?:\.ja)?(?:\.png|\.gif)?\)", text)[1:] for text in (english, japanese)
    ]
    assert sorted(places[0]) == sorted(places[1])


def rows(name: str) -> dict[str, list[str]]:
    """Gives the cells of the tables of a page, by the first of each row."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("|")]
    return {
        first.strip(): [cell.strip() for cell in cells] for line in lines for first, *cells in [line[1:-1].split("|")]
    }


def test_both_have_the_figures_of_the_page_they_point_to() -> None:
    measured = rows("docs/performance.md")
    ratios = [
        ["".join(re.findall(r"\(([\d.]+) Y\)", cell)) for cell in measured[peer]]
        for peer in ("**Tsuzuki** on SQLite", "dbos", "huey")
    ]
    for name in READMES:
        shown = [cells for first, cells in rows(name).items() if re.search(r"\d,000", first)]
        told = [[cell if cell[0].isdigit() else "" for cell in cells] for cells in shown]
        assert told == [list(works) for works in zip(*ratios, strict=True)], name
