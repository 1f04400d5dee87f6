"""The flows of the worker that is measured."""

from time import perf_counter

from tsuzuki import flow


@flow
async def no_op_flow(number: int) -> int:
    """Does nothing."""
    return number


@flow
async def first_line(called: float) -> float:
    """Gives how long ago it was submitted: all processes of a machine read the same clock here."""
    return perf_counter() - called
