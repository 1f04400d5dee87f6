"""How a worker shows that it lives, and how others know that it does not.

A worker holds a lock on a file of its own; the system frees it when the process ends, however it ends. On the
same host a free lock means dead, at once; pids that come again and clocks that jump do not matter. Where the
store lives on one machine, a worker from before its last boot is dead too. Any other worker is dead when its
count of heartbeats has stood still for a whole lease on our own monotonic clock: wall clocks are never
compared, and time that this machine slept does not count.
"""

import contextlib
import os
import platform
import tempfile
import uuid
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tsuzuki.backends import WorkerRecord

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no advisory locks on this system: heartbeats decide alone
    fcntl = None


@cache
def this_host() -> str:
    """Names this machine, as long as it runs, and the container in it: boot/namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/mnt').readlink()}"
    except OSError:
        return f"{platform.node()}-{uuid.getnode():x}/"


class Presence:
    """Holds the lock file of a worker while it lives."""

    def __init__(self, worker: str) -> None:
        self.path = ""
        self._file: Any = None
        if fcntl is None:
            return
        folder = Path(tempfile.gettempdir()) / f"tsuzuki-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = str(folder / f"{worker}.alive")
        self._file = Path(self.path).open("w", encoding="ascii")  # noqa: SIM115 - held open for life: that is its purpose
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file.write(f"{os.getpid()}\n")  # for people: nobody decides by it
        self._file.flush()

    def close(self) -> None:
        """Leaves; the file goes first, so that nobody can mistake a new one for it."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                Path(self.path).unlink()
            self._file.close()
            self._file = None


def is_gone(record: WorkerRecord, *, one_machine: bool) -> bool:
    """Tells whether a worker has ended for certain."""
    if record.host.partition("/")[0] != this_host().partition("/")[0]:
        return one_machine  # the machine has been started anew since
    if fcntl is None or not record.presence or record.host != this_host():
        return False
    try:
        with Path(record.presence).open(encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # it is locked: the worker lives
    return True


def process_of(record: WorkerRecord) -> str:
    """Says which process a worker is, for people: its number where it runs on this host, else its id."""
    try:
        if record.host == this_host():
            return f"process {int(Path(record.presence).read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        pass
    return f"worker {record.id}"


GLANCE: Final = 2.0
"""How much silence one look can tell of (seconds): a look that came late or hung was perhaps not the only one."""


class Watch:
    """Knows which workers are dead."""

    def __init__(self, lease: float, *, one_machine: bool) -> None:
        self._lease = lease
        self._one_machine = one_machine
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked = self._watched = 0.0
        self._overdue = max(lease / 2, GLANCE)
        self._heard: float | None = None

    def heard(self, monotonic: float) -> None:
        """Takes note that a heartbeat of our own was written: while ours cannot be, those of others cannot either."""
        if self._heard is not None and monotonic - self._heard > self._overdue:
            self.blind()
        self._heard = monotonic

    def blind(self) -> None:
        """Takes note that the store could not be read: silence that began before was perhaps our own."""
        self._seen.clear()

    def dead(self, records: list[WorkerRecord], monotonic: float) -> frozenset[str]:
        """Gives the ids of the workers that are gone, or silent for a whole lease while we watched."""
        if self._heard is None or monotonic - self._heard <= self._overdue:
            self._watched += min(monotonic - self._looked, GLANCE)
        self._looked = monotonic
        return frozenset(r.id for r in records if self._is_dead(r))

    def _is_dead(self, record: WorkerRecord) -> bool:
        if record.state != "RUNNING" or is_gone(record, one_machine=self._one_machine):
            return True
        beats, since = self._seen.get(record.id, (-1, self._watched))
        if beats != record.beats:
            self._seen[record.id] = (record.beats, self._watched)
            return False
        return self._watched - since > self._lease
