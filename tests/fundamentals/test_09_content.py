"""A step is known by what its arguments say, also where JSON cannot say it."""

import asyncio
import threading
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, Status, flow, task
from tsuzuki.errors import BadParams


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
    assert "Client with lock" in line.text
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


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({1: "a", "1": "b"}, "result has keys that are one and the same in JSON: 1 and '1'"),
        ({"deep": [{True: 1, "true": 2}]}, "result['deep'][0] has keys that are one and the same in JSON"),
        ({(1, 2): "a"}, "result has the key (1, 2), which JSON has no word for"),
    ],
)
async def test_a_result_whose_keys_would_be_lost_is_refused(run: RunFlow, result: Any, told: str) -> None:
    @task
    async def make() -> Any:
        return result

    @flow
    async def making(annotated: bool) -> Any:
        return result if annotated else await make()

    for annotated in (True, False):
        ended = await run(making, annotated=annotated)
        assert ended.status is Status.FAILED
        assert ended.error is not None
        assert "NotJSON" in f"{ended.error.type} {ended.error.message}"
        assert told in ended.error.message


async def test_keys_that_come_back_as_they_were_or_as_texts_are_fine(run: RunFlow) -> None:
    @task
    async def numbers() -> dict[int, str]:
        return {1: "a", 2: "b"}

    @flow
    async def counting(given: dict[int, int]) -> Any:
        return [sorted(await numbers()), sorted(given), {1: "a"}]

    assert (await run(counting, given={3: 4})).result == [[1, 2], [3], {"1": "a"}]


async def test_params_whose_keys_would_be_lost_are_refused(runs: Runs) -> None:
    @flow
    async def taking(given: dict[Any, str]) -> int:
        return len(given)

    with pytest.raises(BadParams, match=r"params\['given'\] has keys that are one and the same in JSON: 1 and '1'"):
        await runs.submit(taking, {"given": {1: "a", "1": "b"}})
