"""What a value of the document is: the core schema of YAML 1.2; what readers of YAML disagree about is refused."""

import math
import re
from typing import Any, Final

from tsuzuki.yamlflow.document import Fields, Items, Node, Text
from tsuzuki.yamlflow.flaws import Flaws, shown

_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_RADIX: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DISPUTED: Final = re.compile(
    r"(?:yes|no|on|off)"  # booleans to YAML 1.1
    r"|[-+]?0[0-9]+(?:\.[0-9]*)?"  # octal to some, decimal to others
    r"|[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?"  # base 60 to YAML 1.1
    r"|[-+]?0b[01_]+|[-+]?[0-9]+_[0-9_.]*"  # numbers to YAML 1.1 alone
    r"|[-+]?\.inf|\.nan",  # numbers that JSON does not have
    re.IGNORECASE,
)
_LARGEST: Final = 2**63
_LONGEST: Final = 400
"""So many characters of a number are converted; Python takes long for far more, and then refuses."""


def value_of(node: Node, flaws: Flaws) -> Any:
    """Gives a node as plain values: texts, numbers, booleans, null, lists and mappings."""
    match node:
        case Text():
            return scalar(node, flaws)
        case Items():
            return [value_of(item, flaws) for item in node.items]
        case Fields():
            return {key.value: value_of(value, flaws) for key, value in node.fields}


def is_null(node: Node) -> bool:
    """Tells whether a node stands for nothing."""
    return isinstance(node, Text) and node.plain and node.value in _WORDS and _WORDS[node.value] is None


def scalar(text: Text, flaws: Flaws) -> str | int | float | bool | None:
    """Gives what a scalar stands for."""
    value = text.value
    if not text.plain:
        return value
    if value in _WORDS:
        return _WORDS[value]
    if _DISPUTED.fullmatch(value):
        advice = f'put it in quotes ("{value[:40]}") if it is a text, or write the number or true/false plainly'
        flaws.add(text.place, f"{shown(value)} means different things to different readers of YAML; {advice}")
        return value
    return _number(text, flaws)


def _number(text: Text, flaws: Flaws) -> str | int | float:
    value = text.value
    whole = _INTEGER.fullmatch(value) or _RADIX.fullmatch(value)
    if whole is None and _FLOAT.fullmatch(value) is None:
        return value
    number: int | float = math.inf
    if len(value) <= _LONGEST:
        number = int(value, 0) if whole else float(value)
    if math.isinf(number) or (whole and not -_LARGEST <= number < _LARGEST):
        flaws.add(text.place, f"the number {shown(value)} is too large; put it in quotes if it is a text")
        return 0
    return number
