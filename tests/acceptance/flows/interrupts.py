"""A script whose third item raises KeyboardInterrupt, as a prompt does when Ctrl-C is typed; the next time not."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tsuzuki import flow, task


def _interrupt_once() -> None:
    if not Path("interrupted").exists():
        Path("interrupted").touch()
        raise KeyboardInterrupt


@task
def item(x: int) -> int:
    if x == 3:
        _interrupt_once()
    return x


@task
async def async_item(x: int) -> int:
    if x == 3:
        _interrupt_once()
    return x


@flow
def in_a_thread() -> int:
    return sum(item.map(range(10), concurrency=1))


@flow
async def on_the_loop() -> int:
    return sum(await async_item.map(range(10), concurrency=1))


@flow
def in_the_flow() -> int:
    found = [item(x) for x in range(3)]
    _interrupt_once()
    return sum(found) + 42


@flow
def in_the_input() -> int:
    def numbers() -> Iterator[int]:
        for x in range(10):
            if x == 5:
                _interrupt_once()
            yield x

    return sum(item.map(numbers(), concurrency=1))


if __name__ == "__main__":
    print(globals()[sys.argv[1]].run().result)  # noqa: T201 - what the test reads
