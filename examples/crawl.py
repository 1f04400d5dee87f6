"""A crawl, simulated: pages are fetched sixteen at a time, a few fail, and nothing is fetched twice.

    tsuzuki run examples/crawl.py:crawl -p site=example -p pages=500

Press Ctrl-C, or kill it, and run the same line again: it goes on with the first page that was not finished.
"""

import asyncio
import random

from tsuzuki import Retry, current, flow, task


@task(retry=Retry(3, backoff=0.05), timeout=10)
async def fetch(page: int, site: str) -> str:
    await asyncio.sleep(random.uniform(0.02, 0.2))  # the network
    if page and page % 97 == 0:
        raise ConnectionError(f"{site} does not answer for page {page}")
    return f"<title>{site}, page {page}</title>"


@task
async def index(titles: list[str]) -> dict[str, int]:
    current().log(f"indexing {len(titles)} titles")
    return {"pages": len(titles), "letters": sum(map(len, titles))}


@flow(key="crawl:{site}")
async def crawl(site: str = "example", pages: int = 500) -> dict[str, int]:
    found = await fetch.map(range(pages), site=site, concurrency=16, on_error="collect")
    return await index(found.succeeded)


if __name__ == "__main__":
    print(crawl.run().result)
