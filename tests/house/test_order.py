"""The order of tests: what it names is there, groups stay whole, and what waits is spread among the rest."""

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.order import TOGETHER, WAITING, Sharing, arrange

ROOT = Path(__file__).parents[2]


class Named(NamedTuple):
    """As much of a test as its place in the order takes."""

    nodeid: str


@pytest.mark.parametrize("place", [*WAITING, *(place for places in TOGETHER.values() for place in places)])
def test_every_place_that_the_order_names_has_tests(place: str) -> None:
    assert [path for path in (ROOT / place).parent.rglob("test_*.py") if f"{path.relative_to(ROOT)}".startswith(place)]


def test_the_tests_of_a_group_are_given_to_one_process() -> None:
    scope = Sharing.__new__(Sharing)._split_scope  # noqa: SLF001 - what xdist asks for
    assert {scope("tests/client/test_client.py::test_a[x]"), scope("tests/client/test_terminal.py::test_b")} == {
        "client"
    }
    assert scope("tests/core/test_facts.py::test_a") == "tests/core/test_facts.py::test_a"


def test_groups_begin_first_and_what_waits_is_spread_among_the_rest() -> None:
    waits = [f"tests/acceptance/test_a.py::test_{number}" for number in range(9)]
    computes = [f"tests/core/test_a.py::test_{number}" for number in range(90)]
    items: list[Any] = [Named(name) for name in (*waits, *computes, "tests/client/test_a.py::test_a")]
    arrange(items)
    names = [item.nodeid for item in items]
    assert names[0] == "tests/client/test_a.py::test_a"
    assert [name for name in names if name in waits] == waits
    at = [names.index(name) for name in waits]
    assert all(9 <= later - earlier <= 11 for earlier, later in pairwise(at))
    assert max(at) < 90
