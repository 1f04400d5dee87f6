"""Fair turns between the processes that write to one file: two advisory locks beside it.

Whoever wants to write takes `next`, then `main`, then lets go of `next`; so nobody who just wrote can
overtake the one who waits. The operating system frees the locks of a process that dies.
"""

import os
import sys
from pathlib import Path

from tsuzuki.forks import keep_from_children

if sys.platform == "win32":

    class Turnstile:
        """Lets everybody through: without flock, the writer retries with jitter."""

        def __init__(self, path: Path) -> None: ...

        def try_enter(self) -> bool:
            """Goes through."""
            return True

        def enter(self) -> None:
            """Goes through."""

        def leave(self) -> None:
            """Is through."""

        def close(self) -> None:
            """Has nothing to close."""

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock

    class Turnstile:
        """Lets one writer at a time through, in turn; everybody, on a file system that knows no locks."""

        def __init__(self, path: Path) -> None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            rights = path.stat().st_mode & 0o666 if path.exists() else 0o600  # whoever may use the store may queue
            self._next = os.open(path.with_name(f"{path.name}-next"), flags, rights)
            try:
                self._main = os.open(path.with_name(f"{path.name}-main"), flags, rights)
            except OSError:
                os.close(self._next)
                raise
            self._turns = _has_locks(self._next)
            self._open = True
            keep_from_children(self)

        def try_enter(self) -> bool:
            """Goes through if nobody is there; never blocks."""
            if not self._turns:
                return True
            try:
                flock(self._next, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                return False
            try:
                flock(self._main, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                flock(self._next, LOCK_UN)
            return True

        def enter(self) -> None:
            """Waits for its turn and goes through."""
            if not self._turns:
                return
            flock(self._next, LOCK_EX)
            try:
                flock(self._main, LOCK_EX)
            finally:
                flock(self._next, LOCK_UN)

        def leave(self) -> None:
            """Lets the next one through."""
            if self._turns:
                flock(self._main, LOCK_UN)

        def let_go(self) -> None:
            """Closes the files in a child: were we killed in our turn, it would keep the others waiting."""
            self.close()

        def close(self) -> None:
            """Lets go of the files; they stay, since others may wait at them."""
            if self._open:
                self._open = False
                os.close(self._next)
                os.close(self._main)

    def _has_locks(handle: int) -> bool:
        """Tells whether the file system can lock at all."""
        try:
            flock(handle, LOCK_SH | LOCK_NB)
            flock(handle, LOCK_UN)
        except BlockingIOError:  # somebody has it: it can
            return True
        except OSError:
            return False
        return True
