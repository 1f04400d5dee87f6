"""What tasks write down of their calls, outside every store: one line when a call begins and one when it ends.

Lines are single appends to a file in the current folder: a killed process loses none that was written. Times are those
of the machine's monotonic clock, which all processes share and no jump of a wall clock changes.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tsuzuki import current

CALLS = "calls.jsonl"
_numbers = count(1)


def append(file: str | Path, **line: Any) -> None:
    """Appends one line, whole or not at all."""
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(opened, json.dumps(line).encode() + b"\n")
    finally:
        os.close(opened)


def lines(file: Path) -> list[dict[str, Any]]:
    """Reads what was appended."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def call(task: str, key: object, *, holds: str = "") -> Iterator[str]:
    """Notes a call while it lasts, and gives its name; `holds` is the key of the run that it is made under."""
    context = current()
    name = f"{os.getpid()}-{next(_numbers)}-{time.monotonic_ns()}"
    about = {"call": name, "run": context.run_id, "attempt": context.attempt, "pid": os.getpid()}
    append(CALLS, what="began", at=time.monotonic(), task=task, key=str(key), holds=holds, **about)
    try:
        yield name
    except BaseException as error:
        append(CALLS, what="raised", at=time.monotonic(), error=type(error).__name__, **about)
        raise
    append(CALLS, what="returned", at=time.monotonic(), **about)


def first_time(name: str) -> bool:
    """Tells whether nobody has asked this before, in any process."""
    try:
        os.close(os.open(Path("once") / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
