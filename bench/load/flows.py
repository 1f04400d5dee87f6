"""The flows of the load."""

from tsuzuki import flow, task


@task
async def no_op(item: int) -> int:
    return item


@flow
async def no_op_flow(number: int) -> int:
    """Does nothing."""
    return number


@flow
async def many_items(count: int) -> int:
    """One map over very many."""
    return (await no_op.map(range(count), concurrency=100, keep_results=False)).succeeded
