"""Reads named statements out of a file of SQL: a name, one sentence, the statement, with the parts that it names."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_NAMED: Final = re.compile(r"^-- (?P<name>\w+): .*\n(?P<statement>(?:(?!-- ).*\n?)+)", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


def read(path: Path) -> Mapping[str, str]:
    """Reads a file of statements."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Mapping[str, str]:
    """Gives the statements by name, each with the parts that it names put in."""
    named = {found["name"]: found["statement"].strip().rstrip(";") for found in _NAMED.finditer(text)}
    return MappingProxyType({name: _filled(statement, named) for name, statement in named.items()})


def _filled(statement: str, named: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda part: _filled(named[part[1]], named), statement)
