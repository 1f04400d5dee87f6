"""The sample texts that ship with the tests, Japanese and English, with the terms that a person found in them."""

from pathlib import Path

from tsuzuki.apps.glossary.records import Document

SAMPLES = Path(__file__).parent / "samples"


def sample(language: str) -> list[Document]:
    return [Document(file.name, file.read_text()) for file in sorted((SAMPLES / language).glob("*.md"))]


def gold(language: str) -> set[str]:
    return set((SAMPLES / language / "gold.txt").read_text().split("\n")) - {""}
