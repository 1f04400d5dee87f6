"""The graph language: names, `>>`, `&`, `|` and parentheses, read by a parser of our own and never executed."""

import heapq
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from tsuzuki.yamlflow.document import Text
from tsuzuki.yamlflow.flaws import Flaws, Place, refused, shown
from tsuzuki.yamlflow.needs import NOTHING, Needs, all_of, any_of

NAME: Final = re.compile(r"\w+(?:-\w+)*")
MOST_TASKS: Final = 500
"""More are better said as a `map`, or as several flows."""
_MOST_NAMES: Final = 3000
"""How often tasks may be named; a text that names them more often only wants to keep its reader busy."""
_DEEPEST: Final = 50
_TOKEN: Final = re.compile(rf"(?P<name>{NAME.pattern})|(?P<sign>>>|[&|()])|(?P<newline>\n)|(?P<space>[^\S\n]+|#[^\n]*)")
_END: Final = "the end"


@dataclass(frozen=True)
class Graph:
    """Which task waits for which: the order of the tasks, what each needs, and what the whole run needs to succeed."""

    order: tuple[str, ...]
    needs: Mapping[str, Needs]
    ends: Needs

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.order)}

    @cached_property
    def _before(self) -> dict[str, int]:
        """Those before each task, as bits: a set of names for each would take a thousand times as much."""
        before: dict[str, int] = {}
        for name in self.order:
            bits = 0
            for needed in self.needs[name].names:
                bits |= before[needed] | 1 << self._numbers[needed]
            before[name] = bits
        return before

    def number(self, name: str) -> int:
        """Gives the place of a task in the order."""
        return self._numbers[name]

    def is_before(self, one: str, other: str) -> bool:
        """Tells whether a task has its place before another one in every run."""
        return bool(self._before[other] >> self._numbers[one] & 1)

    def before(self, name: str) -> list[str]:
        """Gives all tasks that come before one."""
        return [other for other in self.order if self.is_before(other, name)]

    @cached_property
    def last(self) -> tuple[str, ...]:
        """The tasks that nothing comes after."""
        followed = frozenset[str]().union(*(needs.names for needs in self.needs.values()))
        return tuple(name for name in self.order if name not in followed)

    def written(self) -> str:
        """Writes the graph in its own language: read again, it has the same needs and ends."""
        choices = set(self.last) - self.ends.all  # a line of its own would demand that each of them succeeds
        lines = [self._line(name) for name in self.order if name not in choices]

        def choice(name: str) -> str:
            if name not in choices:
                return name
            choices.discard(name)
            return self._line(name) if self.needs[name] == NOTHING else f"({self._line(name)})"

        lines += [Needs(any=(group,)).written(self.number, choice) for group in self.ends.any]
        return "\n".join(lines)

    def _line(self, name: str) -> str:
        needs = self.needs[name]
        return name if needs == NOTHING else f"{needs.written(self.number, bracketed=True)} >> {name}"


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Part(NamedTuple):
    """A part of the graph: the tasks it begins with, and what has to succeed before something may follow it."""

    heads: tuple[str, ...]
    tails: Needs
    sign: str = ""  # the sign that joins it, where no parentheses stand around it


def read_graph(text: Text) -> "Reading":
    """Parses a graph; what is said in it is checked by `Reading.graph`."""
    reading = Reading(text)
    reading.parse()
    return reading


