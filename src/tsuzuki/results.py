"""What a map gives back."""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import msgspec

from tsuzuki.facts import Spent

R = TypeVar("R")


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item that failed for good: its key, its error, and how often it was tried."""

    key: str
    error: str
    error_type: str
    attempts: int
    detail: str = ""
    """What else is known of it, as JSON: of a question to a model, the last answer."""
    spent: tuple[Spent, ...] = ()
    """What it used that is paid for."""


class Collected(Sequence[R | Failure], Generic[R]):
    """The outcomes of a map in input order; where an item failed there is its `Failure`."""

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: list[R | Failure]) -> None:
        self._outcomes = outcomes

    @overload
    def __getitem__(self, index: int) -> R | Failure: ...
    @overload
    def __getitem__(self, index: slice) -> "Collected[R]": ...
    def __getitem__(self, index: int | slice) -> "R | Failure | Collected[R]":
        if isinstance(index, slice):
            return Collected(self._outcomes[index])
        return self._outcomes[index]

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[R | Failure]:
        return iter(self._outcomes)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # compared by value, like the list it stands for

    def __repr__(self) -> str:
        return f"Collected({self._outcomes!r})"

    @property
    def succeeded(self) -> list[R]:
        """The results of the items that succeeded, in input order."""
        return [outcome for outcome in self._outcomes if not isinstance(outcome, Failure)]

    @property
    def failed(self) -> list[Failure]:
        """The items that failed, in input order."""
        return [outcome for outcome in self._outcomes if isinstance(outcome, Failure)]


class Counts(msgspec.Struct, frozen=True):
    """The outcome of a map whose results are not kept."""

    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """The number of items."""
        return self.succeeded + self.failed
