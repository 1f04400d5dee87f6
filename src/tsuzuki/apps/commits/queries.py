"""Reads the named statements out of `queries.sql`, which with the migrations spells all SQL of this application."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAMED: Final = re.compile(r"^-- (?P<name>\w+): .*\n(?P<statement>(?:(?!-- ).*\n?)+)", re.MULTILINE)
_PART: Final = re.compile(r"\{(\w+)\}")


def _parse(text: str) -> Mapping[str, str]:
    named = {found["name"]: found["statement"].strip().rstrip(";") for found in _NAMED.finditer(text)}
    return {name: _PART.sub(lambda part: named[part[1]], statement) for name, statement in named.items()}


SQL: Final = _parse(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))
