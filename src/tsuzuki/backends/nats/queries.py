"""Reads the named statements out of `queries.sql`, the only place of this store that spells SQL."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_NAMED: Final = re.compile(r"^-- (?P<name>\w+): .*\n(?P<statement>(?:(?!-- ).*\n?)+)", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


def _parse(text: str) -> Mapping[str, str]:
    named = {found["name"]: found["statement"].strip().rstrip(";") for found in _NAMED.finditer(text)}

    def filled(statement: str) -> str:
        return _PLACEHOLDER.sub(lambda part: filled(named[part[1]]), statement)

    return MappingProxyType({name: filled(statement) for name, statement in named.items()})


SQL: Final = _parse(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))
