"""The one way to write a time: UTC, ISO 8601, with seconds and `+00:00`, so that texts compare as times do."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import BadUsage

CLOCK: Final[Clock] = SystemClock()


def now() -> str:
    """Gives the present time."""
    return of_seconds(CLOCK.now())


def of_seconds(seconds: float) -> str:
    """Writes Unix seconds; a time that no calendar has, as broken commits do, is 1970 as git shows it."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()


def utc(text: str) -> str:
    """Writes a time that somebody else has written, with whatever offset; one without is taken as UTC."""
    read = datetime.fromisoformat(text)
    aware = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    return aware.replace(microsecond=0).isoformat()


def asked(text: str, what: str, *, end: bool = False) -> str:
    """Reads a day or a time that a user has given; the end of a span includes its day."""
    try:
        if end and len(text) == len("2026-01-31"):
            return before(utc(text), days=-1, seconds=1)
        return utc(text)
    except ValueError:
        raise BadUsage(
            "日時は 2026-01-31 または 2026-01-31T12:00:00+09:00 の形で指定してください / "
            f"{what} {text!r} is no day or time; write 2026-01-31 or 2026-01-31T12:00:00+09:00"
        ) from None


def before(text: str, *, days: float = 0, seconds: float = 0) -> str:
    """Gives a time so much earlier."""
    return (datetime.fromisoformat(text) - timedelta(days=days, seconds=seconds)).isoformat()
