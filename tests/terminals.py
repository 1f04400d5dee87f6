"""A real terminal with the command in it: its keyboard, and its screen as people see it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

PATIENCE = 60.0
UP = re.compile(r"\x1b\[(\d+)F\x1b\[J")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A terminal with `tsuzuki …` in it, whose keyboard and screen a test has."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 120, **variables: str) -> None:
        self._keyboard, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.said = ""

        def take() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it as it does at home

        kept = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        kept["TERM"] = "xterm"
        kept.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tsuzuki.cli", *arguments],
            cwd=folder,
            env=kept | variables,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=take,  # noqa: PLW1509 - there are no threads of ours that could be in its way
        )
        os.close(theirs)
        os.set_blocking(self._keyboard, False)

    @property
    def screen(self) -> list[str]:
        """What stands on the screen: lines that were drawn over are gone."""
        lines: list[str] = []
        at = 0
        for found in [*UP.finditer(self.said), None]:
            lines += self.said[at : found.start() if found else None].replace("\r", "").splitlines()
            if found:
                del lines[-int(found[1]) :]
                at = found.end()
        return [COLOUR.sub("", line) for line in lines]

    def until(self, *words: str) -> None:
        """Reads until all words stand on the screen."""
        deadline = time.monotonic() + PATIENCE
        while not all(word in "\n".join(self.screen) for word in words):
            assert time.monotonic() < deadline, f"waited in vain for {words}: {self.said!r}"
            self._read()
            time.sleep(0.01)

    def _read(self) -> bool:
        try:
            part = os.read(self._keyboard, 65536)
        except BlockingIOError:
            return True
        except OSError:  # Linux says so at the end
            return False
        self.said += part.decode(errors="replace")
        return bool(part)

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def ended(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < deadline, self.said
            time.sleep(0.01)
        return self.process.wait(PATIENCE)

    def leave(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._keyboard)
