"""Candidates in English: phrases between function words, weighed by how much they look like terms."""

import re
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from tsuzuki.apps.glossary.words import COMMON_ENGLISH, DETERMINERS, FUNCTION_WORDS, NOUNS, SINGLE, VERB_SIGNS

_SIGNS: Final = r"()\[\]{}\"“”|=<>…•·→*#\n\t;"
_BREAK: Final = re.compile(  # signs are looked at once, where they begin, so that no text takes more than linear time
    rf"(?<![.,:!?{_SIGNS}])[.,:!?{_SIGNS}]++(?=\s|$)|[{_SIGNS}]+|--+|\s[–—-]\s|—"
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-'’+.][A-Za-z0-9]+)*\+{0,2}")
_ACRONYM: Final = re.compile(r"[A-Z][A-Z0-9]{1,}s?")
_CAMEL: Final = re.compile(r"(?>[A-Za-z]+?[a-z0-9][A-Z])[A-Za-z0-9]*+|[A-Z]{2,}[a-z][A-Za-z]*")
_NO_NOUN: Final = re.compile(r".{2,}(?:ly|able|ible|ous|ful|ive|less|ish)$")
_PARTICIPLE: Final = re.compile(r".{3,}(?:ing|ed)$")
LONGEST: Final = 4
"""How many words a candidate may have."""
_LONGEST_WORD: Final = 100
"""What has more letters is no word, and is not looked at."""
_OFTEN: Final = 2
_SHORTEST: Final = 3


def singular(word: str) -> str:
    """Gives the singular of a word in small letters, by its ending; an acronym keeps its S, and loses a small one."""
    acronym = word.isupper() or bool(_ACRONYM.fullmatch(word))
    word = (word.removesuffix("s") if acronym else word).lower()
    if (
        acronym
        or len(word) <= _SHORTEST
        or not word.endswith("s")
        or word.endswith(("ss", "us", "is", "'s", "as", "os"))
    ):
        return word
    if word.endswith("ies") and len(word) > _SHORTEST + 1:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def special(word: str) -> bool:
    """Tells whether a word is spelled as no ordinary one: JetStream, NATS, HTTP2."""
    return bool(_ACRONYM.fullmatch(word) or _CAMEL.fullmatch(word) or (word != word.lower() and not word.isalpha()))


def no_noun(word: str) -> bool:
    """Tells whether a word ends as adverbs and adjectives do, and is no noun that happens to."""
    return bool(_NO_NOUN.fullmatch(word)) and word not in NOUNS


def key_of(words: list[str]) -> str:
    """Gives what spellings of a phrase have in common: small letters, singular."""
    return " ".join((*(word.lower() for word in words[:-1]), singular(words[-1])))


@dataclass(slots=True)
class Phrases:
    """What is counted of English phrases."""

    counts: Counter[str] = field(default_factory=Counter)
    """How often a phrase stands anywhere."""
    alone: Counter[str] = field(default_factory=Counter)
    """How often it stands between function words."""
    as_noun: Counter[str] = field(default_factory=Counter)
    as_verb: Counter[str] = field(default_factory=Counter)
    cased: Counter[str] = field(default_factory=Counter)
    forms: dict[str, str] = field(default_factory=dict)
    """How a phrase is spelled where it is not at the beginning of a sentence."""
    plural: Counter[str] = field(default_factory=Counter)
    """How often it ends as plurals do."""
    plurals: dict[str, str] = field(default_factory=dict)
    """How its last word is spelled there."""
    _read: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """What was read and not yet counted: texts repeat themselves, so each distinct phrase is looked at once."""

    @property
    def size(self) -> int:
        """How much is remembered."""
        return len(self.counts) + len(self._read)

    def read(self, text: str) -> None:
        """Counts the phrases of a text."""
        for chunk in _BREAK.split(text):
            if chunk:
                self._read_chunk([word for word in _WORD.findall(chunk) if len(word) <= _LONGEST_WORD])

    def _read_chunk(self, words: list[str]) -> None:
        gathered: list[str] = []
        left = first = ""
        for word in words:
            low = word.lower()
            if low in FUNCTION_WORDS:
                if gathered:
                    self._read[" ".join(gathered), left, not first] += 1
                    gathered = []
                left = first = low
            else:
                gathered.append(word)
        if gathered:
            self._read[" ".join(gathered), left, not first] += 1

    def settle(self) -> None:
        """Counts what was read."""
        for (phrase, left, begins), times in self._read.items():
            self._take(phrase.split(" "), left, times, begins=begins)
        self._read.clear()

    def _take(self, words: list[str], left: str, times: int, *, begins: bool) -> None:
        if left in SINGLE and len(words) > 1 and singular(words[-1]) != words[-1].lower():  # a run belongs to
            self.as_verb[singular(words[-1])] += times
            words = words[:-1]
        if left in DETERMINERS and len(words) == 1:  # of more words the last may be a verb: the worker waits
            self.as_noun[singular(words[-1])] += times
        elif left in VERB_SIGNS:
            self.as_verb[singular(words[0])] += times
        count = len(words)
        if count <= LONGEST:
            self.alone[key_of(words)] += times
        for size in range(1, min(count, LONGEST - 1) + 1):
            for at in range(count - size + 1):
                part = words[at : at + size]
                key = key_of(part)
                self.counts[key] += times
                if not key.endswith(read := part[-1].lower()):
                    self.plural[key] += times
                    self.plurals.setdefault(key, read)
                inside = part[1:] if begins and at == 0 else part
                if any(word != word.lower() for word in inside) or any(map(special, part)):
                    self.cased[key] += times
                    self.forms.setdefault(key, " ".join(part))

    def prune(self) -> None:
        """Forgets what was seen once, so that memory stays bounded."""
        self.settle()
        for counter in (self.counts, self.alone, self.as_noun, self.as_verb, self.cased, self.plural):
            for key in [key for key, count in counter.items() if count < _OFTEN]:
                del counter[key]
        self.forms = {key: form for key, form in self.forms.items() if key in self.cased}
        self.plurals = {key: form for key, form in self.plurals.items() if key in self.plural}

    def weighed(
        self, marks: Counter[str], meant: AbstractSet[str], least: int = _OFTEN
    ) -> Iterator[tuple[str, int, int, float]]:
        """Gives each phrase with its count, its number of words, and how much it looks like a term."""
        for key, count in self.counts.items():
            if count < least and not marks.get(key) and key not in meant:
                continue
            words = key.split(" ")
            weight = self._weight(key, words, count, marks.get(key, 0))
            if weight > 0:
                yield self.form(key, count), count, len(words), weight

    def form(self, key: str, count: int) -> str:
        """Gives the spelling of a phrase: with capitals where it mostly has them.

        What stands only as plurals do stays so: Kubernetes, physics and series have no singular.
        """
        cased = self.cased.get(key, 0) * 2 >= count and key in self.forms
        *head, last = (self.forms[key] if cased else key).split(" ")
        if self.plural.get(key, 0) < count or special(last):
            return " ".join((*head, _singular_form(last, key.rsplit(" ", 1)[-1])))
        return " ".join((*head, last if cased else self.plurals[key]))

    def _weight(self, key: str, words: list[str], count: int, marks: float) -> float:
        last, form = words[-1], self.form(key, count)
        if "'" in key or "’" in key or no_noun(last) or (not last.isalnum() and not special(form)):
            return 0.0
        if any(len(word) < _SHORTEST and not special(shown) for word, shown in zip(words, form.split(), strict=False)):
            return 0.0
        weight = 1.0
        if len(words) == 1:
            if special(form):
                return 1.0
            if last in FUNCTION_WORDS:  # others
                return 0.0
            weight = 0.5 if marks else 0.3
            weight *= 0.15 if last in COMMON_ENGLISH else 1.0
            weight *= 0.3 if _PARTICIPLE.fullmatch(last) else 1.0
        else:
            weight *= 0.3 + 0.7 * min(self.alone.get(key, 0) / count, 1.0)
            weight *= 0.3 if no_noun(words[0]) and words[0].endswith("ly") else 1.0
            weight *= 0.25 if any(self._plural(word) for word in words[:-1]) else 1.0  # bees leave
            weight *= 0.4 if _PARTICIPLE.fullmatch(last) and not last.endswith("ing") else 1.0
            weight *= 0.5 if all(word in COMMON_ENGLISH for word in words) else 1.0
            first_verb, first_noun = self.as_verb.get(singular(words[0]), 0), self.as_noun.get(singular(words[0]), 0)
            weight *= 0.25 if first_verb > first_noun else 1.0
        noun, verb = self.as_noun.get(last, 0), self.as_verb.get(last, 0)
        if verb > noun:
            weight *= 0.2
        elif not noun and not marks:
            weight *= 0.5
        return weight

    def _plural(self, word: str) -> bool:
        one = singular(word)
        return one != word and one in self.counts


def _singular_form(form: str, key: str) -> str:
    if len(form) > len(key) and form.lower().startswith(key):
        return form[: len(key)]
    if form.lower() != key and form.lower().endswith("ies"):
        return f"{form[:-3]}y"
    return form
