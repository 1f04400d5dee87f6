"""Strips: small whatever happens, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.strip import BINS, FINEST, Strip

ENDINGS = st.lists(st.tuples(st.floats(0, 1e7), st.booleans()), min_size=1, max_size=200)


@given(ENDINGS)
def test_every_ending_is_counted_once_in_so_many_bins(endings: list[tuple[float, bool]]) -> None:
    strip = Strip()
    for at, failed in endings:
        strip.add(at, failed=failed)
    shown = strip.shown()
    assert shown is not None
    assert len(shown["done"]) == len(shown["failed"]) <= BINS
    assert sum(shown["failed"]) == sum(failed for _, failed in endings)
    assert sum(shown["done"]) == sum(not failed for _, failed in endings)
    assert shown["start"] == endings[0][0]


def test_a_bin_holds_what_ended_in_its_time() -> None:
    strip = Strip()
    for at in (0.0, FINEST * 1.5, FINEST * 2.5):
        strip.add(at, failed=False)
    assert strip.shown() == {"start": 0.0, "width": FINEST, "done": [1, 1, 1], "failed": [0, 0, 0]}
    strip.add(FINEST * (BINS + 0.5), failed=True)  # beyond the last: every two become one
    shown = strip.shown()
    assert shown is not None
    assert (shown["width"], shown["done"][:2], shown["failed"][BINS // 2]) == (2 * FINEST, [2, 1], 1)


def test_an_empty_strip_shows_nothing() -> None:
    assert Strip().shown() is None
