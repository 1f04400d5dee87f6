"""A process that starts so many runs of a project at once and tells how it went: its arguments are those of `main`."""

import asyncio
import sys
from pathlib import Path

from tsuzuki import Runs, settings
from tsuzuki.apps.glossary.desk import Desk
from tsuzuki.apps.glossary.refusals import RunActive


async def main(folder: str, project: int, count: int) -> None:
    with settings.flagged(TSUZUKI_DATA_DIR=folder):
        async with Runs.open(data_dir=folder) as runs:
            desk = Desk(runs, runs.submit, folder=Path(folder))
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            sys.stdin.readline()
            outcomes = await asyncio.gather(
                *(desk.start(project, "extract") for _ in range(count)), return_exceptions=True
            )
    for outcome in outcomes:
        if isinstance(outcome, RunActive):
            sys.stdout.write(f"refused {outcome.number} {outcome}\n")
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            sys.stdout.write(f"started {outcome.id}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
