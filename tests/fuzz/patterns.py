"""Every regular expression of the package, and texts made to be slow for it.

A pattern is slow where a repetition can be left at many places and what follows fails at each of them, or where a
search begins anew at each sign of a long repetition. So each repetition of a pattern is pumped: what leads to it
once, its own signs many times, and a sign that nothing takes.
"""

import ast
import importlib
import pkgutil
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import tsuzuki

kinds: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
SOURCES: Final = Path(tsuzuki.__file__).parent
_SIGNS: Final = "a0 \t\n-_./:#'\"`*<[({|,=@あ漢ア。「\\\ue202\ud83d"
METHODS: Final = frozenset({"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
_MOST_TEXTS: Final = 60


Nodes = Mapping[Path, list[ast.Call | ast.Attribute]]
"""The calls and attributes of each file."""


class Found(NamedTuple):
    """A pattern, and by which methods the package asks it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def patterns() -> list[Found]:
    """Return every pattern that the package asks something."""
    texts = {path: path.read_text() for path in sorted(SOURCES.rglob("*.py"))}
    nodes = {
        path: [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call | ast.Attribute)]
        for path, text in texts.items()
        if any(f".{method}" in text for method in METHODS)
    }
    return [found for found in (*_of_modules(nodes), *_inline(nodes)) if found.methods]


def _of_modules(nodes: Nodes) -> Iterator[Found]:
    everywhere = _asked(chain(*nodes.values()))
    for module in pkgutil.walk_packages(tsuzuki.__path__, "tsuzuki."):
        if module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        own = _asked(nodes.get(Path(str(loaded.__file__)), ()))
        for name, value in vars(loaded).items():
            for each in _inside(value, 4):
                # Patterns in a table are asked by another name.
                methods = (own if name.startswith("_") else everywhere).get(name, set())
                in_table = not isinstance(value, re.Pattern)
                yield Found(f"{module.name}.{name}", each, frozenset({"search", "finditer"} if in_table else methods))


def _asked(nodes: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Tell by which methods a name is asked."""
    asked: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            asked.setdefault(ast.unparse(node.value).rpartition(".")[2], set()).add(node.attr)
    return asked


def _inside(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        yield from (each for part in (*value, *value.values()) for each in _inside(part, depth - 1))
    elif depth and isinstance(value, list | tuple | frozenset | set):
        yield from (each for part in value for each in _inside(part, depth - 1))


def _inline(nodes: Nodes) -> Iterator[Found]:
    """Find calls such as `re.search("…", text)`; what a formatted one puts in is taken for an x."""
    for path, its_nodes in nodes.items():
        for node in its_nodes:
            if isinstance(node, ast.Call) and _asks_re(node.func) and node.args:
                text = _text_of(node.args[0])
                flags = re.DOTALL if "DOTALL" in ast.unparse(node) else re.NOFLAG
                if text is not None:
                    place = f"{path.relative_to(SOURCES)}:{node.lineno}"
                    yield Found(place, re.compile(text, flags), frozenset({node.func.attr}))  # type: ignore[attr-defined]


def _asks_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in METHODS and ast.unparse(function.value) == "re"


def _text_of(node: ast.expr) -> str | bytes | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | bytes) else None
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
        try:
            re.compile("".join(map(str, parts)))
        except re.error:
            return None
        return "".join(map(str, parts))
    return None


def slow_texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Make texts of about so many signs of which each repetition of a pattern would have to look at all again."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    made = dict.fromkeys(_pumped(list(parser.parse(text, pattern.flags & ~re.UNICODE)), "", length))
    chosen = sorted(random.Random(1).sample(sorted(made), min(len(made), _MOST_TEXTS)))
    yield from (each.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else each for each in chosen)


def _pumped(tokens: list[Any], before: str, length: int) -> Iterator[str]:
    for kind, body in tokens:
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            _, most, inner = body
            if most > 1000:
                for sign, last in product(_each(list(inner)), "\0x"):
                    yield before + sign * (length // len(sign)) + last
                    yield (before + sign) * (length // len(before + sign)) + last
            yield from _pumped(list(inner), before, length)
        elif kind is kinds.SUBPATTERN:
            yield from _pumped(list(body[3]), before, length)
        elif kind is kinds.ATOMIC_GROUP:
            yield from _pumped(list(body), before, length)
        elif kind is kinds.BRANCH:
            for branch in body[1]:
                yield from _pumped(list(branch), before, length)
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            yield from _pumped(list(body[1]), before, length)
        before += next(_sample([(kind, body)]), "")


def _each(tokens: list[Any]) -> Iterator[str]:
    """Give some texts that a repetition takes, the shortest that differ."""
    yield from dict.fromkeys(islice((each for each in _sample(tokens) if each), 3))


def _sample(tokens: list[Any]) -> Iterator[str]:
    """Give texts that a part of a pattern takes."""
    choices = [list(islice(_of_token(*token), 6)) or [""] for token in tokens]
    longest = max(map(len, choices), default=1)
    for number in range(longest):
        yield "".join(choice[number % len(choice)] for choice in choices)


def _of_token(kind: Any, body: Any) -> Iterator[str]:
    if kind is kinds.LITERAL:
        yield chr(body)
    elif kind is kinds.ANY:
        yield from "a \t"
    elif kind is kinds.NOT_LITERAL:
        yield from (sign for sign in _SIGNS if ord(sign) != body)
    elif kind is kinds.IN:
        inside = re.compile(_class_of(body))
        yield from (sign for sign in (*_SIGNS, *_named(body)) if inside.fullmatch(sign))
    elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
        least, most, inner = body
        yield from (each * max(least, min(1, most)) for each in _sample(list(inner)))
    elif kind is kinds.SUBPATTERN:
        yield from _sample(list(body[3]))
    elif kind is kinds.ATOMIC_GROUP:
        yield from _sample(list(body))
    elif kind is kinds.BRANCH:
        for branch in body[1]:
            yield from _sample(list(branch))


def _named(body: list[Any]) -> Iterator[str]:
    for kind, value in body:
        if kind is kinds.LITERAL:
            yield chr(value)
        elif kind is kinds.RANGE:
            yield chr(value[0])


def _class_of(body: list[Any]) -> str:
    parts: list[str] = []
    for kind, value in body:
        if kind is kinds.NEGATE:
            parts.insert(0, "^")
        elif kind is kinds.LITERAL:
            parts.append(f"\\U{value:08x}")
        elif kind is kinds.RANGE:
            parts.append(f"\\U{value[0]:08x}-\\U{value[1]:08x}")
        elif kind is kinds.CATEGORY:
            letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rpartition("_")[2]]
            parts.append("\\" + (letter.upper() if "_NOT_" in str(value) else letter))
    return f"[{''.join(parts)}]"
