"""The decorators keep parameters and results typed: `make check` reads this file, pytest runs it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import assert_type

from tsuzuki import flow, task
from tsuzuki.context import OnError
from tsuzuki.results import Collected, Counts, Failure
from tsuzuki.script import EndedRun


@task
def length(text: str) -> int:
    return len(text)


@task(timeout=3)
async def fetch(url: str, retries: int = 1) -> bytes:
    return url.encode() * retries


@flow
def measure(text: str) -> int:
    return length(text)


@flow
def measure_all(texts: list[str]) -> list[int]:
    return length.map(texts)


@flow
async def measure_twice(texts: list[str]) -> list[int]:
    one_by_one = [await length.step(text) for text in texts]
    at_once = await length.map(texts)
    streamed = [found async for found in length.stream(texts)]
    return one_by_one + at_once + streamed


@flow(key="crawl:{site}")
async def crawl(site: str, urls: list[str]) -> dict[str, int]:
    pages = await fetch.map(urls)
    return {site: len(pages)}


# ------------------------------------------------------------------------------------------- the examples of the guide


@task
def parse(path: str) -> dict[str, int]:
    return {"words": len(Path(path).read_text().split())}


@flow
def count(paths: list[str]) -> int:
    parsed = parse.map(paths)
    return sum(page["words"] for page in parsed)


@flow
async def count_awaiting(paths: list[str]) -> int:
    first = await parse.step(paths[0])
    parsed = await parse.map(paths[1:])
    return sum(page["words"] for page in [first, *parsed])


@flow
async def look(urls: list[str]) -> list[bytes]:
    pages = await fetch.map(
        urls,
        concurrency=8,
        key=lambda url: url,
        on_error="collect",
        keep_results=True,
        duplicates="error",
        retries=2,
    )
    assert_type(pages, Collected[bytes])
    assert_type(pages.succeeded, list[bytes])
    assert_type(pages.failed, list[Failure])
    return [page async for page in fetch.stream(urls)]


# ------------------------------------------------------------------------------------------------ read by mypy, not run


def calls_keep_their_types() -> None:
    assert_type(length("a"), int)
    _ = assert_type(length.step("a"), Coroutine[object, object, int])
    _ = assert_type(fetch("u", retries=2), Coroutine[object, object, bytes])
    _ = assert_type(fetch.step("u", retries=2), Coroutine[object, object, bytes])
    _ = assert_type(fetch.keyed("k")("u"), Coroutine[object, object, bytes])
    assert_type(measure("a"), int)
    _ = assert_type(crawl("a", urls=[]), Coroutine[object, object, dict[str, int]])
    fetch("u")  # type: ignore[unused-coroutine] # a forgotten await is an error
    fetch.map(["u"])  # type: ignore[unused-coroutine] # of a map too
    crawl("a", urls=[])  # type: ignore[unused-coroutine] # and of a flow inside a flow
    length(3)  # type: ignore[arg-type] # a wrong argument is an error
    _ = length.step(3)  # type: ignore[arg-type] # there as well
    _ = fetch("u", tries=3)  # type: ignore[call-arg] # an unknown one too


async def gathered_calls_keep_their_types() -> None:
    assert_type(await asyncio.gather(fetch("u"), fetch.map(["u"])), tuple[bytes, list[bytes]])
    assert_type(await asyncio.create_task(fetch("u")), bytes)


def maps_keep_their_types(keep: bool, on_error: OnError) -> None:
    _ = assert_type(fetch.map(["u"]), Coroutine[object, object, list[bytes]])
    _ = assert_type(
        fetch.map(["u"], on_error="fail", keep_results=True, retries=2), Coroutine[object, object, list[bytes]]
    )
    _ = assert_type(fetch.map(["u"], on_error="collect", concurrency=2), Coroutine[object, object, Collected[bytes]])
    _ = assert_type(fetch.map(["u"], keep_results=False), Coroutine[object, object, Counts])
    _ = assert_type(fetch.map(["u"], keep_results=False, on_error="collect"), Coroutine[object, object, Counts])
    assert_type(
        fetch.map(["u"], keep_results=keep),
        Coroutine[object, object, list[bytes]]
        | Coroutine[object, object, Collected[bytes]]
        | Coroutine[object, object, Counts],
    )
    assert_type(
        fetch.map(["u"], on_error=on_error),
        Coroutine[object, object, list[bytes]] | Coroutine[object, object, Collected[bytes]],
    )
    fetch.map(["u"], concurrency="8")  # type: ignore[call-overload] # options are typed
    fetch.map(["u"], on_error="ignore")  # type: ignore[call-overload] # and so are their words


def maps_of_sync_tasks_are_their_results_in_a_sync_flow() -> None:
    results: list[int] = length.map(["a"])
    collected: Collected[int] = length.map(["a"], on_error="collect")
    counts: Counts = length.map(["a"], keep_results=False, on_error="collect")
    assert_type(length.map(["a"])[0], int)
    assert_type(length.map(["a"], on_error="collect").succeeded, list[int])
    assert_type(length.map(["a"], keep_results=False).total, int)
    wrong: list[str] = length.map(["a"])  # type: ignore[assignment] # the results are those of the task
    del results, collected, counts, wrong


async def maps_of_sync_tasks_are_awaited_in_an_async_flow(keep: bool, on_error: OnError) -> None:
    assert_type(await length.map(["a"]), list[int])
    assert_type(await length.map(["a"], on_error="collect"), Collected[int])
    assert_type(await length.map(["a"], keep_results=False), Counts)
    assert_type(await length.map(["a"], keep_results=False, on_error="collect"), Counts)
    assert_type(await length.map(["a"], keep_results=keep), list[int] | Collected[int] | Counts)
    assert_type(await length.map(["a"], on_error=on_error), list[int] | Collected[int])
    length.map(["a"], concurrency="8")  # type: ignore[call-overload] # options are typed


async def streams_keep_their_types(on_error: OnError) -> None:
    assert_type(fetch.stream(["u"]), AsyncIterator[bytes])
    assert_type(fetch.stream(["u"], on_error="fail", retries=2), AsyncIterator[bytes])
    assert_type(fetch.stream(["u"], on_error="collect"), AsyncIterator[bytes | Failure])
    assert_type(fetch.stream(["u"], on_error=on_error), AsyncIterator[bytes] | AsyncIterator[bytes | Failure])
    for found in length.stream(["a"]):
        assert_type(found, int)
    for outcome in length.stream(["a"], on_error="collect"):
        assert_type(outcome, int | Failure)
    async for later in length.stream(["a"]):
        assert_type(later, int)
    async for later_outcome in length.stream(["a"], on_error="collect"):
        assert_type(later_outcome, int | Failure)
    iterator: Iterator[int] = length.stream(["a"])
    async_iterator: AsyncIterator[int] = length.stream(["a"])
    del iterator, async_iterator


def runs_keep_their_types() -> None:
    assert_type(measure.run(text="a"), EndedRun[int])
    assert_type(crawl.run(site="a", urls=[], fresh=True).result, dict[str, int])
    assert_type(crawl.run("a", urls=["u"]).result, dict[str, int])
    crawl.run(site="a", urls=3)  # type: ignore[call-overload] # params are typed without options
    crawl.run(site="a")  # type: ignore[call-overload] # and none may be missing
    crawl.run(site="a", urls=[], fresh="yes")  # type: ignore[call-overload] # options are typed
    assert_type(crawl.with_options(fresh=True, tags=["x"])(site="a", urls=[]).result, dict[str, int])
    crawl.with_options(fresh=True)("a", urls=3)  # type: ignore[arg-type] # params are typed here
    crawl.with_options(fresh=True)("a")  # type: ignore[call-arg] # and none may be missing


# ----------------------------------------------------------------------------------------------------- run by pytest


def test_the_examples_above_are_what_they_say(tmp_path: Path) -> None:
    assert measure("four") == 4
    assert measure_all(["a", "bb"]) == [1, 2]
    assert length("four") == 4
    assert length.name == "length"
    assert count(files(tmp_path)) == 3


def files(folder: Path) -> list[str]:
    """Two files of three words."""
    (folder / "a.txt").write_text("two words")
    (folder / "b.txt").write_text("one")
    return [str(folder / "a.txt"), str(folder / "b.txt")]


async def test_a_step_is_the_call_as_something_to_await(tmp_path: Path) -> None:
    assert await length.step("four") == 4
    assert await fetch.step("u", retries=2) == b"uu"
    assert await measure_twice(["a", "bb"]) == [1, 2, 1, 2, 1, 2]
    assert await count_awaiting(files(tmp_path)) == 3
    assert await look(["u"]) == [b"u"]


def test_in_a_run_they_are_so_too(tmp_path: Path) -> None:
    store = str(tmp_path)
    assert measure_all.with_options(data_dir=store)(["a", "bb"]).result == [1, 2]
    assert measure_twice.with_options(data_dir=store)(["a", "bb"]).result == [1, 2, 1, 2, 1, 2]
    assert count_awaiting.with_options(data_dir=store)(files(tmp_path)).result == 3
    assert look.with_options(data_dir=store)(["u"]).result == [b"u"]
