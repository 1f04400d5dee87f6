"""Tells a disk that takes nothing more from what can fail for good: a run that meets one waits, and goes on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tsuzuki.errors import StoreUnavailable

PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""What a disk says that is full, or not there for a while."""


@contextmanager
def room() -> Iterator[None]:
    """Makes of what such a disk says the error that the engine knows: nothing has failed yet."""
    try:
        yield
    except OSError as error:
        if error.errno not in PASSING:
            raise
        why = error.strerror or "it cannot be written to"
        raise StoreUnavailable(f"the disk of the notes: {why}; free some space, and it goes on") from error
