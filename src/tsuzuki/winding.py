"""How a run winds down: it begins nothing more, and what is under way may end before it stops, to go on later.

No further item and no further call of the flow itself is begun. What is under way may make calls, to end.
"""

import asyncio

from tsuzuki.execution import MOMENT, PASSING, Execution


def wind_down(run: Execution) -> None:
    """Lets what is under way end within the grace period, and then stops the run."""
    if not run.winding_down and run.stopping is None:
        run.winding_down = True
        run.afterwards(_wound_down(run))


async def _wound_down(run: Execution) -> None:
    until = run.loop.time() + run.grace
    while run.stopping is None and not await _at_rest(run) and run.loop.time() < until:
        pass
    run.grace = max(until - run.loop.time(), MOMENT)
    run.stop("release")


async def _at_rest(run: Execution) -> bool:
    """Tells whether nothing has been under way for a moment: what ended just now is recorded, and its flow may end."""
    before = _quiet(run), run.begun, run.journal.position
    await asyncio.sleep(MOMENT)
    return before == (True, run.begun, run.journal.position) and _quiet(run)


def _quiet(run: Execution) -> bool:
    return run.active <= run.waiting and not run.journal.writing


async def held_back(run: Execution) -> None:
    """Keeps what would begin from beginning in a run that winds down, until it stops."""
    while run.stopping is None:  # noqa: ASYNC110 - only while a run stops; calls pay nothing for it
        await asyncio.sleep(PASSING)
    raise asyncio.CancelledError


def entrust(run: Execution, inside: int) -> int:
    """Counts a call that from now on waits for one it has made, beside so many others; gives how many they are now."""
    run.waiting += not inside
    return inside + 1


def relieve(run: Execution, inside: int) -> int:
    """Counts that one of so many has ended; gives how many are left."""
    run.waiting -= inside == 1
    return inside - 1
