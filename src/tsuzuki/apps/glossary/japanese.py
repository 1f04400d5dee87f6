"""Candidates in Japanese: runs of kanji, katakana and letters, of which SudachiPy keeps the nouns.

Texts repeat themselves: each distinct run is analysed once, however often it stands in the documents.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tsuzuki import extras, llm
from tsuzuki.apps.glossary.words import COMMON_JAPANESE, LEADING_JAPANESE, TRAILING_JAPANESE

_SOLID: Final = r"[\u3400-\u4dbf\u4e00-\u9fff\u3005\u3006\u30f6\u30a1-\u30f4\u30fc]"
_LATIN: Final = r"[A-Za-z][A-Za-z0-9+#]*+(?:[.\-_/][A-Za-z0-9]++)*+"
_KANA: Final = "[りみきちしいびぎえけせてれめげべ]"
_PART: Final = f"(?:{_SOLID}|{_LATIN}|(?<=[\u30a1-\u30fc])・(?={_SOLID})|(?<![0-9])[0-9]++(?={_SOLID}))"
_NOUN_END: Final = f"(?:(?<=[\u4e00-\u9fff]){_KANA}(?=[はがをにのでともや、。・（）「」\\s]|$))"
"""Kana that end a noun, as in 仕込み: what follows is a particle or nothing."""
_VERB: Final = "[りるれろっむめみまびべぶくけきいえうんすせそたちつてぎぐげ]"
_RUN: Final = re.compile(
    # Nothing is tried twice (++, {1,9}+), so that no text takes more than linear time. A compound with kana inside
    # must not be the stem of a verb: 読み込みキュー is one, 読み込む is not.
    f"{_PART}++(?:(?<=[\u4e00-\u9fff]){_KANA}{_PART}++){{1,9}}+(?:{_NOUN_END}|(?!{_VERB}))|{_PART}++{_NOUN_END}?",
    re.MULTILINE,
)
_KANJI: Final = re.compile(r"[\u3400-\u9fff]")
_KATAKANA: Final = re.compile(r"[\u30a1-\u30fc・]+")
_NUMBER: Final = re.compile(
    r"[0-9一二三四五六七八九十百千万]+(?:年|月|日|時|分|秒|円|回|個|本|枚|台|名|件|度|倍|人|つ|章|節|%)?"
)
LONGEST: Final = 30
_MOST: Final = 10_000
"""How many characters SudachiPy is given at once; it refuses far more, and no run of words is so long."""
_SHORTEST_RUN: Final = 2
_TIMES: Final = 3
"""Of so many words is a number of times with the stem of a verb."""
_TURN: Final = threading.Lock()
"""A tokenizer of SudachiPy is for one thread at a time."""


class Token(NamedTuple):
    """A word in a run: its text, its part of speech, and what kind of noun it is."""

    text: str
    kind: str
    detail: str
    name: str


class Phrase(NamedTuple):
    """A noun or a compound of nouns; `weight` says how much it looks like a term."""

    text: str
    words: int
    weight: float


def runs(text: str) -> Counter[str]:
    """Counts the runs of a text that may be terms."""
    return Counter(run for run in _RUN.findall(text) if len(run) >= _SHORTEST_RUN)


@lru_cache(maxsize=65_536)
def phrases(run: str) -> tuple[Phrase, ...]:
    """Gives the nouns and compounds in a run."""
    tokens = tokenized(run)
    found: list[Phrase] = []
    gathered: list[Token] = []
    for at, token in enumerate(tokens):
        if _belongs(token, tokens[at + 1] if at + 1 < len(tokens) else None):
            gathered.append(token)
        else:
            found += _phrase(gathered)
            gathered = []
    return tuple(found + _phrase(gathered))


def tokenized(text: str) -> list[Token]:
    """Splits a text into words with their kinds; without SudachiPy all are nouns, split by script."""
    dictionary = llm.text.japanese()
    if dictionary is None:
        return [Token(word, "名詞", "普通名詞", "一般") for word in llm.text.script_runs(text)]
    with _TURN:
        parts = (text[at : at + _MOST] for at in range(0, len(text), _MOST))
        return [_token(each) for part in parts for each in dictionary.tokenize(part)]


def unaided(terms: Iterable[str]) -> str:
    """Says what would know the words of Japanese terms, where it is not installed; else nothing."""
    if llm.text.japanese() is not None or not any(_KANJI.search(term) or _KATAKANA.search(term) for term in terms):
        return ""
    return f"Japanese words were told apart by their script only; the extra `ja` knows them: {extras.installing('ja')}"


def _token(morpheme: Any) -> Token:
    kind, detail, name, *_ = morpheme.part_of_speech()
    return Token(morpheme.surface(), kind, detail, name)


def _belongs(token: Token, following: Token | None) -> bool:
    """Tells whether a word can be a part of a compound."""
    if token.kind in ("名詞", "接頭辞"):
        return True
    if token.kind == "接尾辞":
        return token.detail == "名詞的"
    if token.kind in ("形状詞", "動詞"):  # 可用性, 読み取り専用
        noun = following is not None and following.kind in ("名詞", "接尾辞")
        return noun and bool(_KANJI.search(token.text) or token.kind == "形状詞")
    if token.kind == "記号":
        return token.text == "・"
    return token.text.isascii() and token.text.isalnum()


def _phrase(tokens: list[Token]) -> list[Phrase]:
    while tokens and (tokens[0].text in LEADING_JAPANESE or tokens[0].kind == "接尾辞"):
        tokens = tokens[1:]
    while tokens and (tokens[-1].text in TRAILING_JAPANESE or tokens[-1].kind == "接頭辞"):
        tokens = tokens[:-1]
    if len(tokens) == _TIMES and tokens[0].detail == "数詞" and tokens[1].text in "度回" and len(tokens[2].text) == 1:
        return []  # 二度行う
    text = "".join(token.text for token in tokens)
    if not _SHORTEST_RUN <= len(text) <= LONGEST or _NUMBER.fullmatch(text) or text in COMMON_JAPANESE:
        return []
    if text.isascii() and not is_name(text):
        return []
    return [Phrase(text, len(tokens), _weight(tokens, text))]


def is_name(text: str) -> bool:
    """Tells whether letters between Japanese look like a name: capitals, or a sign or digit inside."""
    return len(text) > 1 and (text != text.lower() or any(not sign.isalpha() for sign in text))


def _weight(tokens: list[Token], text: str) -> float:
    if len(tokens) > 1:
        general = sum(token.text in COMMON_JAPANESE for token in tokens)
        repeated = any(one.text == other.text for one, other in pairwise(tokens))
        return (0.3 if repeated else 1.0) * (0.6 if general == len(tokens) else 1.0)
    only = tokens[0]
    if only.detail == "固有名詞" or text.isascii():
        return 0.9
    if _KATAKANA.fullmatch(text):
        return 0.8
    if only.name in ("サ変可能", "副詞可能", "助数詞可能"):
        return 0.15
    return 0.35
