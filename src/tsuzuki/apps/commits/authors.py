"""Who wrote: authors are told apart by address, shown by name, and no name shows an address."""

import re
from collections.abc import Iterable
from typing import Final

from tsuzuki.apps.commits.ledger import Ledger

NAMELESS: Final = "(no name)"
_COMMANDING: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ADDRESS: Final = re.compile(r"(?<![^\s<>@])([^\s<>@]++)@[^\s<>@]+")


def shown_name(name: str) -> str:
    """Gives a name without an address: many who set up git write theirs where the name belongs.

    Signs that would command a terminal or turn the direction of a text are left out.
    """
    return _ADDRESS.sub(r"\1", _COMMANDING.sub("", name)).strip() or NAMELESS


class Authors:
    """The authors of a ledger, each with a name of their own, which is the same in every view."""

    def __init__(self, ledger: Ledger) -> None:
        self._plain = {int(number): shown_name(name) for number, name in ledger.all("authors")}
        taken = dict[str, int]()
        self._own = dict[int, str]()
        for number, name in self._plain.items():
            taken[name] = taken.get(name, 0) + 1
            self._own[number] = name if taken[name] == 1 else f"{name} ({taken[name]})"

    def name(self, number: int) -> str:
        """Gives the name of an author: a second one of the same name has a number after it."""
        return self._own[number]

    def called(self, names: Iterable[str]) -> list[int]:
        """Finds authors by their names, however they are capitalised; a name that several have means all of them."""
        wanted = {name.casefold() for name in names}
        return [
            number
            for number, name in self._plain.items()
            if name.casefold() in wanted or self._own[number].casefold() in wanted
        ]

    def names(self, numbers: Iterable[int]) -> list[str]:
        """Gives the names of some, each once."""
        return sorted({self._plain[number] for number in numbers})
