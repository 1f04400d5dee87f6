"""Mappings whose keys JSON cannot tell apart, or has no word for: what would be lost of them is told."""

from collections.abc import Iterable
from typing import Any, Final

_NO_KEYS: Final = (tuple, frozenset)


def other_than_text(value: Any) -> bool:
    """Tells whether a mapping somewhere in lists and mappings has keys that are no texts: then look closer."""
    if isinstance(value, dict):
        if not {str}.issuperset(map(type, value)):
            return True
        parts: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    else:
        return False
    return any(other_than_text(part) for part in parts if isinstance(part, dict | list | tuple))


def lost(value: Any, back: Any, place: str = "") -> str:
    """Says which key of a value has not come back from JSON, and where; nothing where all have."""
    if isinstance(value, dict) and isinstance(back, dict):
        if gone := [key for key in value if isinstance(key, _NO_KEYS) and key not in back]:
            return f"{place} has the key {gone[0]!r}, which JSON has no word for"
        if len(back) < len(value):
            return f"{place} has keys that are one and the same in JSON: {_alike(value)}"
        pairs = zip(value, value.values(), back.values(), strict=False)
    elif isinstance(value, list | tuple) and isinstance(back, list | tuple):
        pairs = zip(range(len(value)), value, back, strict=False)
    else:
        return ""
    return next((told for key, part, its in pairs if (told := lost(part, its, f"{place}[{key!r}]"))), "")


def _alike(value: dict[Any, Any]) -> str:
    said: dict[str, list[str]] = {}
    for key in value:
        said.setdefault(str(key), []).append(repr(key))
    return " and ".join(next((keys for keys in said.values() if len(keys) > 1), map(repr, value)))
