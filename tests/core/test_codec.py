"""Values in and out of JSON: the quick way for plain ones gives what the thorough way gives, or steps aside."""

import datetime as dt
import enum
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.codec import Codec
from tsuzuki.errors import NotJSON


class Colour(enum.StrEnum):
    RED = "red"


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5),
    st.just("null"), st.just(Colour.RED), st.binary(max_size=3), st.just(dt.date(2026, 1, 2)),
)  # fmt: skip
KEYS = st.one_of(st.text(max_size=3), st.integers(0, 3))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("annotation", [Any, dict[str, Any]])
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_what_comes_back_is_the_same_on_either_way(annotation: Any, value: dict[str, Any]) -> None:
    codec = Codec(annotation)
    try:
        data, back = codec.record(value)
    except NotJSON:
        return
    thorough = codec.decode(codec.encode(value))
    assert repr(back) == repr(thorough)
    assert repr(codec.decode(data)) == repr(thorough)


@pytest.mark.parametrize("lost", [{"a": math.inf}, {"a": [math.nan]}, {"a": {1: 2, "1": 3}}])
def test_what_would_be_lost_is_refused_on_either_way(lost: dict[str, Any]) -> None:
    with pytest.raises(NotJSON):
        Codec(dict[str, Any]).record(lost)


def test_a_call_that_nobody_awaited_is_named_as_such() -> None:
    async def call() -> int:
        return 1

    waiting = call()
    with pytest.raises(NotJSON, match="await it"):
        Codec(Any).record(waiting)
    waiting.close()
