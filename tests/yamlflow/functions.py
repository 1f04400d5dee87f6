"""The functions that the workflows of these tests call, and what they were called with."""

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pydantic

from tsuzuki import Later, current, task

CALLS: Counter[str] = Counter()
ORDER: list[str] = []
EVENTS: list[tuple[str, str]] = []
BROKEN: set[str] = set()
GATES: dict[str, asyncio.Event] = {}
STOPPED = threading.Event()


def forget() -> None:
    for kept in (CALLS, ORDER, EVENTS, BROKEN, GATES):
        kept.clear()
    STOPPED.clear()


class Page(pydantic.BaseModel):
    url: str
    words: int


@dataclass
class Sums:
    total: int
    count: int


def note(name: str) -> None:
    CALLS[name] += 1
    ORDER.append(name)


def load(path: str) -> list[int]:
    note(f"load {path}")
    return [1, 2, 3]


async def double(rows: list[int]) -> list[int]:
    note("double")
    await asyncio.sleep(0)
    return [2 * row for row in rows]


def total(rows: list[int]) -> int:
    note("total")
    return sum(rows)


def report(first: Any, second: Any = None, title: str = "report") -> dict[str, Any]:
    note("report")
    return {"title": title, "first": first, "second": second}


def echo(value: Any) -> Any:
    note(f"echo {value}")
    return value


def taking(**given: Any) -> dict[str, Any]:
    return given


def page(url: str) -> Page:
    return Page(url=url, words=len(url))


def words(page: Page) -> int:
    assert isinstance(page, Page)
    return page.words


def sums(rows: list[int]) -> Sums:
    return Sums(sum(rows), len(rows))


def pair(rows: list[int]) -> tuple[int, int]:
    return min(rows), max(rows)


def two(low: int, high: int) -> list[int]:
    return [low, high]


def total_and_count(total: int, count: int) -> list[int]:
    return [total, count]


def square(item: int, plus: int = 0) -> int:
    note(f"square {item}")
    if f"square {item}" in BROKEN:
        raise ValueError(f"{item} is broken")
    return item * item + plus


def fails_with(rows: list[int]) -> list[int]:
    if str(rows) in BROKEN:
        raise ValueError(f"{rows} is broken")
    return rows


def second_word(prefix: str, item: str) -> str:
    return f"{prefix} {item}"


def name_of(row: dict[str, Any]) -> str:
    note(f"name_of {row['id']}")
    return str(row["name"])


def options(key: str, name: str, concurrency: int) -> list[Any]:
    return [key, name, concurrency]


@task
async def node(name: str) -> str:
    """Waits at its gate, if it has one; fails while it is broken."""
    note(name)
    EVENTS.append(("began", name))
    if name in GATES:
        await GATES[name].wait()
    if name in BROKEN:
        raise ValueError(f"{name} is broken")
    EVENTS.append(("returned", name))
    return name.upper()


def watchful() -> str:
    """Runs on a thread until the run is cancelled."""
    note("watchful")
    while not current().cancelled:
        STOPPED.wait(0.005)
    return "seen"


@task(retry=5, rate="1000/s")
def flaky(times: int) -> int:
    note("flaky")
    if CALLS["flaky"] < times:
        raise ConnectionError("not yet")
    return CALLS["flaky"]


def emptying(rows: list[int], more: Any = None) -> int:
    """Changes what it was given, which is its own affair."""
    note("emptying")
    rows.clear()
    if more is not None:
        more.append("changed")
    return 0


def emptying_item(row: dict[str, Any], more: Any = None) -> int:
    row.clear()
    if more is not None:
        more.append("changed")
    return 0


def tomorrow() -> None:
    note("tomorrow")
    raise Later(86_400)


async def slow() -> None:
    await asyncio.Event().wait()


def _private() -> int:
    return 1
