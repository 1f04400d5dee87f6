"""The one way to write a time: UTC, ISO 8601, with seconds and `+00:00`."""

from datetime import UTC, datetime
from typing import Final

from tsuzuki.clock import Clock, SystemClock

CLOCK: Final[Clock] = SystemClock()


def current_utc_iso() -> str:
    """Gives the present time."""
    return datetime.fromtimestamp(int(CLOCK.now()), UTC).isoformat(timespec="seconds")


def to_iso_string(moment: datetime | None, param_name: str) -> str | None:
    """Writes a time with whatever offset as UTC; a naive one is refused by the parameter's name."""
    if moment is None:
        return None
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise ValueError(f"{param_name} must be timezone-aware, for example datetime.now(timezone.utc); got {moment!r}")
    return moment.astimezone(UTC).isoformat(timespec="seconds")
