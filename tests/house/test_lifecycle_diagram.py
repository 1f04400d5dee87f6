"""The picture of a run's life in the docs is drawn from the table."""

from pathlib import Path

from tsuzuki.lifecycle import diagram

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_diagram_in_the_docs_is_the_table() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert diagram() in text, f"put this into ARCHITECTURE.md:\n\n{diagram()}"
