"""What many items do at the same moment is done together, in few calls."""

import asyncio
import threading
from collections.abc import Sequence

from tsuzuki.apps.notes.gathering import CALLS, MOST, Together


async def test_a_second_call_begins_beside_the_first_only_where_it_is_full() -> None:
    sizes: list[int] = []
    go = threading.Event()

    def work(given: Sequence[int]) -> Sequence[int]:
        sizes.append(len(given))
        go.wait(30)
        return [2 * number for number in given]

    async def begun(calls: int) -> None:
        while len(sizes) < calls:
            await asyncio.sleep(0.001)

    together = Together(work)
    try:
        tasks = [asyncio.create_task(together.put(number)) for number in range(3)]
        await begun(1)
        tasks += [asyncio.create_task(together.put(number)) for number in range(3, 2 * MOST + 10)]
        await begun(CALLS)
    finally:
        go.set()
    assert await asyncio.gather(*tasks) == [2 * number for number in range(2 * MOST + 10)]
    assert sizes[:2] == [3, MOST], "what comes while few are done gathers"
    assert sorted(sizes[2:]) == [7, MOST]
