"""Text without a model, for the rules of the offline provider: sentences, words, and summaries made of sentences.

Japanese words come from SudachiPy with its small dictionary where the extra `ja` is installed, else from runs of one
script: 東京タワーへ行く is 東京, タワー, へ, 行, く.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

_END: Final = re.compile(r"(?<=[。！？!?])[」』）)\"'”’]*|(?<=[a-zA-Z0-9)\"'”’][.!?])\s+(?=[\"'“‘(`A-Z0-9])|\n\s*\n")
_ABBREVIATIONS: Final = frozenset(
    {"mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "e.g.", "i.e.", "etc.", "vs.", "no.", "fig."}
)
_LONGEST: Final = 16_000
"""How much SudachiPy takes at once (characters; it counts bytes, and refuses more than 49,149)."""
_SPEECH: Final = ("「」", "『』", "（）")
_LONGEST_SPEECH: Final = 400
"""After so much a bracket was forgotten (characters)."""
_COMMON: Final = frozenset(
    """
    a an and are as at be but by for from has have he her his i in into is it its not of on or our she so that the
    their them they this to was we were which who will with you your
    の に は を た が で て と し れ さ ある いる も する から な こと として い や れる など なっ ない この ため
    その あっ よう また もの という あり まで られ なる へ か だ これ によって により おり より による ず なり られる
    において ば なかっ なく しかし について せ だっ です ます
    """.split()  # noqa: SIM905 - words are read more easily than a list of them
)
"""Words that say little about what a text is about."""
_SCRIPTS: Final = (
    ("HIRAGANA", "hiragana"),
    ("KATAKANA", "katakana"),
    ("CJK UNIFIED", "kanji"),
    ("CJK COMPATIBILITY IDEOGRAPH", "kanji"),
)
_REFUSAL: Final = re.compile(
    r"(?:i['’]?m |i am |we['’]?re )?(?:very |so |truly )?(?:sorry\b(?! (?:for|about) )|afraid\b|unable\b)|"
    r"i (?:cannot|can['’]?t|won['’]?t)\b|as an ai\b|申し訳(?:あり|ござい|ない)|すみません|ごめんなさい|"
    r"(?:お手伝い|お答え|対応|回答)(?:は|することは)?できません",
    re.IGNORECASE,
)
_LONGEST_REFUSAL: Final = 300


def refuses(text: str) -> bool:
    """Tell whether a model refuses in words: a short answer that begins as refusals do."""
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None


def sentences(text: str) -> list[str]:
    """Splits a text into sentences, Japanese and English; abbreviations and decimals do not end one."""
    parts: list[str] = []
    start = 0
    for found in _END.finditer(text):
        end = found.end()
        piece = text[start:end]
        if piece.strip() and not _goes_on(piece, text[end : end + 1]):
            parts.append(piece)
            start = end
    parts.append(text[start:])
    return [" ".join(part.split()) for part in parts if part.strip()]


def _goes_on(piece: str, following: str) -> bool:
    """Tells whether a sentence goes on: after an abbreviation, within speech, and with what is said of that."""
    if piece.isascii():
        return piece.rsplit(maxsplit=1)[-1].lower() in _ABBREVIATIONS
    if piece[-1:].isspace() and "\n" in piece[-2:]:
        return False  # a paragraph ends all that it has opened
    said = len(piece) < _LONGEST_SPEECH and any(piece.count(begin) > piece.count(end) for begin, end in _SPEECH)
    told = piece[-1:] in "」』）" and "\u3041" <= following <= "\u3096"
    return said or told or piece.rsplit(maxsplit=1)[-1].lower() in _ABBREVIATIONS


def words(text: str) -> list[str]:
    """Splits a text into words: with SudachiPy where it is installed, else by script."""
    dictionary = japanese()
    if dictionary is None or not any(_script(letter) in ("hiragana", "katakana", "kanji") for letter in text):
        return script_runs(text)
    found: list[str] = []
    for start in range(0, len(text), _LONGEST):
        found += [token.surface() for token in dictionary.tokenize(text[start : start + _LONGEST])]
    return [word for word in found if any(letter.isalnum() for letter in word)]


def script_runs(text: str) -> list[str]:
    """Splits a text where its script changes: runs of kanji, of katakana, of hiragana, of letters and digits."""
    runs: list[str] = []
    before = ""
    for letter in text:
        script = _script(letter)
        if script and script == before:
            runs[-1] += letter
        elif script:
            runs.append(letter)
        before = script
    return runs


def _script(letter: str) -> str:
    """Says which script a letter is of; "" for what is none. The long mark of kana goes with katakana."""
    if letter.isascii():
        return "latin" if letter.isalnum() or letter in "_'" else ""
    if letter in "ー・" or "\uff66" <= letter <= "\uff9f":
        return "katakana" if letter != "・" else ""
    if letter in "々〆":
        return "kanji"
    name = unicodedata.name(letter, "")
    for beginning, script in _SCRIPTS:
        if name.startswith(beginning):
            return script
    return "latin" if letter.isalnum() or unicodedata.category(letter).startswith("M") else ""


@cache
def japanese() -> Any:
    """Gives what knows Japanese words; None where the extra is not installed."""
    try:
        from sudachipy import Dictionary, SplitMode  # type: ignore[import-untyped] # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    return Dictionary(dict="small").tokenizer(SplitMode.C)


def summary(text: str, count: int = 3) -> list[str]:
    """Gives the sentences that say most about a text, in the order in which they stand there.

    A sentence says much when it has words that the text often has and every text does not; later ones a little less.
    """
    every = sentences(text)
    if len(every) <= count:
        return every
    bags = [[word for each in words(sentence) if (word := each.lower()) not in _COMMON] for sentence in every]
    weights = Counter(word for bag in bags for word in bag)
    scores = [_score(bag, weights) / math.log(number + 3) for number, bag in enumerate(bags)]
    best = sorted(range(len(every)), key=lambda number: (-scores[number], number))[:count]
    return [every[number] for number in sorted(best)]


def _score(bag: Sequence[str], weights: Counter[str]) -> float:
    """Gives the mean weight of a sentence's words; very short ones say less than they seem to."""
    if not bag:
        return 0.0
    return sum(weights[word] for word in set(bag)) / (len(set(bag)) + 2)
