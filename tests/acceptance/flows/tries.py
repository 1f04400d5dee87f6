"""A script whose task always fails; its third call ends the process."""

import os
import sys
from pathlib import Path

from tsuzuki import Retry, flow, task

CALLS = Path("calls")
ATTEMPTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1


@task(retry=Retry(attempts=ATTEMPTS, backoff=0.0))
def fetch() -> str:
    third = CALLS.exists() and len(CALLS.read_text().split()) == 2
    with CALLS.open("a", encoding="ascii") as calls:
        calls.write("killed\n" if third else "failed\n")
    if third:
        os._exit(7)
    raise ConnectionError("away")


@flow
def crawl() -> str:
    return fetch()


if __name__ == "__main__":
    print(crawl.run().result)  # noqa: T201 - what the test reads
