"""What has to have succeeded before something may begin: all of these, and any of those."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Needs:
    """All of some tasks, and of each group of alternatives at least one."""

    all: frozenset[str] = frozenset()
    any: tuple[tuple["Needs", ...], ...] = ()
    names: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        inner = (choice.names for group in self.any for choice in group)
        object.__setattr__(self, "names", self.all.union(*inner))

    def met(self, done: AbstractSet[str]) -> bool:
        """Tells whether those that have succeeded are enough."""
        return self.all <= done and all(any(choice.met(done) for choice in group) for group in self.any)

    def chosen(self, done: AbstractSet[str]) -> frozenset[str]:
        """Gives those that it is met by: all, and of the alternatives those that are met."""
        met = (choice.chosen(done) for group in self.any for choice in group if choice.met(done))
        return self.all.union(*met)

    def without(self, unneeded: AbstractSet[str]) -> "Needs":
        """Gives what is left when some tasks need not be asked for; alternatives stay as they are."""
        return Needs(self.all - unneeded, self.any)

    def written(self, place: Callable[[str], int], name: Callable[[str], str] = str, *, bracketed: bool = False) -> str:
        """Writes it in the graph language.

        `place` tells where a name stands in the order of the graph, and `name` how it is written.
        """
        parts = [name(one) for one in sorted(self.all, key=place)]
        parts += [f"({' | '.join(one.written(place, name, bracketed=True) for one in group)})" for group in self.any]
        text = " & ".join(parts)
        return f"({text})" if bracketed and len(parts) > 1 else text


NOTHING: Final = Needs()


def all_of(parts: Iterable[Needs]) -> Needs:
    """Combines needs that must all be met."""
    several = list(parts)
    if len(several) == 1:
        return several[0]
    groups = dict.fromkeys(group for part in several for group in part.any)
    return Needs(frozenset[str]().union(*(part.all for part in several)), tuple(groups))


def any_of(parts: Iterable[Needs]) -> Needs:
    """Combines needs of which one is enough."""
    choices: dict[Needs, None] = {}
    for part in parts:
        inner = part.any[0] if not part.all and len(part.any) == 1 else (part,)
        choices.update(dict.fromkeys(inner))
    return next(iter(choices)) if len(choices) == 1 else Needs(any=(tuple(choices),))
