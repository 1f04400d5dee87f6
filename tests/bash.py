"""A shell that lines are typed into, as a reader of the docs does; what is said there goes to a file."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 120
"""How long it may take to leave (seconds)."""


class Bash:
    """A shell in a folder, with the command on its path and none of our settings."""

    def __init__(self, folder: Path, said: Path, inside: Sequence[str], **environment: str) -> None:
        self._said = said
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        kept["PATH"] = f"{Path(sys.executable).parent}:{kept['PATH']}"
        with said.open("wb") as file:
            self._process = subprocess.Popen(
                [*inside, "bash"],
                cwd=folder,
                env=kept | environment,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                text=True,
            )

    @property
    def heard(self) -> str:
        """All that was said."""
        return self._said.read_text(errors="replace")

    def write(self, text: str) -> None:
        """Types a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def leave(self, *last: str) -> None:
        """Ends what was started here: the jobs of the shell, and what the last lines end."""
        self.write("kill $(jobs -p) 2> /dev/null; wait")
        for line in last:
            self.write(line)
        self.write("exit 0")
        try:
            self._process.communicate(timeout=PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
