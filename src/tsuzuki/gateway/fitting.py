"""Keeps the document of a run within a size: what is too large to send again and again is left out, and marked so."""

from typing import Any, Final

import msgspec

LEAST: Final = 4096
"""So many bytes of params and result are shown in any case."""
MARKED: Final = "({size:,} bytes left out; include=params gives them)"
MARK: Final = 64
"""About so many bytes has what stands in the place of a param."""


def fitted(document: dict[str, Any], most: int) -> dict[str, Any]:
    """Gives what to change in a document of more than so many bytes: its result left out, its params shortened.

    A result goes where it alone takes half of the room; `/result` gives it. Params go one by one, the largest first;
    `include=params` gives all of them.
    """
    params, result = bytes(document["params"]), bytes(document["result"] or b"")
    if len(params) + len(result) <= most // 2 or (size := len(msgspec.json.encode(document))) <= most:
        return {}
    room = max(most - (size - len(params) - len(result)), LEAST)
    changes: dict[str, Any] = {}
    if len(result) > room // 2 and len(params) + len(result) > room:
        changes |= {"result": None, "result_truncated": True}
        result = b""
    if len(params) + len(result) > room:
        changes |= {"params": _shortened(params, room - len(result)), "params_truncated": True}
    return changes


def _shortened(params: bytes, room: int) -> dict[str, Any]:
    """Gives params of about so many bytes: the small ones as they are, of the others how large they are."""
    parts = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    kept: dict[str, Any] = {}
    for left, name in zip(range(len(parts) - 1, -1, -1), sorted(parts, key=lambda name: len(parts[name])), strict=True):
        size = len(parts[name])
        shown = parts[name] if size <= max(room - left * MARK, MARK) else MARKED.format(size=size)
        room -= len(msgspec.json.encode(name)) + len(shown) + 4
        if room < 0:
            break
        kept[name] = shown
    return {name: kept[name] for name in parts if name in kept}