class Reading:
    """A graph while it is read."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens = list(self._tokenised())
        self._next = 0
        self._depth = 0
        self._lines: list[Needs] = []
        self._waits: dict[str, list[Needs]] = {}
        self._named = 0
        self.first_seen: dict[str, int] = {}

    # Tokens

    def _tokenised(self) -> Iterator[_Token]:
        at, value, end = 0, self._text.value, 0
        while at < len(value):
            found = _TOKEN.match(value, at)
            if found is None:
                raise refused(
                    self._text.at(at),
                    f"{shown(value[at])} has no place in a graph; it is made of task names, >>, &, | and parentheses",
                )
            at = found.end()
            if found.lastgroup != "space":
                yield _Token(found.lastgroup or "", found[0], found.start())
                end = end if found.lastgroup == "newline" else at
        yield _Token("end", _END, end)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _skip_newlines(self) -> None:
        while self._peek().kind == "newline":
            self._next += 1

    def _sign(self) -> str:
        """Gives the sign that comes next, also on a later line: a line that begins with one goes on with the last."""
        ahead = self._next
        while self._tokens[ahead].kind == "newline":
            ahead += 1
        token = self._tokens[ahead]
        if token.kind == "sign" and token.text not in "()":
            self._next = ahead
            return token.text
        return ""

    # The grammar: line = part { ">>" part }, or part { "|" part }, or part { "&" part }

    def parse(self) -> None:
        """Reads all lines."""
        self._skip_newlines()
        while self._peek().kind != "end":
            self._lines.append(self._chain().tails)
            token = self._peek()
            if token.kind not in ("newline", "end"):
                raise self._unexpected(token)
            self._skip_newlines()
        if not self._lines:
            raise refused(self._text.place, "the graph is empty; name the tasks to run, for example `load >> report`")

    def _unexpected(self, token: _Token) -> Exception:
        what = (
            "the end"
            if token.kind == "end"
            else "the end of the line"
            if token.kind == "newline"
            else shown(token.text)
        )
        advice = "expected a task name or a group in parentheses"
        before = self._tokens[self._next - 1] if self._next else None
        if before is not None and (before.kind == "name" or before.text == ")"):
            advice = "expected >>, & or | before it, or a new line (write the graph as a block: `graph: |`)"
            if token.text == ")":
                advice = "there is no open parenthesis before it"
        if self._depth and token.kind == "end":
            advice = "a parenthesis is not closed"
        return refused(self._text.at(token.at), f"unexpected {what}: {advice}")

    def _chain(self) -> _Part:
        first = before = self._choice()
        while self._sign() == ">>":
            arrow = self._take()
            self._skip_newlines()
            after = self._choice()
            if before.sign or after.sign:
                raise refused(
                    self._text.at(arrow.at),
                    f">> and {before.sign or after.sign} stand side by side, which can be read in two ways; "
                    "use parentheses, for example a >> (b & c)",
                )
            for head in after.heads:
                self._waits[head].append(before.tails)
            before = after
        return _Part(first.heads, before.tails)

    def _choice(self) -> _Part:
        first = self._group()
        parts = [first, *self._more("|", self._group)]
        return first if len(parts) == 1 else _Part(_heads(parts), any_of(part.tails for part in parts), "|")

    def _group(self) -> _Part:
        first = self._atom()
        parts = [first, *self._more("&", self._atom)]
        return first if len(parts) == 1 else _Part(_heads(parts), all_of(part.tails for part in parts), "&")

    def _more(self, sign: str, read: Callable[[], _Part]) -> Iterator[_Part]:
        while self._sign() == sign:
            self._take()
            self._skip_newlines()
            yield read()

    def _atom(self) -> _Part:
        token = self._take()
        if token.kind == "name":
            self._count(token)
            return _Part((token.text,), Needs(frozenset({token.text})))
        if token.text != "(":
            self._next -= token.kind != "end"
            raise self._unexpected(token)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise refused(self._text.at(token.at), f"parentheses are nested deeper than {_DEEPEST} levels")
        self._skip_newlines()
        part = self._chain()
        self._skip_newlines()
        if self._peek().text != ")":
            raise self._unexpected(self._peek())
        self._take()
        self._depth -= 1
        return part

    def _count(self, token: _Token) -> None:
        self._named += 1
        self.first_seen.setdefault(token.text, token.at)
        self._waits.setdefault(token.text, [])
        if len(self.first_seen) > MOST_TASKS or self._named > _MOST_NAMES:
            raise refused(
                self._text.at(token.at),
                f"the graph has more than {MOST_TASKS} tasks, or names them more than {_MOST_NAMES} times; "
                "use `map` for many of a kind, or several flows",
            )

    # What it says

    def place_of(self, name: str) -> Place:
        """Gives the place where a name stands first."""
        return self._text.at(self.first_seen[name])

    def graph(self, flaws: Flaws) -> Graph | None:
        """Gives the graph, unless it runs in a circle."""
        needs = {name: all_of(waits) for name, waits in self._waits.items()}
        order = _sorted(needs, self.first_seen)
        if len(order) < len(needs):
            circle = _circle(needs, set(needs) - set(order), self.first_seen)
            place = self.place_of(circle[0])
            flaws.add(place, f"the graph runs in a circle: {' >> '.join(circle)}; take one of these arrows out")
            return None
        followed = frozenset[str]().union(*(n.names for n in needs.values()))
        return Graph(tuple(order), needs, all_of(line.without(followed) for line in self._lines))


def _heads(parts: list[_Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(head for part in parts for head in part.heads))


def _sorted(needs: Mapping[str, Needs], appearance: Mapping[str, int]) -> list[str]:
    """Sorts the tasks so that each comes after what it needs, otherwise as they appear; leaves circles out."""
    missing = {name: len(n.names) for name, n in needs.items()}
    followers: dict[str, list[str]] = {name: [] for name in needs}
    for name, n in needs.items():
        for needed in n.names:
            followers[needed].append(name)
    ready = [(appearance[name], name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for follower in followers[name]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, (appearance[follower], follower))
    return order


def _circle(needs: Mapping[str, Needs], left: set[str], appearance: Mapping[str, int]) -> list[str]:
    """Finds a circle among tasks of which each needs another one of them; it begins with what appears first."""
    name = min(left, key=appearance.__getitem__)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = min(needs[name].names & left, key=appearance.__getitem__)
    circle = path[path.index(name) :][::-1]
    start = circle.index(min(circle, key=appearance.__getitem__))
    return [*circle[start:], *circle[:start], circle[start]]
