"""Who is told what happens while a script carries a run out."""

import sys
from datetime import UTC, datetime
from typing import Final, Protocol

from tsuzuki.lifecycle import Run

STOPPING: Final = "stopping; what has finished is kept. Finishing what is under way; press Ctrl-C again to stop at once"


class Watcher(Protocol):
    """Is told what happens while a run is carried out."""

    def began(self, run: Run, *, continued: bool) -> None: ...
    def changed(self, text: str) -> None: ...
    def stopping(self) -> None: ...
    def waiting(self, run: Run) -> None: ...


class Quiet:
    """A watcher that tells people of nothing but that a run goes on, waits, or stops on the way."""

    def began(self, run: Run, *, continued: bool) -> None:
        """Says that an earlier run goes on."""
        if continued:
            done = run.done + run.skipped + run.steps
            tell(f"continuing run {run.number} of {run.flow} ({done} recorded)")

    def changed(self, text: str) -> None:
        """Warns of a flow that is not what it was when the run was executed last."""
        tell(f"warning: {text}")

    def stopping(self) -> None:
        """Says how to leave at once."""
        tell(STOPPING)

    def waiting(self, run: Run) -> None:
        """Say until when a run waits, and why."""
        tell(wait_text(run))


def wait_text(run: Run) -> str:
    """Return one line that says until when a run waits, why, and how to wake it."""
    until = f"{datetime.fromtimestamp(run.not_before, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    why = f": {' '.join(run.waiting_reason.split())}" if run.waiting_reason else ""
    return f"run {run.number} of {run.flow} waits until {until}{why} (wake it: tsuzuki resume {run.number})"


def tell(text: str) -> None:
    """Tells people something, beside the results of the script."""
    sys.stderr.write(f"tsuzuki: {text}\n")
