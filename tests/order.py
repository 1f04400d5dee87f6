"""In which order tests run, and which share a process: so that no processor waits, and nothing large starts twice.

Most of the time of `make test` is either computing or waiting for servers, leases and outages. What waits is spread
among what computes; what needs one browser, cluster or gateway for all its tests stays together, and begins first.
Groups are known by the names of files alone: marks of xdist need names of tests that pytest 9.2 does not let it change.
"""

from collections.abc import Iterable
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped] # it comes without types

TOGETHER: Final = {
    "dashboard": ("tests/dashboard/",),
    "pages of applications": tuple(f"tests/apps/{name}/pages/" for name in ("commits", "glossary", "notes")),
    "nats cluster": (
        "tests/backends/nats/test_cluster",
        "tests/backends/nats/test_work_outages.py",
    ),
    "client": ("tests/client/",),
    "the real model": ("tests/llm/test_real_model.py", "tests/apps/glossary/test_real_model.py"),
    "journey": ("tests/security/test_journey.py",),
    "checker": ("tests/chaos/test_checker.py",),
    "fuzz": ("tests/fuzz/",),
    "rules of the house": ("tests/house/test_evidence.py", "tests/house/test_references.py", "tests/house/test_words"),
}
"""Tests that share what takes long to start, or to read: one process runs them all. What takes longest is first here,
and begins first: begun last, it would be waited for alone."""
WAITING: Final = ("tests/acceptance/", "tests/backends/nats/", "tests/processes/", "tests/chaos/")
"""What mostly waits."""
BEFORE: Final = 0.9
"""When the last of what waits begins: the end is left to what is short."""


def group_of(test: str) -> str:
    """Names the group of a test; empty where it is alone."""
    return next((name for name, places in TOGETHER.items() if test.startswith(places)), "")


class Sharing(LoadScopeScheduling):  # type: ignore[misc] # it comes without types
    """Gives each process the next test in their order, or the next group as a whole."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid


def arrange(items: list[pytest.Item]) -> None:
    """Puts tests in their order; those of a group and of a file stay in theirs."""
    groups: dict[str, list[pytest.Item]] = {name: [] for name in [*TOGETHER, ""]}
    for item in items:
        groups[group_of(item.nodeid)].append(item)
    alone = groups.pop("")
    waiting = [item for item in alone if item.nodeid.startswith(WAITING)]
    computing = [item for item in alone if not item.nodeid.startswith(WAITING)]
    items[:] = [item for group in groups.values() for item in group] + spread(waiting, computing)


def spread(some: Iterable[pytest.Item], among: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Puts some evenly among the others."""
    placed = [
        (number * share / max(1, len(listed)), item)
        for listed, share in ((list(some), BEFORE), (list(among), 1.0))
        for number, item in enumerate(listed)
    ]
    return [item for _, item in sorted(placed, key=lambda one: one[0])]
