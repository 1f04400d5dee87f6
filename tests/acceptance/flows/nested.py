"""Maps in steps in the items of a map, sync and async; page numbers are the same in every book: `nested.py BOOKS`."""

import sys

from tests.acceptance.flows.calls import called, pause, pause_here, tell
from tsuzuki import flow, task

PAGES = 6


@task
async def page(of: tuple[int, int]) -> str:
    book, number = of
    await pause(0.001, 0.005)
    called("page", f"{book}:{number}")
    return f"{book}:{number}"


@task
def scan(of: tuple[int, int]) -> str:
    book, number = of
    pause_here(0.001, 0.005)
    called("scan", f"{book}:{number}")
    return f"{book}:{number}!"


@task
async def read(book: int) -> str:
    pages = await page.map([(book, n) for n in range(PAGES)], concurrency=2, key=lambda of: of[1])
    called("read", book)
    return " ".join(pages)


@task
def digitise(book: int) -> str:
    pages = scan.map([(book, n) for n in range(PAGES)], concurrency=2, key=lambda of: of[1])
    called("digitise", book)
    return " ".join(pages)


@task
async def shelve(book: int) -> str:
    text = await (read(book) if book % 2 else digitise(book))  # type: ignore[misc] # a sync task, awaited in an async flow
    called("shelve", book)
    return f"[{text}]"


@flow
async def library(books: int) -> list[str]:
    return await shelve.map(range(books), concurrency=8)


if __name__ == "__main__":
    tell(library.run(books=int(sys.argv[1])).result)
