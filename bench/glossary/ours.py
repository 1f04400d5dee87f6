"""The works of the application: precision on two samples, candidates and occurrences over many documents."""

import random
import resource
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.process import Figures
from tests.apps.glossary.sample_texts import gold, sample
from tsuzuki.apps.glossary.candidates import find_candidates
from tsuzuki.apps.glossary.occurrences import TermIndex, find_occurrences
from tsuzuki.apps.glossary.offline import category_of
from tsuzuki.apps.glossary.records import Category, Document

TOP: Final = 20
SIZE: Final = 10_000
LANGUAGES: Final = ("ja", "en")
_SYLLABLES: Final = (
    "ka",
    "to",
    "mi",
    "ren",
    "sol",
    "var",
    "di",
    "qua",
    "lum",
    "ber",
    "tor",
    "nex",
    "pha",
    "gri",
    "zan",
)
_KANJI: Final = (
    "量子計算処理分散同期非記録台帳仕訳検証認可鍵束符号復元経路索引区画層圧縮展開転送監視制御装置回線端末基盤資源"
)
_KATAKANA: Final = ("サーバー", "ノード", "キュー", "ログ", "レコード", "ストリーム", "バッチ", "カーソル", "トークン")


def precision(folder: Path, which: int) -> Figures:
    """How many of the first 20 terms that the offline rules find are in the gold list."""
    del folder
    language = LANGUAGES[which]
    found = [each.text for each in find_candidates(sample(language)) if category_of(each.text) != Category.COMMON_NOUN]
    right = gold(language)
    return {"precision": sum(term in right for term in found[:TOP]) / TOP, "recall": len(right & {*found}) / len(right)}


def candidates(folder: Path, count: int, which: int) -> Figures:
    """Candidates out of so many documents of 10 KB, read one after the other; and the memory that it took."""
    language = LANGUAGES[which]
    files = written(folder, count, language)
    find_candidates(sample(language))  # dictionaries are loaded once for a process
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = perf_counter()
    found = find_candidates(read(files))
    seconds = perf_counter() - began
    assert len(found) > TOP
    characters = sum(len(document.content) for document in read(files))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rate": characters / seconds, "mb": peak, "grown": peak - before}


def occurrences(folder: Path, count: int, terms: int, which: int) -> Figures:
    """Occurrences of so many terms in so many documents of 10 KB."""
    language = LANGUAGES[which]
    files = written(folder, count, language)
    names = {each: each for each in _words(random.Random(7), terms, language)}
    began = perf_counter()
    find_occurrences(read(files), TermIndex(names))
    seconds = perf_counter() - began
    characters = sum(len(document.content) for document in read(files))
    return {"rate": characters / seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def written(folder: Path, count: int, language: str) -> list[Path]:
    """Writes documents of 10 KB: sentences of the sample with words of their own between them."""
    chance = random.Random(1)
    lines = [line for document in sample(language) for line in document.content.split("\n") if line.strip()]
    words = _words(random.Random(7), 5000, language)
    files = []
    for number in range(count):
        text = f"# {chance.choice(words)}\n\n"
        while len(text.encode()) < SIZE:
            glue, end = ("は", "。") if language == "ja" else (" is about the ", ".")
            text += f"{chance.choice(lines)}\n{chance.choice(words)}{glue}{chance.choice(words)}{end}\n"
        file = folder / f"{number}.md"
        file.write_text(text)
        files.append(file)
    return files


def read(files: list[Path]) -> Iterator[Document]:
    for file in files:
        yield Document(file.name, file.read_text())


def _words(chance: random.Random, count: int, language: str) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < count:
        if language == "ja":
            made["".join(chance.sample(_KANJI, chance.randint(2, 4))) + chance.choice(("", *_KATAKANA))] = None
        else:
            made[" ".join("".join(chance.sample(_SYLLABLES, 3)) for _ in range(chance.randint(1, 2)))] = None
    return list(made)
