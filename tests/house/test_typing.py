"""The decorators keep parameters and results typed: `make check` reads this file, pytest runs it."""

from collections.abc import AsyncIterator, Awaitable
from typing import assert_type

from tsuzuki import flow, task
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


@flow(key="crawl:{site}")
async def crawl(site: str, urls: list[str]) -> dict[str, int]:
    pages = await fetch.map(urls)
    return {site: len(pages)}


def calls_keep_their_types() -> None:
    assert_type(length("a"), int)
    assert_type(fetch("u", retries=2), Awaitable[bytes])
    assert_type(fetch.keyed("k")("u"), Awaitable[bytes])
    assert_type(measure("a"), int)
    assert_type(crawl("a", urls=[]), Awaitable[dict[str, int]])
    length(3)  # type: ignore[arg-type] # a wrong argument is an error
    fetch("u", tries=3)  # type: ignore[call-arg] # an unknown one too


def maps_keep_their_types() -> None:
    assert_type(fetch.map(["u"]), Awaitable[list[bytes]])
    assert_type(fetch.map(["u"], on_error="collect"), Awaitable[Collected[bytes]])
    assert_type(fetch.map(["u"], keep_results=False), Awaitable[Counts])
    assert_type(fetch.stream(["u"]), AsyncIterator[bytes | Failure])


def runs_keep_their_types() -> None:
    assert_type(measure.run(text="a"), EndedRun[int])
    assert_type(crawl.run(site="a", urls=[], fresh=True).result, dict[str, int])
    crawl.with_options(fresh=True)("a", urls=3)  # type: ignore[arg-type] # params are typed here


def test_the_examples_above_are_what_they_say() -> None:
    assert measure("four") == 4
    assert length("four") == 4
    assert length.name == "length"
