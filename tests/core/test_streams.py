"""The window between the lanes of a map and who reads its outcomes."""

import asyncio

from tsuzuki.streams import END, Arrivals, Window


async def test_each_place_that_becomes_free_wakes_one_lane() -> None:
    window, woken = Window(4), list[int]()

    async def lane(number: int) -> None:
        await window.room()
        woken.append(number)
        window.open()

    for number in range(4):
        window.put(window.open(), number)
    lanes = [asyncio.create_task(lane(number)) for number in range(10)]
    await asyncio.sleep(0)
    for taken in range(3):
        assert await window.take(lambda: False) == taken
        await asyncio.sleep(0)
        assert woken == list(range(taken + 1)), "those that would only wait again sleep on"
    lanes[3].cancel()  # and what it would have been woken for is another's
    assert await window.take(lambda: False) == 3
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert woken == [0, 1, 2, 4]
    window.close()
    await asyncio.gather(*lanes, return_exceptions=True)
    assert len(woken) == 9


async def test_a_place_is_not_lost_with_a_lane_that_is_cancelled_as_it_wakes() -> None:
    window = Window(1)
    window.put(window.open(), "a")
    first, second = (asyncio.create_task(window.room()) for _ in range(2))
    await asyncio.sleep(0)
    assert await window.take(lambda: False) == "a"
    first.cancel()
    await asyncio.wait({second}, timeout=10)
    assert (first.cancelled(), second.done()) == (True, True)


async def test_who_reads_waits_for_the_first_outcome_and_for_the_end() -> None:
    window, over = Window(4), list[bool]()
    first, second = window.open(), window.open()
    reader = asyncio.create_task(window.take(lambda: bool(over)))
    await asyncio.sleep(0)
    window.put(second, "b")
    await asyncio.sleep(0)
    assert not reader.done(), "outcomes come in the order of the input"
    window.put(first, "a")
    assert await reader == "a"
    assert await window.take(lambda: False) == "b"
    reader = asyncio.create_task(window.take(lambda: bool(over)))
    await asyncio.sleep(0)
    over.append(True)
    window.close()
    assert await reader is END


async def test_outcomes_are_handed_on_as_they_come_and_what_is_under_way_takes_up_a_place() -> None:
    arrivals = Arrivals(3)
    slow, quick, _ = arrivals.open(), arrivals.open(), arrivals.open()
    arrivals.put(quick, "b")
    lane = asyncio.create_task(arrivals.room())
    await asyncio.sleep(0)
    assert not lane.done(), "two are under way, and one is not taken yet"
    assert await arrivals.take(lambda: False) == "b"
    await lane
    reader = asyncio.create_task(arrivals.take(lambda: False))
    await asyncio.sleep(0)
    arrivals.put(slow, "a")
    assert await reader == "a"
    arrivals.close()
    assert await arrivals.take(lambda: True) is END
