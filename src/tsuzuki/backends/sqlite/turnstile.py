"""Fair turns between the processes that write to one file: two advisory locks beside it.

Whoever wants to write takes `next`, then `main`, then lets go of `next`; so nobody who just wrote can
overtake the one who waits. The operating system frees the locks of a process that dies.

Turns are for fairness alone: SQLite's own lock decides who may write. So a process that keeps its turn without using it
(it was stopped, or a long call into C keeps its interpreter) delays others for a few seconds and no longer.
"""

import os
import sys
import time
from pathlib import Path
from typing import Final

from tsuzuki.clock import SystemClock
from tsuzuki.forks import keep_from_children

PATIENCE: Final = 5.0
"""How long anybody waits for a turn before going without one (seconds)."""
_PAUSE: Final = 0.002
_LOCKS: Final = Path("/proc/locks")
_seconds: Final = SystemClock().monotonic

if sys.platform == "win32":

    class Turnstile:
        """Lets everybody through: without flock, the writer retries with jitter."""

        def __init__(self, path: Path) -> None: ...

        def try_enter(self) -> bool:
            """Goes through."""
            return True

        def enter(self, *, patient: bool = False) -> bool:  # noqa: ARG002 - there is nothing to wait for
            """Goes through."""
            return True

        def holder(self) -> str:
            """Return what is known of a process that holds the turn: nothing."""
            return ""

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

        def enter(self, *, patient: bool = False) -> bool:
            """Wait for the turn, and go without one after a while; patient, however long it takes.

            Return whether the turn was obtained.
            """
            if not self._turns:
                return True
            if not patient:
                return self._enter_within(PATIENCE)
            flock(self._next, LOCK_EX)
            try:
                flock(self._main, LOCK_EX)
            finally:
                flock(self._next, LOCK_UN)
            return True

        def _enter_within(self, seconds: float) -> bool:
            deadline = _seconds() + seconds
            while not self.try_enter():
                if _seconds() >= deadline:
                    return False
                time.sleep(_PAUSE)
            return True

        def leave(self) -> None:
            """Lets the next one through."""
            if self._turns:
                flock(self._main, LOCK_UN)

        def holder(self) -> str:
            """Return which process holds the turn, for people (`process 4711`); empty where it is not known."""
            for handle in (self._main, self._next):
                if found := _holder_of(os.fstat(handle).st_ino):
                    return f"process {found}"
            return ""

        def let_go(self) -> None:
            """Closes the files in a child: were we killed in our turn, it would keep the others waiting."""
            self.close()

        def close(self) -> None:
            """Lets go of the files; they stay, since others may wait at them."""
            if self._open:
                self._open = False
                os.close(self._next)
                os.close(self._main)

    def _holder_of(inode: int) -> int | None:
        """Look up who has locked a file; a line is `1: FLOCK ADVISORY WRITE 4711 08:01:3932 0 EOF`."""
        try:
            locks = [line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines()]
        except OSError:
            return None
        held = (int(lock[4]) for lock in locks if lock[1] == "FLOCK" and lock[5].endswith(f":{inode}"))
        return next((process for process in held if process != os.getpid()), None)

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
