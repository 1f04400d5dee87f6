"""How much fits on a terminal: how wide it is, how narrow columns may become, and where a long line is broken."""

import os
import re
import shutil
from collections.abc import Sequence
from typing import Final, TextIO
from unicodedata import east_asian_width

_NARROWEST: Final = 10
"""No column of a table becomes narrower; what does not fit then is cut off at the edge."""
_PIECES: Final = re.compile(r"\s+|\S+")


def columns(text: str) -> int:
    """Gives how many columns of a terminal a text takes: 続き takes four."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in text)


def width_of(stream: TextIO) -> int:
    """Gives how many columns a terminal has: that of the stream, which need not be that of stdout."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def squeezed(widths: Sequence[int], fixed: Sequence[bool], room: int) -> list[int]:
    """Gives the widths of columns that fit into so much room: the widest give way first, those with numbers never."""
    fit = list(widths)
    while sum(fit) + 2 * (len(fit) - 1) > room:
        widest = max((at for at, whole in enumerate(fixed) if not whole), key=fit.__getitem__, default=-1)
        if widest < 0 or fit[widest] <= _NARROWEST:
            break
        fit[widest] -= 1
    return fit


def broken(line: str, stream: TextIO, indent: int = 2) -> str:
    """Breaks a line that is wider than the terminal, where the stream is one: between words, and wide signs.

    It goes on below, indented. A word that is wider than the terminal itself, such as an address, stays whole.
    """
    if not stream.isatty() or columns(line) <= (width := width_of(stream)):
        return line
    lines, at = [""], 0
    for piece in _PIECES.findall(line):
        for part in [piece] if piece.isascii() else _parts(piece):
            took = columns(part)
            if at + took > width and at > indent:
                lines.append(" " * indent)
                at = indent
                if part.isspace():
                    continue
            lines[-1] += part
            at += took
    return "\n".join(each.rstrip() for each in lines)


def _parts(word: str) -> list[str]:
    """Cuts a word before and after each wide sign."""
    return re.findall(r"[\x00-\x7f]+|[^\x00-\x7f]", word)
