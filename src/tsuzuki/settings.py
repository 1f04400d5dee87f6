"""The only code that reads the environment: what can be set, its name there, and its default."""

import os
from pathlib import Path
from typing import Final

from tsuzuki.errors import BadUsage

PREFIX: Final = "TSUZUKI_"


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """Gives the data directory: as given, from TSUZUKI_DATA_DIR, or `.tsuzuki` in the current folder."""
    return Path(given or os.environ.get(f"{PREFIX}DATA_DIR") or ".tsuzuki")


def backend_url(given: str | None = None, directory: str | os.PathLike[str] | None = None) -> str:
    """Gives the address of the store: as given, from TSUZUKI_BACKEND, or the SQLite file in the data directory."""
    url = given or (None if directory else os.environ.get(f"{PREFIX}BACKEND"))
    return url or f"sqlite:{data_dir(directory) / 'tsuzuki.db'}"


def grace_period() -> float:
    """Gives how long a cancelled or draining run may take to end: TSUZUKI_GRACE_SECONDS, or 30."""
    return _seconds("GRACE_SECONDS", 30.0)


def lease(*, one_machine: bool) -> float:
    """Gives how long a worker may be silent before its runs are taken over: TSUZUKI_LEASE_SECONDS, or 30, or 6.

    On one machine a lock tells at once that a process has ended, so the lease is only for those that stand still.
    Elsewhere silence is all that tells of a dead host: two looks and this lease are less than ten seconds.
    """
    return _seconds("LEASE_SECONDS", 30.0 if one_machine else 6.0)


def _seconds(name: str, default: float) -> float:
    text = os.environ.get(PREFIX + name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        raise BadUsage(f"{PREFIX}{name} must be a number of seconds, not {text!r}") from None
    if value <= 0:
        raise BadUsage(f"{PREFIX}{name} must be above 0, not {text!r}")
    return value
