"""Sees in the log of a run that goes on whether its flow has changed since the last attempt."""

from typing import Final

from tsuzuki.backends import Line
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs

_CHANGED: Final = "has changed since the last attempt"


class Change:
    """Reads the log of a run until its new attempt has written a line: a warning of a changed flow comes first."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self._runs = runs
        self._run = run
        self._number = 0
        self._open = bool(run.fingerprint)  # else nobody has executed it yet

    async def news(self) -> str:
        """Gives the warning once it is there, and once only."""
        while self._open and (lines := await self._runs.backend.read_log(self._run.id, after=self._number)):
            self._number = lines[-1].number
            new = [line for line in lines if line.position > self._run.position]
            self._open = not new
            for line in filter(_tells_change, new):
                return line.text
        return ""


def _tells_change(line: Line) -> bool:
    ours = not (line.step or line.key or line.logger)
    return ours and line.level == "warning" and _CHANGED in line.text
