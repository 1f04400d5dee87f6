"""What a child that user code forks lets go of: it is no part of the run, and keeps nothing that is the run's own.

A lock of a file is shared with every child that was forked since it was opened, and free only when all of them have
ended: a pool of processes that outlives its killed parent would make it look alive, and keep others from writing.
"""

import os
import signal
import threading
from typing import Final, Protocol
from weakref import WeakSet


class Kept(Protocol):
    """What belongs to this process alone."""

    def let_go(self) -> None:
        """Lets go of it in a child, as if the child had never had it."""


_KEPT: Final[WeakSet[Kept]] = WeakSet()
_masks: Final = threading.local()
_HELD: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


def keep_from_children(kept: Kept) -> None:
    """Has every child that is forked from now on let go of something, for as long as that is there."""
    _KEPT.add(kept)


def _hold_signals() -> None:
    """Lets a child that is told to end at once hear it when it has let go: before, it would take that as told to us."""
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def _hear_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _let_go() -> None:
    try:
        for kept in tuple(_KEPT):
            kept.let_go()
    finally:
        _hear_signals()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_signals, after_in_parent=_hear_signals, after_in_child=_let_go)
