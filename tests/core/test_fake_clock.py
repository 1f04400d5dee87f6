"""The clock that users move by hand in their tests."""

import asyncio

import pytest

from tsuzuki.clock import Clock
from tsuzuki.testing import FakeClock


def readings(clock: Clock) -> tuple[float, float, float]:
    return clock.now(), clock.monotonic(), clock.elapsed()


def moved(clock: Clock, before: tuple[float, float, float]) -> list[float]:
    return [after - earlier for after, earlier in zip(readings(clock), before, strict=True)]


def test_it_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(start=5.0)
    assert readings(clock) == readings(clock)
    assert clock.now() == 5.0


@pytest.mark.parametrize(
    ("method", "seconds", "expected"),
    [
        ("advance", 10.0, [10.0, 10.0, 10.0]),
        ("jump", 10.0, [10.0, 0.0, 0.0]),
        ("jump", -3600.0, [-3600.0, 0.0, 0.0]),
        ("sleep_machine", 28800.0, [28800.0, 0.0, 28800.0]),
    ],
)
def test_each_way_of_moving_moves_its_own_clocks(method: str, seconds: float, expected: list[float]) -> None:
    clock = FakeClock()
    before = readings(clock)
    getattr(clock, method)(seconds)
    assert moved(clock, before) == expected


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(ValueError, match="jump"):
        FakeClock().advance(-1)


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock, woken = FakeClock(), list[float]()

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (30.0, 10.0, 20.0, 99.0):
            group.create_task(sleeper(seconds))
        await until(lambda: clock.sleeping == 4)
        clock.advance(5)
        await turns()
        assert woken == []
        clock.advance(25)
        await until(lambda: clock.sleeping == 1)
        await turns()
        assert woken == [10.0, 20.0, 30.0]
        clock.advance(1000)
    assert woken[-1] == 99.0


async def test_a_sleeper_does_not_wake_when_only_the_wall_clock_is_set() -> None:
    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(10))
    await until(lambda: clock.sleeping == 1)
    clock.jump(3600)
    clock.sleep_machine(3600)
    await turns()
    assert not sleeper.done()
    clock.advance(10)
    await sleeper


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    sleeper = asyncio.create_task(clock.sleep(10))
    await until(lambda: clock.sleeping == 1)
    sleeper.cancel()
    await asyncio.wait({sleeper})
    assert clock.sleeping == 0
    clock.advance(20)


async def test_with_autoadvance_hours_take_no_time_and_keep_their_order() -> None:
    clock, woken = FakeClock(start=0.0, autoadvance=True), list[tuple[str, float]]()

    async def backoff(name: str, *waits: float) -> None:
        for wait in waits:
            await clock.sleep(wait)
            woken.append((name, clock.now()))

    await asyncio.gather(backoff("a", 3600), backoff("b", 60, 60, 7200), backoff("c", 90))
    assert woken == [("b", 60), ("c", 90), ("b", 120), ("a", 3600), ("b", 7320)]


async def test_with_autoadvance_a_cancelled_sleeper_does_not_move_the_time() -> None:
    clock = FakeClock(start=0.0, autoadvance=True)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(clock.sleep(5), timeout=0)
    await clock.sleep(10)
    assert clock.now() == 10


@pytest.mark.parametrize("autoadvance", [True, False])
async def test_a_sleep_of_nothing_gives_the_others_a_turn(autoadvance: bool) -> None:
    clock, turn = FakeClock(autoadvance=autoadvance), asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await clock.sleep(0)
    assert turn.is_set()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def until(condition: object) -> None:
    assert callable(condition)
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")
