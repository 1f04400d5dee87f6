"""What the disk has to do with an import: how fast it takes notes alone, and a place without one."""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench.process import Figures

NOTE = b"x" * 2_500
WRITERS = 16
MEMORY = Path("/dev/shm")  # noqa: S108 - on purpose: nothing there reaches a disk


@contextmanager
def in_memory() -> Iterator[Path | None]:
    """Gives an empty folder in memory, where a sync costs nothing; None on systems that have none."""
    if not MEMORY.is_dir():
        yield None
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def alone(folder: Path, count: int) -> Figures:
    """Writes so many notes, each whole and synced, by several writers at once, and does nothing else."""
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
