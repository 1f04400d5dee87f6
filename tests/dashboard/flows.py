"""The flows of the dashboard's tests: a crawl with failures, one that waits for a file, and one that speaks HTML."""

import asyncio
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from tsuzuki import Retry, current, flow, llm, task


@task
async def plan(site: str, pages: int) -> list[int]:
    current().log.info("planning %s pages of %s", pages, site)
    return list(range(pages))


@task(retry=Retry(attempts=2, backoff=0.01))
async def fetch(page: int, seconds: float) -> dict[str, int]:
    await asyncio.sleep(seconds)
    if page % 7 == 5:
        raise ConnectionError(f"example does not answer for page {page}")
    if page % 20 == 0:
        current().log.info("page %s has %s letters", page, page * 7)
    return {"page": page, "letters": page * 7}


@task
async def summarise(count: int) -> dict[str, int]:
    return {"pages": count}


@flow
async def crawl(
    site: str,
    pages: int = 40,
    seconds: float = 0.01,
    mode: Literal["fast", "thorough"] = "fast",
    *,
    follow: bool = True,
    skip: list[str] | None = None,
) -> dict[str, int]:
    """Crawls a site, page by page, and counts its letters."""
    numbers = await plan(site, pages)
    got = await fetch.map(numbers, seconds=seconds, concurrency=8, on_error="collect")
    await summarise(len(got.succeeded))
    return {"ok": len(got.succeeded), "failed": len(got.failed)}


class Layout(BaseModel):
    """How a report looks."""

    language: str = Field("ja", description="The language of the report")
    limit: int = Field(10, ge=1, le=100)


@flow
async def report(name: str, layout: Layout | None = None) -> str:
    """Writes a report."""
    return f"report of {name}"


class Author(BaseModel):
    name: str
    born: date | None = None


class Book(BaseModel):
    title: str
    pages: int = 100
    authors: list[Author] = []


@flow
async def library(
    book: Book,
    shelf: int | str,
    weights: dict[str, float] | None = None,
    due: datetime | None = None,
    number: int = 0,
) -> int:
    """Takes a book in; its parameters have parts."""
    for place in range(3):
        await one(place)
    return number


@flow
async def stumbles() -> None:
    """Fails in its fourth call."""
    for place in range(3):
        await one(place)
    await speak("!no further")


@flow
async def nightly() -> None:
    """Fails, so that there is something to look at."""
    current().log.warning("the disk is nearly full")
    await plan("night", 3)
    current().log.error("cannot write")
    raise RuntimeError("the disk is full: nothing was written")


@task
async def gate(name: str) -> str:
    current().log.info("waiting for %s", name)
    while not Path(f"{name}.open").exists():
        await asyncio.sleep(0.02)
    return name


@flow
async def waits(name: str = "gate") -> str:
    """Goes on when its file is there."""
    return await gate(name)


@flow(tag="gpu")
async def paint() -> None:
    """Needs a worker with a graphics card."""


@task
async def one(number: int) -> int:
    return number


@flow
async def many(count: int = 20_000) -> int:
    """So many items, one after another as fast as they go."""
    return len(await one.map(range(count), concurrency=32))


@task
async def speak(text: str) -> str:
    current().log.error("%s", text)
    if text.startswith("!"):
        raise ValueError(text)
    return text


@flow
async def nasty(texts: list[str]) -> dict[str, str]:
    """Says what it is told, wherever it can be said."""
    await speak.map(texts, on_error="collect")
    current().progress(1, 2, texts[0])
    raise RuntimeError("\n".join(texts))


@task
def load(path: str = "x") -> int:
    return len(path)


@task
def double(rows: int) -> int:
    return 2 * rows


@task
def add(left: int, right: int) -> int:
    return left + right


@llm.offline.register()
def shout(question: llm.Question) -> str:
    return question.prompt.upper()


@flow
async def asks(count: int = 5) -> list[str]:
    """Asks a language model that needs no network."""
    answers = await llm.ask_all([llm.Request(f"question {number}") for number in range(count)], provider="offline")
    return [answer.text for answer in answers]
