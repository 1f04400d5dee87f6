"""Tells a disk that takes nothing more from what can fail for good: a run that meets one waits, and goes on."""

import errno
from types import TracebackType
from typing import Final

from tsuzuki.apps.notes.refusals import both
from tsuzuki.errors import StoreUnavailable

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
PASSING: Final = FULL | {errno.EIO, errno.EROFS}
"""What a disk says that is full, or not there for a while."""


class room:  # noqa: N801 - said as `with room():`
    """Makes of what such a disk says the error that the engine knows: nothing has failed yet."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raises that error in place of the disk's."""
        if isinstance(error, OSError) and error.errno in PASSING:
            why = error.strerror or "it cannot be written to"
            full = error.errno in FULL
            advice = "free some space" if full else "make it writable again"
            remedy = "空き容量を増やして" if full else "書き込めるようにして"
            raise StoreUnavailable(
                both(
                    f"ノートのディスクに書き込めません（{why}）。{remedy}ください。その後、続きから始まります",
                    f"the disk of the notes: {why}; {advice}, and it goes on",
                )
            ) from error
