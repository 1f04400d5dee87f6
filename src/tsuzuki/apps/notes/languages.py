"""Whether a text is Japanese or English, as far as its letters tell: both borrow words of each other."""

import re
from typing import Final

NAMES: Final = {"ja": "Japanese", "en": "English"}
"""What can be told; others are named by whoever asks for them."""
_NO_WORDS: Final = re.compile(r"https?://\S+|`[^`\n]*`")
_KANA: Final = re.compile(r"[ぁ-ゖァ-ヺーｦ-ﾟ]")
_HAN: Final = re.compile(r"[々㐀-䶿一-鿿]")
_WORD: Final = re.compile(r"[A-Za-zÀ-ɏ]+")
_SMALL: Final = re.compile(
    r"(?:an?|and|are|as|at|be|by|for|from|has|have|how|in|is|its?|of|on|or|that|the|this|to|was|were|what|with)",
    re.IGNORECASE,
)
"""Words that stand between others in English: Japanese borrows names and terms, and none of these."""
_WEIGHT: Final = 3
"""How much more a small word counts than any other."""
_KANA_SHARE: Final = 10
"""Of so many signs at least one is kana in Japanese; Chinese has none."""


def speaks(text: str, language: str) -> bool:
    """Tells whether a text is in Japanese or in English; what has no letters is in both. Of others it tells nothing."""
    said = _NO_WORDS.sub(" ", text)
    letters = sum(map(str.isalpha, said))
    if language not in NAMES or not letters:
        return language in NAMES
    words = _WORD.findall(said)
    kana, latin = len(_KANA.findall(said)), sum(map(len, words))
    signs = kana + len(_HAN.findall(said))
    small = sum(_SMALL.fullmatch(word) is not None for word in words)
    from_the_east = signs > 0 and signs >= len(words) + _WEIGHT * small
    if language == "ja":
        return from_the_east and kana * _KANA_SHARE >= signs
    return not from_the_east and latin * 2 > letters
