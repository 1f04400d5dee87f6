"""The day of a conversation: the one that it was where its export is read."""

from collections.abc import Callable

import pytest

from tsuzuki.apps.notes.times import day_of, seconds_of


@pytest.mark.parametrize(
    ("moment", "in_utc", "in_japan"),
    [
        ("2026-01-02T20:30:00Z", "2026-01-02", "2026-01-03"),
        ("2026-01-02T20:30:00.5+00:00", "2026-01-02", "2026-01-03"),
        (1767385800, "2026-01-02", "2026-01-03"),
        ("2026-01-02T14:59:00Z", "2026-01-02", "2026-01-02"),
        ("2026-01-02T20:30:00", "2026-01-02", "2026-01-02"),
        ("2026-01-02", "2026-01-02", "2026-01-02"),
        ("9999-12-31T23:00:00Z", "9999-12-31", "9999-12-31"),
        ("no time", "", ""),
        (None, "", ""),
    ],
)
def test_a_conversation_is_of_the_day_that_it_was_here(
    zone: Callable[[str], None], moment: object, in_utc: str, in_japan: str
) -> None:
    seconds = seconds_of(moment)
    assert day_of(moment) == in_utc
    zone("JST-9")
    assert day_of(moment) == in_japan
    assert seconds_of(moment) == seconds, "a moment is the same everywhere"
