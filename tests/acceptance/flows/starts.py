"""Ten starts of one key at once, as soon as the file `go` is there: `starts.py`."""

import asyncio

from tests.acceptance.flows.calls import tell
from tests.acceptance.flows.catalog import wait_for
from tsuzuki import Runs, flow
from tsuzuki.errors import KeyHeld


@flow(key="site:{site}")
async def crawl(site: str) -> None:
    pass


async def start(runs: Runs) -> dict[str, str]:
    try:
        return {"won": (await runs.submit(crawl, {"site": "a"})).id}
    except KeyHeld as error:
        return {"lost": error.run_id, "told": str(error)}


async def main() -> None:
    async with Runs.open() as runs:
        tell("ready")
        wait_for("go")
        tell(await asyncio.gather(*(start(runs) for _ in range(10))))


if __name__ == "__main__":
    asyncio.run(main())
