"""What is measured of the job queue, each in a process of its own."""

import asyncio
import gc
import os
import resource
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import httpx2

from bench.process import Figures
from tsuzuki import llm

KILOBYTE = 1024


@contextmanager
def answering() -> Iterator[str]:
    """A server that answers at once."""
    command = [sys.executable, "-m", "bench.llm.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.kill()


def enqueue(folder: Path, count: int) -> Figures:
    """Jobs a second into an empty queue, in one call."""

    async def work() -> float:
        async with llm.JobQueue(folder / "llm_jobs.db") as queue:
            questions = [llm.Question(f"question {number}") for number in range(count)]
            started = time.perf_counter()
            await queue.enqueue(str(uuid.uuid4()), questions)
            return count / (time.perf_counter() - started)

    return {"per_s": asyncio.run(work())}


def sync(folder: Path, count: int, concurrency: int) -> Figures:
    """Jobs a second through the sync strategy, against a server that does nothing; what it grew to meanwhile."""
    os.environ["OPENAI_API_KEY"] = "sk-nobody-0000000000"

    async def work(url: str) -> Figures:
        mine = str(uuid.uuid4())
        async with llm.JobQueue(folder / "llm_jobs.db") as queue:
            for first in range(0, count, 1000):  # all at once would leave so much free memory that growth is not seen
                last = min(first + 1000, count)
                await queue.enqueue(mine, [llm.Question(f"question {number}") for number in range(first, last)])
            worker = llm.QueueWorker(queue, llm.Address("openai", url, "m"), concurrency=concurrency)
            async with _Memory() as memory:
                started = time.perf_counter()
                counts = await worker.process(mine, "sync")
                rate = count / (time.perf_counter() - started)
            assert counts == {"COMPLETED": count}
            left = await queue.delete_process(mine)
            assert left == count
            assert await queue.processes() == []
        return {"per_s": rate, "grown_mb": memory.grown}

    with answering() as url:
        return asyncio.run(work(url))


def client(folder: Path, count: int, concurrency: int) -> Figures:
    """The same questions without a queue: what a provider over our own connections can do."""
    del folder
    os.environ["OPENAI_API_KEY"] = "sk-nobody-0000000000"

    async def work(url: str) -> float:
        provider = llm.opened(llm.Address("openai", url, "m"))
        numbers = iter(range(count))

        async def lane() -> None:
            for number in numbers:
                await provider.complete(llm.Question(f"question {number}"))

        started = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(concurrency)))
        rate = count / (time.perf_counter() - started)
        await provider.close()
        return rate

    with answering() as url:
        return {"per_s": asyncio.run(work(url))}


def library(folder: Path, count: int, concurrency: int) -> Figures:
    """The same requests with nothing but the HTTP library: one client, and nothing around it."""
    del folder

    async def work(url: str) -> float:
        numbers = iter(range(count))
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=concurrency)
        async with httpx2.AsyncClient(limits=limits, timeout=120.0) as http:

            async def lane() -> None:
                for number in numbers:
                    body = {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]}
                    response = await http.post(f"{url}/chat/completions", json=body)
                    assert response.json()["choices"]

            started = time.perf_counter()
            await asyncio.gather(*(lane() for _ in range(concurrency)))
            return count / (time.perf_counter() - started)

    with answering() as url:
        return {"per_s": asyncio.run(work(url))}


def cycles(folder: Path, count: int) -> Figures:
    """How large the file is after so many cycles, compared with after ten."""

    async def work() -> Figures:
        sizes = []
        async with llm.JobQueue(folder / "llm_jobs.db") as queue:
            for _ in range(count):
                mine = str(uuid.uuid4())
                await queue.enqueue(mine, [llm.Question("x" * 1000) for _ in range(100)])
                await queue.delete_process(mine)
                sizes.append(_pages(folder / "llm_jobs.db"))
        return {"after_ten_kb": sizes[9], "after_all_kb": sizes[-1]}

    return asyncio.run(work())


def _pages(file: Path) -> float:
    """Gives the size of a database (kilobytes), whatever of it is still in the log."""
    with closing(sqlite3.connect(file)) as connection:
        pages, size = (connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    return float(pages * size / KILOBYTE)


class _Memory:
    """How much larger the process became in between (megabytes), looked at ten times a second; `async with` it."""

    grown = 0.0

    async def __aenter__(self) -> Self:
        gc.collect()
        self._before = _resident()
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._looking.cancel()
        self.grown = max(self.grown, _resident() - self._before)

    async def _look(self) -> None:
        while True:
            self.grown = max(self.grown, _resident() - self._before)
            await asyncio.sleep(0.1)


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / KILOBYTE / KILOBYTE
