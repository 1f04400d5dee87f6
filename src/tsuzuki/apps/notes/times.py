"""Times and session ids: UTC, ISO 8601, with seconds and `+00:00`; only the day of a conversation is the local one."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from tsuzuki.apps.notes.refusals import both
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.errors import BadUsage

CLOCK: Final[Clock] = SystemClock()
_FORM: Final = "%Y%m%d_%H%M%S"
_SHAPE: Final = re.compile(r"[0-9]{8}_[0-9]{6}")


def now() -> str:
    """Gives the present time."""
    return of_seconds(CLOCK.now())


def of_seconds(seconds: float) -> str:
    """Writes Unix seconds."""
    return _written(int(seconds))


@lru_cache(maxsize=16)  # many lines are written within a second
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def session_id_at(seconds: float) -> str:
    """Gives the session id of a moment: 20260126_100000."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime(_FORM)


def checked_session_id(text: str) -> str:
    """Gives a session id back; one that is no moment is refused."""
    wrong = both(
        f"{text[:60]!r} はセッション ID ではありません。20260126_100000 のような日時です",
        f"{text[:60]!r} is no session id: it is a moment such as 20260126_100000",
    )
    if not _SHAPE.fullmatch(text):
        raise BadUsage(wrong)
    try:
        datetime.strptime(text, _FORM).replace(tzinfo=UTC)
    except ValueError:
        raise BadUsage(wrong) from None
    return text


def day_of(moment: Any) -> str:
    """Gives the day of a time as exports write it, Unix seconds or ISO 8601; "" where it is none.

    It is the day that it was here: in Japan a conversation of the morning is one of the day before in UTC.
    """
    read = _moment_of(moment)
    if read is None:
        return ""
    with suppress(OverflowError, OSError, ValueError):  # at the end of the calendar
        read = read if read.tzinfo is None else read.astimezone()
    return read.date().isoformat()


def seconds_of(moment: Any) -> float | None:
    """Gives such a time in Unix seconds; None where it is none."""
    read = _moment_of(moment)
    return None if read is None else read.replace(tzinfo=UTC).timestamp()


def _moment_of(moment: Any) -> datetime | None:
    """Reads such a time; what names no zone is taken for UTC."""
    try:
        if isinstance(moment, bool) or moment is None or moment == "":
            return None
        if isinstance(moment, int | float):
            return datetime.fromtimestamp(float(moment), UTC)
        read = datetime.fromisoformat(str(moment))
        return read if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
