"""A flow whose calls take values of the classes and functions of this file; `last` fails until `go` exists."""

import enum
import functools
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from tsuzuki import flow, task

Inner = TypeVar("Inner")


class Settings(BaseModel):
    language: str = "ja"


class Page(BaseModel):
    settings: Settings
    number: int = 1


class Box(BaseModel, Generic[Inner]):
    inner: Inner


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, frozenset({2}))


@dataclass
class Point:
    x: int
    colour: Colour = Colour.RED


class Document:
    def __init__(self, page: Page) -> None:
        self.page = page

    def read(self) -> int:
        return self.page.number


class Client:
    """Has no content that two processes could compare."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Refused(Exception):
    pass


def helper(number: int) -> int:
    return number


@task
def take(name: str, value: Any) -> str:
    del value
    with Path("calls.txt").open("a") as calls:
        calls.write(f"{name}\n")
    return name


@task
def last() -> str:
    if not Path("go").exists():
        raise RuntimeError("not yet")
    return "done"


@flow
def arguments() -> str:
    page = Page(settings=Settings())
    values: dict[str, Any] = {
        "model": Settings(),
        "nested": page,
        "models": {"all": [page, Settings()], "by_place": {(1, 2): page}},
        "generic": Box[Settings](inner=Settings()),
        "function": helper,
        "lambda": lambda: 1,
        "partial": functools.partial(helper, 1),
        "task": take,
        "class": Document,
        "generic_class": Box[Settings],
        "annotations": [list[Settings], Settings | None, Box[Page]],
        "method": Document(page).read,
        "object": Document(page),
        "dataclass": Point(1),
        "enums": [Colour.RED, Colour.PAIR],
        "exception": Refused("no", page),
        "client": Client(),
    }
    for name, value in values.items():
        take(name, value)
    take.map(["a", "b"], value=page)
    take.map(["c", "d"], value=helper)
    return last()


if __name__ == "__main__":
    sys.stdout.write(f"{arguments.run().result}\n")
