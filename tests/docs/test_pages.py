"""Whatever the tutorial and the how-tos say to save and to type does what they say."""

from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT
from tests.docs.snippets import HOW_IT_ENDED, File, Shell, Typed, parts_of

PAGES = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    (folder := tmp_path / page.stem).mkdir()
    parts = parts_of(page)
    assert any(isinstance(part, Typed) for part in parts), "a page that shows nothing"
    shell = Shell(folder)
    try:
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            if isinstance(part, File):
                shell.save(part)
            else:
                asked = isinstance(after, Typed) and after.line == HOW_IT_ENDED
                shell.type(part, asked_how_it_ended=asked)
    finally:
        shell.leave()
