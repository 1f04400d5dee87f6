"""The flows that the tests of the command line run, each from a copy of this file in the test's own folder."""

import asyncio
import logging
import time
from pathlib import Path

from tsuzuki import Later, current, flow, task


def note(text: object) -> None:
    """Tells the test that something was called."""
    with Path("calls.txt").open("a") as calls:
        calls.write(f"{text}\n")


@task
async def step(number: int, hold: int) -> int:
    note(number)
    while number >= hold and not Path("gate").exists():
        await asyncio.sleep(0.01)
    return number * 2


@flow
async def gated(items: int = 20, hold: int = 1000) -> int:
    """Doubles numbers; from `hold` on, it waits for the gate."""
    return sum(await step.map(range(items), hold=hold, concurrency=4))


@task
def picky(name: str) -> str:
    note(name)
    if name in Path("bad.txt").read_text().split():
        raise ValueError(f"{name} is bad")
    return name.upper()


@flow
def partly(names: list[str]) -> list[str]:
    """Collects what fails."""
    found: list[str] = picky.map(names, on_error="collect").succeeded
    return found


@flow
def strict(names: list[str]) -> list[str]:
    """Fails with its first item."""
    found: list[str] = picky.map(names, concurrency=1)
    return found


@task
def not_now() -> None:
    note("asked")
    raise Later(3600, "waiting for Ms Sato")


@flow
def patient() -> None:
    """Waits for an hour."""
    not_now()


@task
def endless() -> None:
    note("endless")
    while not Path("gate").exists():
        time.sleep(0.01)


@flow
def stubborn() -> None:
    """Cannot be interrupted in the middle of its only step."""
    endless()


@task
async def deaf(number: int) -> int:
    note(number)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            note(f"cancelled{number}")


@flow
async def heedless_items(items: int = 5) -> int:
    """Maps over items that go on although they are cancelled."""
    return len(await deaf.map(range(items), concurrency=8))


@flow
async def heedless() -> None:
    """Goes on whatever is raised in it."""
    note("heedless")
    while True:
        try:
            await asyncio.sleep(3600)
        except BaseException:  # noqa: BLE001 - the worst that people write
            note("again")


@flow
def mixed() -> int:
    """Collects what fails, and then waits for the gate."""
    found = picky.map(["a", "b"], on_error="collect", concurrency=1)
    endless()
    return len(found.failed)


@task
def speak(word: str) -> str:
    print(f"printed {word}")  # noqa: T201 - flows may print
    current().log(f"logged {word}")
    logging.getLogger("chatty").warning("warned %s", word)
    return word


@flow(name="chat-ty", key="chat:{word}")
def chatty(word: str = "hello", times: int = 1) -> str:
    """Prints, logs, and returns a text."""
    return " ".join(speak.map([f"{word}{number}" for number in range(times)]))


@flow
def nothing() -> None:
    """Returns nothing."""


not_a_flow = 3


@flow
def tinted() -> str:
    """Gives a text as a terminal shows it."""
    return "\x1b[31mred\x1b[0m"
