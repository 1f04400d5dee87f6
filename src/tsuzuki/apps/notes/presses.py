"""The processes that an offline import of many conversations has beside it; without them it does the same itself."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

import msgspec

from tsuzuki.apps.notes import extractive, press
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.vault import Sheet, written

ENOUGH: Final = 1000
"""For fewer notes than this a process is not worth starting: that takes as long as some hundred of them."""
LARGE: Final = 4_000_000
"""How many bytes an export has that is taken for so many notes before it is read: starting takes as long as reading."""
MOST: Final = 2
"""How many there are at the most: one alone would be idle while it waits for the disk."""
PATIENCE: Final = 10.0
"""How long one may take to end (seconds)."""
ALONE: Final = """
import sys, types
sys.path.append(sys.argv[1])
sys.modules["typing_extensions"] = None
for name, place in zip(sys.argv[2::2], sys.argv[3::2]):
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = [place]
from tsuzuki.apps.notes import press
press.main()
"""
"""Imports the program of such a process, and nothing else of the packages around it: they take longer to import than
some hundred notes to make. So do all that `site` looks at, and typing_extensions, which msgspec can do without."""
PACKAGES: Final = ("tsuzuki", "tsuzuki.apps", "tsuzuki.apps.notes")
Answer = TypeVar("Answer")
logger: Final = logging.getLogger("tsuzuki.apps.notes")


class Presses:
    """Calls whichever process is idle; while none has started, and where all have ended, the work is done here."""

    def __init__(self, count: int) -> None:
        places = [word for name in PACKAGES for word in (name, sys.modules[name].__path__[0])]
        packages = str(Path(msgspec.__file__).parents[1])
        command = [sys.executable, "-P", "-S", "-c", ALONE, packages, *places]  # nothing from where one happens to be
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "bufsize": 0}
        self._idle: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
        self._turn = threading.Lock()
        self.ready = 0
        """How many can be called."""
        self._started: set[int] = set()
        self._closed = False
        self.processes: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            with suppress(OSError):
                self.processes.append(subprocess.Popen(command, **pipes))  # type: ignore[call-overload] # noqa: S603 - ourselves
        for process in self.processes:
            threading.Thread(target=self._awaited, args=(process,), name="notes-press", daemon=True).start()

    def _awaited(self, process: "subprocess.Popen[bytes]") -> None:
        """Takes a process in once it has imported what it needs."""
        with suppress(OSError, EOFError, ValueError):
            press.take(process.stdout)  # type: ignore[arg-type] # it is a pipe
            with self._turn:
                self.ready += 1
                self._started.add(process.pid)
            self._idle.put(process)

    def made(self, conversations: Sequence[tuple[str, str]]) -> Sequence[Note]:
        """Makes notes of titles with texts."""
        call = press.Make([(title, text[: extractive.MOST]) for title, text in conversations])
        notes = self._answer(call, press.notes)
        return notes if notes is not None else [extractive.note(title, text) for title, text in conversations]

    def written(self, vault: Path, sheets: Sequence[Sheet]) -> Sequence[str | Exception]:
        """Writes notes; what a process could not write is tried here, where the reason can be told."""
        names = self._answer(press.Write(str(vault), list(sheets)), press.names) or [None] * len(sheets)
        left = [number for number, name in enumerate(names) if name is None]
        outcomes: list[str | Exception] = [name or "" for name in names]
        for number, outcome in zip(left, written(vault, [sheets[number] for number in left]), strict=True):
            outcomes[number] = outcome
        return outcomes

    def _answer(self, call: press.Call, read: Callable[[bytes], Answer]) -> Answer | None:
        """Has a call answered; None where nobody can."""
        if not self.ready:
            return None
        message = press.encode(call)
        process = self._idle.get()
        if process is None:
            self._idle.put(None)  # for the next who waits
            return None
        try:
            press.put(process.stdin, message)  # type: ignore[arg-type] # they are pipes
            answer = press.take(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError, ValueError):
            process.kill()  # so that it writes nothing that is then written here
            if not self._closed:
                logger.warning("a process that makes notes has ended (%s): its work is done here", process.wait())
            with self._turn:
                self.ready -= 1
                if not self.ready:
                    self._idle.put(None)
            return None
        self._idle.put(process)
        return read(answer)

    def close(self) -> None:
        """Ends them: at once those that have not even started, the others after what they do."""
        self._closed = True
        for process in self.processes:
            process.stdin.close()  # type: ignore[union-attr] # it is a pipe
            if process.pid not in self._started:
                process.kill()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def presses_for(count: int) -> Presses | None:
    """Starts processes where so many notes are to be made that they are worth it, and there is a core for them."""
    cores = os.cpu_count() or 1
    return Presses(min(cores, MOST)) if count >= ENOUGH and cores > 1 else None


class Lent:
    """The processes of one import: started as soon as it is known to be large, while it still reads its export."""

    def __init__(self, *, most: int | None = None) -> None:
        self._wanted = most is None or most >= ENOUGH
        self._presses: Presses | None = None

    def foresee(self, export: Path) -> None:
        """Prepares for an export that is about to be read; of a folder nobody knows how much is in it."""
        if export.is_file() and export.stat().st_size >= LARGE:
            self.expect(ENOUGH)

    def expect(self, count: int) -> None:
        """Prepares for so many notes."""
        if count >= ENOUGH and self._wanted and self._presses is None:
            self._presses = presses_for(count)

    def taken(self, count: int) -> Presses | None:
        """Gives the processes for so many notes to who will close them."""
        self.expect(count)
        presses, self._presses = self._presses, None
        return presses

    def close(self) -> None:
        """Ends what nobody has taken."""
        if self._presses is not None:
            self._presses.close()
