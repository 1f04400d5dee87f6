"""The ordinary flows of the chaos: every task notes its calls, and each flow has a result that arithmetic gives too.

A recorded value names the call that it came from, so that a checker can tell which of several calls was acknowledged.
"""

import asyncio
import hashlib
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.witness import call, first_time
from tsuzuki import Later, Retry, current, flow, llm, task

Value = dict[str, Any]
AGAIN = Retry(attempts=4, backoff=0.05)
LARGE = 300_000


class Passing(Exception):
    """A fault that is over when the call is made again."""


class Lasting(Exception):
    """A fault that stays."""


def noted(task: str, key: object, name: str, value: Any) -> Value:
    """Gives a value with the call it came from."""
    return {"task": task, "key": str(key), "call": name, "value": value}


async def moment() -> None:
    await asyncio.sleep(random.uniform(0.002, 0.06))


def falter(task: str, key: object) -> None:
    """Fails the first call of one key in seven."""
    if int(hashlib.sha256(f"{task}{key}".encode()).hexdigest(), 16) % 7 == 0 and first_time(
        f"{current().run_id}-{task}-{key}"
    ):
        raise Passing(f"{task} {key} passes")


@task(retry=AGAIN)
async def double(number: int) -> Value:
    with call("double", number) as name:
        await moment()
        falter("double", number)
        return noted("double", number, name, number * 2)


@task(retry=AGAIN)
def square(number: int) -> Value:
    with call("square", number) as name:
        time.sleep(random.uniform(0.002, 0.06))
        falter("square", number)
        return noted("square", number, name, number**2)


@task
async def strict(number: int) -> Value:
    with call("strict", number) as name:
        await moment()
        if number % 5 == 0:
            raise Lasting(f"{number} never goes well")
        return noted("strict", number, name, number)


@task
async def book(number: int, pages: int) -> Value:
    found = await page.map([(number, each) for each in range(pages)], concurrency=2, key=lambda of: of[1])
    with call("book", number) as name:
        return noted("book", number, name, sum(each["value"] for each in found))


@task
async def page(of: tuple[int, int]) -> Value:
    key = f"{of[0]}:{of[1]}"
    with call("page", key) as name:
        await moment()
        return noted("page", key, name, of[0] * 100 + of[1])


@task
async def turn(number: int, site: str) -> Value:
    with call("turn", number, holds=f"site:{site}") as name:
        await moment()
        return noted("turn", number, name, number)


@task
async def soon(number: int) -> Value:
    with call("soon", number) as name:
        if first_time(f"{current().run_id}-soon-{number}"):
            raise Later(0.7)
        return noted("soon", number, name, number)


@task
async def long_text(number: int) -> Value:
    with call("long_text", number) as name:
        await moment()
        return noted("long_text", number, name, f"{number}" * (LARGE // len(str(number))))


@flow
async def steps(count: int) -> int:
    total = 0
    for number in range(count):
        found = await (double(number) if number % 2 else square(number))  # type: ignore[misc] # a sync task, awaited in an async flow
        total += found["value"]
    return total


@flow
async def maps(count: int) -> int:
    doubled, squared = await asyncio.gather(
        double.map(range(count), concurrency=4), square.map(range(count), concurrency=3)
    )
    return sum(each["value"] for each in [*doubled, *squared])


@flow
def blocking(count: int) -> int:
    return sum(each["value"] for each in square.map(range(count), concurrency=4))


@flow
async def nested(books: int, pages: int) -> int:
    found = await book.map(range(books), pages=pages, concurrency=3)
    return sum(each["value"] for each in found)


@flow
async def collecting(count: int) -> dict[str, int]:
    found = await strict.map(range(count), concurrency=4, on_error="collect")
    return {"ok": len(found.succeeded), "failed": len(found.failed)}


@flow(key="site:{site}")
async def keyed(site: str, count: int) -> int:
    return sum(each["value"] for each in await turn.map(range(count), site=site, concurrency=2))


@flow
async def waiting(count: int) -> int:
    total = 0
    for number in range(count):
        total += (await soon(number))["value"]
    return total


@flow
async def large(number: int) -> int:
    return len((await long_text(number))["value"])


@flow
async def asking(token: str, count: int) -> list[str]:
    """Asks a model one by one; the answers carry the number under which they were paid for."""
    answers = await llm.ask_all([llm.Request(f"sync {token} {n}") for n in range(count)], strategy="sync")
    return [answer.text for answer in answers]


@flow
async def batching(token: str, count: int) -> list[str]:
    answers = await llm.ask_all([llm.Request(f"batch {token} {n}") for n in range(count)], strategy="batch")
    return [answer.text for answer in answers]


def yaml_load(count: int) -> list[int]:
    with call("yaml_load", count):
        return list(range(count))


def yaml_sum(rows: list[int]) -> int:
    with call("yaml_sum", len(rows)):
        time.sleep(0.05)
        return sum(rows)


def yaml_report(total: int, rows: list[int]) -> str:
    with call("yaml_report", total):
        return f"{total} of {len(rows)}"


GRAPH = """
version: 1
flow:
  graph: load >> total >> report
  defaults: {{count: {count}}}
tasks:
  load:   {{callable: "tests.chaos.flows:yaml_load", inputs: {{count: $params.count}}}}
  total:  {{callable: "tests.chaos.flows:yaml_sum", inputs: {{rows: $node.load.output}}}}
  report: {{callable: "tests.chaos.flows:yaml_report",
           inputs: {{total: $node.total.output, rows: $node.load.output}}}}
"""

EXPECTED: Mapping[str, Callable[..., Any]] = {
    "steps": lambda count: sum(n * 2 if n % 2 else n**2 for n in range(count)),
    "maps": lambda count: sum(n * 2 + n**2 for n in range(count)),
    "blocking": lambda count: sum(n**2 for n in range(count)),
    "nested": lambda books, pages: sum(b * 100 + p for b in range(books) for p in range(pages)),
    "collecting": lambda count: {"ok": count - len(range(0, count, 5)), "failed": len(range(0, count, 5))},
    "keyed": lambda site, count: sum(range(count)),
    "waiting": lambda count: sum(range(count)),
    "large": lambda number: LARGE // len(str(number)) * len(str(number)),
    "yaml": lambda count: {"report": f"{sum(range(count))} of {count}"},
}
"""What an undisturbed run of each flow gives, from its params."""
