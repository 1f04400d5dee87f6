"""Reads `.env` files: lines of NAME=VALUE, with comments, quotes and an optional `export`.

What shells do beyond that ($NAME, commands, values over several lines) is not done: a value means what it says.
"""

import re
from typing import Final

_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)", re.DOTALL)
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE: Final = re.compile(r"'([^']*)'\s*(?:#.*)?")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse(text: str) -> tuple[dict[str, str], list[int]]:
    """Gives the variables, the later of two winning, and the numbers of the lines that are none."""
    found: dict[str, str] = {}
    strange: list[int] = []
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            strange.append(number)
        else:
            found[match[1]] = _value(match[2])
    return found, strange


def _value(text: str) -> str:
    if quoted := _DOUBLE.fullmatch(text):
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted[1])
    if quoted := _SINGLE.fullmatch(text):
        return quoted[1]
    return re.split(r"(?<!\s)\s++#", text, maxsplit=1)[0].strip() if not text.startswith("#") else ""
