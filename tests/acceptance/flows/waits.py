"""A script whose task is not ready before a file named `ready` is there, and says so with `Later`."""

import os
import sys
from pathlib import Path

from tsuzuki import Later, flow, task


@task
def answer(seconds: float) -> str:
    with Path("calls").open("a", encoding="ascii") as calls:
        calls.write(f"{os.getpid()}\n")
    if not Path("ready").exists():
        raise Later(seconds, "the answer is not there yet")
    return "ready"


@flow
def patient(seconds: float) -> str:
    return answer(seconds)


if __name__ == "__main__":
    print(patient.run(seconds=float(sys.argv[1])).result)  # noqa: T201 - what the test reads
