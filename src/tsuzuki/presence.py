"""How a worker shows that it lives, and how others know that it does not.

A worker holds a lock on a file of its own; the system frees it when the process ends, however it ends. On the
same host a free lock means dead, at once; pids that come again and clocks that jump do not matter. A file that is
missing says nothing: a cleaner may have removed it, and the worker makes it again with its next heartbeat. Where the
store lives on one machine, a worker from before its last boot is dead too. Any other worker is dead when its
count of heartbeats has stood still for a whole lease on our own monotonic clock: wall clocks are never
compared, and time that this machine slept does not count.
"""

import asyncio
import contextlib
import hashlib
import os
import platform
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from datetime import datetime
from functools import cache
from pathlib import Path
from time import sleep
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tsuzuki.backends import Backend, WorkerRecord, WorkerState
from tsuzuki.clock import Clock, SystemClock, until_tick
from tsuzuki.errors import Conflict, StoreError
from tsuzuki.forks import keep_from_children
from tsuzuki.lifecycle import Run

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no advisory locks on this system: heartbeats decide alone
    fcntl = None


_LONGEST: Final = 180
"""How much of a worker's name stands in that of its file, for people."""
_TRIES: Final = 5
_PAUSE: Final = 0.01
"""How often a lock that another has is tried, and how far apart (seconds)."""
MISSING_SILENCE_S: Final = 60.0
"""After so much silence a worker whose file is missing has ended: one that lives makes it anew with each heartbeat."""
STALE_S: Final = 86_400.0
"""Files that no heartbeat has touched for so long are removed, unless somebody holds their lock."""


@cache
def this_host() -> str:
    """Names this machine, as long as it runs, and the container in it: boot/namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/mnt').readlink()}"
    except OSError:
        return f"{platform.node()}-{uuid.getnode():x}/"


def _file_name(worker: str) -> str:
    """Writes any name so that it fits into that of a file: a letter of most languages is nine there."""
    written = quote(worker, safe="")
    digest = hashlib.sha256(worker.encode()).hexdigest()[:16]
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}-{digest}"


class Presence:
    """Holds the lock file of a worker while it lives."""

    def __init__(self, worker: str, store: str = "") -> None:
        self.path = ""
        self._file: Any = None
        if fcntl is None:
            return
        folder = Path(tempfile.gettempdir()) / f"tsuzuki-{os.getuid()}"
        if not _is_ours(folder):
            return  # whoever put it there could take our lock away: let heartbeats alone tell that we live
        self.path = str(folder / f"{_file_name(worker)}-{hashlib.sha256(store.encode()).hexdigest()[:8]}.alive")
        self._file = _locked(Path(self.path), fcntl)
        if self._file is None:
            raise Conflict(f"a worker called {worker!r} is at work here already; give every worker its own name")
        self._sign()
        keep_from_children(self)
        _sweep(folder, fcntl)

    def _sign(self) -> None:
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")  # for people: nobody decides by it
        self._file.flush()

    def renew(self) -> None:
        """Keep the file fresh for whatever cleans the folder by age, and make it anew if it was removed."""
        if self._file is None or fcntl is None:
            return
        with contextlib.suppress(OSError):  # then heartbeats alone tell that we live
            os.utime(self._file.fileno())
            path = Path(self.path)
            if _is_at(path, self._file) or not _is_ours(path.parent):
                return
            if (file := _locked(path, fcntl)) is not None:
                self._file.close()
                self._file = file
                self._sign()

    def let_go(self) -> None:
        """Closes the lock; a child does so, since it may live longer than we do."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self, *, told: bool = True) -> None:
        """Leaves; the file goes first, so that nobody can mistake a new one for it.

        Where the store was not told of it, the file stays: its lock is free, which tells others at once.
        """
        if told and self._file is not None:
            with contextlib.suppress(OSError):
                Path(self.path).unlink()
        self.let_go()


def _is_ours(folder: Path) -> bool:
    """Make the folder of the locks, and return whether it belongs to this user."""
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder.stat(follow_symlinks=False).st_uid == os.getuid()


def _locked(path: Path, locks: ModuleType) -> Any:
    """Opens a file and locks it, for life; None: another has it."""
    for _ in range(_TRIES):
        file = path.open("a", encoding="ascii")
        try:
            locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
        except OSError:  # whoever just looks whether it is free holds it too, for a moment
            file.close()
            sleep(_PAUSE)
            continue
        if _is_at(path, file):
            return file
        file.close()  # one who left has removed it since it was opened: nobody would find this lock
    return None


def _sweep(folder: Path, locks: ModuleType) -> None:
    """Remove the files of workers that were killed long ago."""
    now = SystemClock().now()
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if not entry.name.endswith(".alive") or now - entry.stat(follow_symlinks=False).st_mtime < STALE_S:
                continue
            with Path(entry.path).open(encoding="ascii") as file:
                locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
                if _is_at(Path(entry.path), file):
                    Path(entry.path).unlink()


