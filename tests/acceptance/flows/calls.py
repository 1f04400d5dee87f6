"""What the scripts tell their test: each call, appended to a file before it returns, and their result.

Where there is a file `limit`, they wait once the file of calls has grown to so many bytes: a test that kills them
again and again lets them on step by step.
"""

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from tsuzuki import current

FILE = "calls"
LIMIT = "limit"


async def pause(least: float, most: float) -> None:
    """Takes the time of a call, and waits for the test where it asks for it."""
    await asyncio.sleep(random.uniform(least, most))
    while _held():
        await asyncio.sleep(0.005)


def pause_here(least: float, most: float) -> None:
    """Does the same on a thread."""
    time.sleep(random.uniform(least, most))
    while _held():
        time.sleep(0.005)


def _held() -> bool:
    try:
        return Path(FILE).stat().st_size >= int(Path(LIMIT).read_text())
    except (FileNotFoundError, ValueError):  # there is no limit, or it is being written
        return False


def called(task: str, key: object) -> None:
    """Notes a call with the attempt of the run it is made in: one write, so that lines never mix."""
    file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{current().attempt} {task} {key}\n".encode())
    finally:
        os.close(file)


def tell(value: Any) -> None:
    """Says something to the test, as a line of JSON."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
