"""What the scripts tell their test: each call, appended to a file before it returns, and their result."""

import json
import os
import sys
from typing import Any

from tsuzuki import current

FILE = "calls"


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
