"""In which order tests run, and which share a process: so that no processor waits, and nothing large starts twice.

Most of the time of `make test` is either computing or waiting for servers, leases and outages. What waits is spread
among what computes; what needs one browser or one gateway for all its tests stays together, and begins first.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final

import pytest

TOGETHER: Final = {
    "tests/dashboard/": "dashboard",
    "tests/apps/commits/pages/": "pages of applications",
    "tests/apps/glossary/pages/": "pages of applications",
    "tests/apps/notes/pages/": "pages of applications",
    "tests/client/": "client",
    "tests/chaos/test_checker.py": "checker",
}
"""Tests that share what takes long to start: one process runs them all. Other groups are marked in their files."""
FIRST: Final = ("dashboard", "pages of applications", "nats cluster", "client")
"""What takes longest in one process: begun last, it would be waited for alone."""
WAITING: Final = ("tests/acceptance/", "tests/backends/nats/", "tests/processes/", "tests/chaos/")
"""What mostly waits."""
BEFORE: Final = 0.9
"""When the last of what waits begins: the end is left to what is short."""


def grouped(item: pytest.Item) -> str:
    """Names the group of a test; empty where it is alone."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else ""


def arrange(items: list[pytest.Item]) -> None:
    """Marks groups, and puts all tests in their order; those of a file stay in theirs."""
    for item in items:
        if name := next((name for place, name in TOGETHER.items() if item.nodeid.startswith(place)), ""):
            item.add_marker(pytest.mark.xdist_group(name))
    first = [[item for item in items if grouped(item) == name] for name in FIRST]
    rest = [item for item in items if grouped(item) not in FIRST]
    waiting = [item for item in rest if item.nodeid.startswith(WAITING)]
    computing = [item for item in rest if not item.nodeid.startswith(WAITING)]
    items[:] = [*chain.from_iterable(first), *spread(waiting, computing)]


def spread(some: Iterable[pytest.Item], among: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Puts some evenly among the others."""
    placed = [
        (number * share / max(1, len(listed)), item)
        for listed, share in ((list(some), BEFORE), (list(among), 1.0))
        for number, item in enumerate(listed)
    ]
    return [item for _, item in sorted(placed, key=lambda one: one[0])]
