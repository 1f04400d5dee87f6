"""A process of the product as an operator starts it, on a machine whose wall clock the chaos sets: `FILE COMMAND …`.

The file says by how many seconds the clock is wrong; everything else is the command `tsuzuki`.
"""

import sys
import time
from pathlib import Path

from tsuzuki.cli.program import main
from tsuzuki.clock import SystemClock


class WrongClock:
    """The wall clock of a machine: read anew at most ten times a second, so that it costs nothing."""

    def __init__(self, file: Path) -> None:
        self._file, self._wrong, self._read = file, 0.0, 0.0

    def __call__(self) -> float:
        if time.monotonic() - self._read > 0.1:
            self._read = time.monotonic()
            self._wrong = self._told()
        return time.time() + self._wrong

    def _told(self) -> float:
        try:
            return float(self._file.read_text() or 0)
        except (OSError, ValueError):  # nobody has set it yet, or it is being written
            return self._wrong


if __name__ == "__main__":
    SystemClock.now = staticmethod(WrongClock(Path(sys.argv.pop(1))))
    main(prog_name="tsuzuki")
