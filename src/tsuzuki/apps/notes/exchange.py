"""Two files exchange their names in one moment, so that nothing of either is lost: Python has no call for it."""

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

_HERE: Final = -100
"""AT_FDCWD: names count from where the process is."""
_EXCHANGE: Final = 2
"""RENAME_EXCHANGE."""


def exchanged(one: str, other: str) -> bool:
    """Lets two files exchange their names; False where the system or the disk cannot do that, or one is not there."""
    call = _call()
    return call is not None and not call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)


@cache
def _call() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # noqa: PLC0415 - most imports replace nothing

    try:
        found: Callable[[int, bytes, int, bytes, int], int] = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # another C library
        return None
    return found
