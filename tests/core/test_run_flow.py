"""`run_flow` in users' tests: signals stay the test's own, and timeouts follow the clock."""

import asyncio
import signal

from tsuzuki import Status, flow, task
from tsuzuki.testing import FakeClock, run_flow


async def test_signals_stay_as_they_were() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    seen = []

    @flow
    async def looking() -> int:
        seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
        return 1

    assert (await run_flow(looking)).result == 1
    assert seen == [before]


async def test_a_timeout_ends_when_the_clock_has_moved_that_far() -> None:
    clock = FakeClock()
    started = asyncio.Event()

    @task(timeout=3600)
    async def hangs() -> int:
        started.set()
        await asyncio.Event().wait()
        return 1

    @flow
    async def hanging() -> int:
        return await hangs()

    running = asyncio.create_task(run_flow(hanging, clock=clock))
    await started.wait()
    assert clock.sleeping == 1
    clock.advance(3600)
    run = await running
    assert run.status is Status.FAILED
    assert run.error is not None
    assert "timed out after 3600 s" in run.error.message


async def test_a_timeout_does_not_move_the_clock_by_itself() -> None:
    clock = FakeClock(autoadvance=True)

    @task(timeout=3600)
    async def works() -> float:
        await asyncio.sleep(0.05)
        return clock.now()

    @flow
    async def working() -> float:
        return await works()

    before = clock.now()
    assert (await run_flow(working, clock=clock)).result == before
