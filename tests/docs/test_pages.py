"""Whatever the tutorial and the how-tos say to save and to type does what they say."""

from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT
from tests.docs.snippets import Typed, parts_of, typed_in

PAGES = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]


@pytest.mark.timeout(300)  # everything that a reader types, one after another
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    parts = parts_of(page)
    assert any(isinstance(part, Typed) for part in parts), "a page that shows nothing"
    typed_in(tmp_path / page.stem, parts)
