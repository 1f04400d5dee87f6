"""A step is known by what its arguments say, also where JSON cannot say it."""

import asyncio
import threading
from typing import Any

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, Status, flow, task


class Doc:
    def __init__(self, number: int) -> None:
        self.number = number


async def test_gathered_steps_over_objects_get_their_own_results_when_the_run_goes_on(run: RunFlow) -> None:
    broken = True
    seen: list[list[int]] = []

    @task
    async def summarise(doc: Doc) -> int:
        return doc.number * 10

    @task
    async def last() -> None:
        if broken:
            raise ValueError("not yet")

    @flow
    async def summaries(count: int) -> list[int]:
        turns = [asyncio.Event() for _ in range(count)]

        async def pipeline(number: int) -> int:
            await turns[number].wait()
            turns[(number - 1 if broken else number + 1) % count].set()  # the other way round the next time
            return await summarise(Doc(number))

        turns[0].set()
        seen.append(await asyncio.gather(*[pipeline(number) for number in range(count)]))
        await last()
        return seen[-1]

    assert (await run(summaries, count=4)).status is Status.FAILED
    broken = False
    assert (await run(summaries, count=4)).result == [0, 10, 20, 30]
    assert seen == [[0, 10, 20, 30]] * 2


async def test_a_changed_argument_of_any_type_is_a_new_step(run: RunFlow) -> None:
    mended = False

    @task
    def total(numbers: Any) -> float:
        return float(sum(numbers))

    @task
    def last() -> None:
        if not mended:
            raise ValueError("not yet")

    @flow
    def totals() -> list[float]:
        weights = {0.5: 1, 0.9: 70} if mended else {0.5: 1}
        results = [total(range(10 if mended else 3)), total(weights.values()), total(weights)]
        last()
        return results

    assert (await run(totals)).status is Status.FAILED
    mended = True
    assert (await run(totals)).result == [45, 71, 1.4]


class Client:
    """Holds what no other process can have."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests = 0


async def test_an_argument_that_cannot_be_compared_is_told_of_once_by_task_and_name(runs: Runs, run: RunFlow) -> None:
    broken = True
    calls: list[str] = []

    @task
    async def fetch(url: str, client: Client) -> str:
        calls.append(url)
        client.requests += 1
        return url

    @flow
    async def crawl(urls: list[str]) -> list[str]:
        client = Client()
        pages = [await fetch(url, client) for url in urls]
        pages += await fetch.map(["z"], client=client)
        pages.append(await fetch.keyed("last")(urls[0], client))
        if broken:
            raise ValueError("not yet")
        return pages

    ended = await run(crawl, urls=["a", "b"])
    assert ended.status is Status.FAILED
    [line] = [line async for line in runs.log(ended.id)]
    assert (line.level, line.name) == ("warning", "fetch")
    assert "the argument client of fetch is known by its name only" in line.text
    assert "Client with _thread.lock" in line.text
    assert 'fetch.keyed("…")' in line.text

    broken = False
    assert (await run(crawl, urls=["a", "b"])).result == ["a", "b", "z", "a"]
    assert calls == ["a", "b", "z", "a"], "a client that has been used is the same client"


async def test_what_only_a_map_shares_is_told_of_too(runs: Runs, run: RunFlow) -> None:
    @task
    async def fetch(url: str, client: Client) -> str:
        return url

    @flow
    async def crawl_all() -> list[str]:
        return await fetch.map(["a"], client=Client())

    ended = await run(crawl_all)
    [line] = [line async for line in runs.log(ended.id)]
    assert "the argument client of fetch" in line.text
