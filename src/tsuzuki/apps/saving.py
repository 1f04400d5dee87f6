"""Writes of an application, beside the event loop: another process may hold its file for many seconds.

A write comes to its end also where the run is stopped meanwhile; the cancellation is met at the next thing that is
awaited and is no write. So work that is finished is saved, and a run whose last writes are under way is completed.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def saved(write: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function that writes on a thread, and gives what it returned."""
    return await ended(begun(write, *args, **kwargs))


def begun(write: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Task[R]":
    """Begins to write on a thread, for those who wait for the end later."""
    return asyncio.create_task(asyncio.to_thread(write, *args, **kwargs))


async def ended(writing: "asyncio.Task[R]") -> R:
    """Waits until something is written, whatever is asked meanwhile, and gives what it returned."""
    cancelled = False
    while not writing.done():
        try:
            await asyncio.wait([writing])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and (task := asyncio.current_task()) is not None:
        task.uncancel()
        task.cancel()  # anew, for the next thing that is awaited
    return writing.result()