def _is_at(path: Path, file: Any) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def is_gone(record: WorkerRecord, *, one_machine: bool, now: float | None = None) -> bool:
    """Tells whether a worker has ended for certain.

    Of one whose file is missing that is only known by its silence: give the time where nobody else watches for that.
    """
    if record.host.partition("/")[0] != this_host().partition("/")[0]:
        return one_machine  # the machine has been started anew since
    if fcntl is None or not record.presence or record.host != this_host():
        return False
    try:
        with Path(record.presence).open(encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return now is not None and now - record.heartbeat_at > MISSING_SILENCE_S
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
OUTAGE: Final = 10.0
"""After an outage of so many seconds, or of a lease, silence begins anew: others need a moment to come back, too."""


def state_of(record: WorkerRecord, now: float, silent: float) -> WorkerState:
    """Tells people what a worker is doing: one that has not left in order and is silent for so long is DISCONNECTED.

    This compares wall clocks, and is for showing only; whose runs are taken over is decided by `Watch`.
    """
    if record.stopped:
        return WorkerState.STOPPED_GRACEFUL
    if now - record.heartbeat_at > silent:
        return WorkerState.DISCONNECTED
    return WorkerState.IDLE if record.state == WorkerState.IDLE else WorkerState.RUNNING


class Badge:
    """What a worker tells of itself with its heartbeats."""

    def __init__(self, presence: Presence, worker: str, tags: Sequence[str], clock: Clock, **more: Any) -> None:
        self._clock = clock
        self._always = WorkerRecord(
            id=worker,
            host=this_host(),
            presence=presence.path,
            tags=tuple(tags),
            started_at=clock.now(),
            instance_id=uuid.uuid4().hex,
            **more,
        )
        self._shown: str | None = None
        self._last: dict[str, Any] = {}
        self.ended: str | None = None
        """The run that ended last, until its status is known."""

    def note(self, **changed: Any) -> None:
        """Takes note of what has changed about the worker."""
        self._always = msgspec.structs.replace(self._always, **changed)

    async def record(self, backend: Backend, current: Run | None, stopped: str = "") -> WorkerRecord:
        """Gives what is to be told now: which run is under way, how the last one ended, or why the worker stopped."""
        if self.ended is not None:
            row, self.ended = await backend.get(self.ended), None
            self._last = _last_run(row) if row is not None else self._last
        now = self._clock.now()
        state = WorkerState.IDLE if current is None else WorkerState.RUNNING
        return msgspec.structs.replace(
            self._always,
            heartbeat_at=now,
            state=(WorkerState.STOPPED_GRACEFUL if stopped else state).value,
            current_run_id=None if current is None else current.id,
            current_tenant="" if current is None else current.tenant,
            stopped_at=now if stopped else None,
            stop_reason=stopped or None,
            tallies=deepcopy(self._always.tallies),  # as they are now: they go on growing
            **self._last,
        )

    def told(self, record: WorkerRecord) -> None:
        """Take note of what others see by now."""
        self._shown = record.current_run_id

    def outdated(self, current: Run | None) -> bool:
        """Tells whether others see a run that is over, or none where there is one, or not how the last one ended."""
        return self.ended is not None or self._shown != (None if current is None else current.id)


def _last_run(row: Run) -> dict[str, Any]:
    """Gives what a worker tells of the run that it has executed last."""
    return {
        "last_run_id": row.id,
        "last_tenant": row.tenant,
        "last_run_status": row.status.value,
        "last_run_started_at": _seconds(row.started_at),
        "last_run_finished_at": _seconds(row.finished_at),
    }


def _seconds(stamp: str | None) -> float | None:
    return None if stamp is None else datetime.fromisoformat(stamp).timestamp()


async def looking(look: Callable[[], Awaitable[None]], pause: float) -> None:
    """Looks for the dead every so many seconds, apart from all else: what hangs beside it does not delay it."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(until_tick(loop.time(), pause))
        with contextlib.suppress(StoreError):
            await look()


class Watch:
    """Knows which workers are dead.

    Silence is time in which we could see, and were heard ourselves, and another was not. What we could not see does
    not count, and does not wipe out what was counted before: a watcher that is blind again and again notices a death
    all the same. Only after a long outage does it begin anew, since everybody has to come back then.
    """

    def __init__(self, lease: float, *, one_machine: bool) -> None:
        self._lease = lease
        self._one_machine = one_machine
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked = self._watched = self._sure = 0.0
        self._overdue = max(lease / 2, GLANCE)
        self._outage = max(lease, OUTAGE)
        self._heard: float | None = None
        self._blind = False

    def heard(self, monotonic: float) -> None:
        """Takes note that a heartbeat of our own was written: while ours cannot be, those of others cannot either."""
        if self._heard is not None and monotonic - self._heard > self._outage:
            self._seen.clear()
        elif self._heard is not None and monotonic - self._heard > self._overdue:
            self._take_back(self._lease / 6)
        self._heard, self._sure = monotonic, self._watched

    def blind(self) -> None:
        """Takes note that the store could not be read or written: silence until the next look was perhaps our own."""
        self._blind = True

    async def look(self, backend: Backend, worker: str, clock: Clock) -> frozenset[str]:
        """Looks which of the others that hold something are dead."""
        try:
            records = await backend.workers(holding=True)
        except StoreError:
            self.blind()
            raise
        return self.dead([record for record in records if record.id != worker], clock.monotonic())

    def dead(self, records: list[WorkerRecord], monotonic: float) -> frozenset[str]:
        """Gives the ids of the workers that are gone, or silent for a whole lease while we watched."""
        unseen = monotonic - self._looked
        if self._blind and unseen > self._outage:
            self._seen.clear()
        elif not self._blind and (self._heard is None or monotonic - self._heard <= self._overdue):
            self._watched += min(unseen, GLANCE)
        self._looked, self._blind = monotonic, False
        return frozenset(r.id for r in records if self._is_dead(r))

    def _take_back(self, most: float) -> None:
        """Lets no more than so many seconds count of what was watched since our last heartbeat: it came late."""
        self._watched = min(self._watched, self._sure + most)
        self._seen = {name: (beats, min(since, self._watched)) for name, (beats, since) in self._seen.items()}

    def _is_dead(self, record: WorkerRecord) -> bool:
        if record.stopped or is_gone(record, one_machine=self._one_machine):
            return True
        beats, since = self._seen.get(record.id, (-1, self._watched))
        if beats != record.beats:
            self._seen[record.id] = (record.beats, self._watched)
            return False
        return self._watched - since > self._lease
