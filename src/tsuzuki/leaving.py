"""How async code is run from sync code to its end, without waiting for what does not end although it is cancelled.

`asyncio.run` cancels what is left and waits for it without a limit: code that swallows cancellation would keep the
process for ever, long after its run is settled.
"""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final
from weakref import WeakSet

from tsuzuki import settings

_MOMENT: Final = 0.5
"""How long those may still take that were cancelled before, and have had their grace period (seconds)."""
_GAVE_UP: "Final[WeakSet[asyncio.AbstractEventLoop]]" = WeakSet()
_NOT_THE_USERS: Final = frozenset({"asyncio", "tsuzuki"})


def gave_up(loop: asyncio.AbstractEventLoop) -> None:
    """Notes that the grace period of a run is over, so that what it cancelled is not waited for a second time."""
    _GAVE_UP.add(loop)


def run_to_the_end(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs async code on a loop of its own; tells of what it leaves behind."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        _close(runner)


def _close(runner: asyncio.Runner) -> None:
    loop = runner.get_loop()
    try:
        loop.run_until_complete(_wind_up())
    finally:
        left = asyncio.all_tasks(loop)
        if left:
            _leave_behind(loop, left)
        else:
            runner.close()


async def _wind_up() -> None:
    """Cancels what is left, and gives it the grace period to end, unless it had that already."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    asked = {task for task in rest if task.cancelling()} if asyncio.get_running_loop() in _GAVE_UP else set()
    for task in rest:
        task.cancel()
    for tasks, patience in ((asked, _MOMENT), (rest - asked, settings.grace_period())):
        if tasks:
            await asyncio.wait(tasks, timeout=patience)


def _leave_behind(loop: asyncio.AbstractEventLoop, left: Iterable["asyncio.Task[Any]"]) -> None:
    """Goes on without tasks that do not end; they never run again."""
    places = Counter(map(_place, left))
    told = ", ".join(place if count == 1 else f"{count} times {place}" for place, count in sorted(places.items()))
    sys.stderr.write(f"tsuzuki: left behind, because it goes on when it is cancelled: {told}\n")
    # Were they freed, they would be closed, and would swallow that too. Nobody clears the frame of a daemon thread.
    keep = threading.Thread(target=_hold, args=(threading.Event().wait, list(left)), name="tsuzuki-left", daemon=True)
    keep.start()
    asyncio.set_event_loop(None)
    loop.close()


def _hold(for_ever: Callable[[], object], left: list["asyncio.Task[Any]"]) -> None:
    for_ever()
    left.clear()


def _place(task: "asyncio.Task[Any]") -> str:
    """Says where in the user's code a task stands."""
    place: str = task.get_name()
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None)
        if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_USERS:
            place = f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})"
        waiting = getattr(waiting, "cr_await", None)
    return place
