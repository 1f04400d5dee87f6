"""What the disk has to do with an import: how long files are being synced, and how fast it takes notes alone."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench.process import Figures
from tsuzuki.apps.notes.flows import WRITERS

NOTE = b"x" * 2_500


class Syncs:
    """Counts the fsyncs that Python calls, and the time during which at least one is under way."""

    def __init__(self) -> None:
        self.calls, self.seconds, self.under_way = 0, 0.0, 0.0
        self._open, self._since, self._turn = 0, 0.0, threading.Lock()
        self._fsync = os.fsync

    def __call__(self, file: int) -> None:
        began = perf_counter()
        with self._turn:
            self._open += 1
            self._since = began if self._open == 1 else self._since
        try:
            self._fsync(file)
        finally:
            ended = perf_counter()
            with self._turn:
                self._open -= 1
                self.calls += 1
                self.seconds += ended - began
                self.under_way += ended - self._since if not self._open else 0.0


@contextmanager
def watched() -> Iterator[Syncs]:
    """Watches the fsyncs of this process; those of SQLite are its own, and are not seen."""
    syncs, before = Syncs(), os.fsync
    os.fsync = syncs  # type: ignore[assignment] # it is called as the function is
    try:
        yield syncs
    finally:
        os.fsync = before


def alone(folder: Path, count: int) -> Figures:
    """Writes so many notes as an import does, whole and synced, by as many writers, and does nothing else."""
    numbers, turn = iter(range(count)), threading.Lock()

    def write() -> None:
        while True:
            with turn:
                number = next(numbers, None)
            if number is None:
                return
            fresh = f"{folder}/.{number}.part"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(descriptor, NOTE)
            os.fsync(descriptor)
            os.close(descriptor)
            os.link(fresh, f"{folder}/{number}.md")
            Path(fresh).unlink()

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    began = perf_counter()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return {"rate": count / (perf_counter() - began)}
