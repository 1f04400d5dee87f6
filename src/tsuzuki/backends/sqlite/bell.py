"""Wakes those who wait for a run or for work: in this process by hand, between processes by a datagram.

The datagram only says "look"; what has changed is read from the file. While somebody waits, the file's
`data_version` is looked at now and then too: of a run that others write nobody is told, and processes that do not
share the folder of the sockets (another user, a container) cannot call each other.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar
from uuid import uuid4

from tsuzuki.clock import until_tick

Mark = tuple[int, float, int | None]
"""How far a run has come: its position, its `updated_at`, its last log line."""
News = tuple[object, ...]
"""What there is for workers; it differs when there is more."""
State = TypeVar("State")

LOOK_EVERY: Final = 0.05
"""Seconds between two looks at the file while somebody waits for a run, or something has just come for workers."""
SELDOM: Final = 0.25
"""Seconds between two looks while there is only work to wait for, which a datagram tells of, and long none came."""
CALM: Final = 20
"""Where nothing came for workers for so many times the time between two looks, the next may be further away."""
FRESH: Final = 0.5
"""For so long after a change those who come to wait may not have read it yet..."""
SOON: Final = 0.1
"""...and so wait no longer than this."""
LONGEST_PATH: Final = 100
REMEMBERED: Final = 1024


class Sight(Protocol):
    """What the bell reads from the file."""

    def version(self) -> int:
        """Gives a number that differs after every commit of anybody."""
        ...

    def news(self) -> News:
        """Tells what a worker would look for."""
        ...

    def mark(self, run_id: str) -> Mark | None:
        """Tells how far a run has come."""
        ...


class Seen(Generic[State]):
    """What was last seen of something, and since when it looks like that."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[State, float]] = OrderedDict()

    def age(self, name: str, state: State, now: float) -> float:
        """Tells for how long a thing is known to look as it does now."""
        last = self._seen.pop(name, None)
        since = last[1] if last is not None and last[0] == state else now
        self._seen[name] = state, since
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return now - since


class Bell:
    """Those who wait, and what wakes them."""

    def __init__(self, path: Path, sight: Sight) -> None:
        self._sight = sight
        self._loop = asyncio.get_running_loop()
        self._version = sight.version()
        self._for_work: dict[asyncio.Future[None], News] = {}
        self._for_runs: dict[str, dict[asyncio.Future[None], Mark | None]] = {}
        self._marks: Seen[Mark | None] = Seen()
        self._news: Seen[News] = Seen()
        self._next_look: asyncio.TimerHandle | None = None
        self._stirred_at = self._loop.time()
        self._line = Line(path)
        if self._line.socket is not None:
            self._loop.add_reader(self._line.socket, self._called)

    async def work(self, timeout: float) -> None:
        """Waits for a reason to look for work."""
        news = self._sight.news()
        if self._news.age("work", news, self._loop.time()) < FRESH:
            timeout = min(timeout, SOON)
        waiter = self._loop.create_future()
        self._for_work[waiter] = news
        await self._wait(waiter, timeout, lambda: self._for_work.pop(waiter))

    async def run(self, run_id: str, position: int, timeout: float) -> None:
        """Waits until a run is past a position, or its row or its log have changed."""
        mark = self._sight.mark(run_id)
        if mark is not None and mark[0] > position:
            return
        if self._marks.age(run_id, mark, self._loop.time()) < FRESH:
            timeout = min(timeout, SOON)
        waiter = self._loop.create_future()
        waiters = self._for_runs.setdefault(run_id, {})
        waiters[waiter] = mark

        def leave() -> None:
            del waiters[waiter]
            if not waiters and self._for_runs.get(run_id) is waiters:
                del self._for_runs[run_id]

        await self._wait(waiter, timeout, leave)

    def ring(self, run_ids: Iterable[str], others: bool, work: bool) -> None:
        """Wakes those in this process whom a commit concerns, by their runs or as work; and other processes."""
        if self._for_runs:
            for run_id in run_ids:
                if run_id in self._for_runs:
                    _wake(self._for_runs[run_id])
        if work:
            self._stirred_at = self._loop.time()
            _wake(self._for_work)
        if others:
            self._line.call_others()

    def close(self) -> None:
        """Wakes everybody and hangs up."""
        _wake(self._for_work)
        for waiters in self._for_runs.values():
            _wake(waiters)
        if self._next_look is not None:
            self._next_look.cancel()
        if self._line.socket is not None:
            self._loop.remove_reader(self._line.socket)
        self._line.close()

    async def _wait(self, waiter: asyncio.Future[None], timeout: float, leave: Callable[[], object]) -> None:
        try:
            if self._next_look is None:
                self._look()
            elif self._next_look.when() > self._look_at():  # whoever came just now cannot wait for so long
                self._next_look.cancel()
                self._next_look = self._loop.call_at(self._look_at(), self._look)
            await asyncio.wait({waiter}, timeout=max(timeout, 0.0))
        finally:
            leave()

    def _called(self) -> None:
        if self._line.answered():
            self._wake_changed()

    def _look(self) -> None:
        """Looks whether anybody committed anything; stops when nobody waits any more."""
        self._next_look = None
        if not self._for_work and not self._for_runs:
            return
        version = self._sight.version()
        if version != self._version:
            self._version = version
            self._wake_changed()
        self._next_look = self._loop.call_at(self._look_at(), self._look)

    def _look_at(self) -> float:
        """Tells when to look next; seldom looks come at full parts of a second, as what else is done seldom does."""
        now = self._loop.time()
        calm = 0.0 if self._for_runs or self._line.socket is None else (now - self._stirred_at) / CALM
        return now + max(calm, LOOK_EVERY) if calm < SELDOM else now + until_tick(now, SELDOM)

    def _wake_changed(self) -> None:
        if self._for_work:
            news = self._sight.news()
            stirred = [waiter for waiter, known in self._for_work.items() if known != news]
            _wake(stirred)
            self._stirred_at = self._loop.time() if stirred else self._stirred_at
        for run_id, waiters in self._for_runs.items():
            mark = self._sight.mark(run_id)
            _wake(waiter for waiter, known in waiters.items() if known != mark)


class Line:
    """A datagram socket in a folder of this user that all processes on one file share; where there is none, silence."""

    def __init__(self, path: Path) -> None:
        self.socket: socket.socket | None = None
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        self._folder = Path(tempfile.gettempdir()) / f"tsuzuki-{_user()}" / name
        self._name = f"{uuid4().hex[:12]}"
        address = str(self._folder / self._name)
        if not hasattr(socket, "AF_UNIX") or len(os.fsencode(address)) > LONGEST_PATH or not _own(self._folder):
            return
        line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            line.setblocking(False)
            line.bind(address)
        except OSError:  # looking at the file is enough
            line.close()
            return
        self.socket = line

    def call_others(self) -> None:
        """Tells every other process to look; a socket that nobody reads is removed."""
        if self.socket is None:
            return
        for name in _names(self._folder):
            if name == self._name:
                continue
            address = self._folder / name
            try:
                self.socket.sendto(b"!", str(address))
            except ConnectionRefusedError:  # its process died
                address.unlink(missing_ok=True)
            except OSError:  # it just left, or has calls enough to answer
                continue

    def answered(self) -> bool:
        """Takes all calls that have come."""
        heard = False
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while self.socket is not None and self.socket.recv(16):
                heard = True
        return heard

    def close(self) -> None:
        """Hangs up, and takes the folder away when nobody else is in it."""
        if self.socket is None:
            return
        self.socket.close()
        self.socket = None
        (self._folder / self._name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _own(folder: Path) -> bool:
    """Makes the folder, and refuses one that another user has put there."""
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return all(path.stat(follow_symlinks=False).st_uid == _user() for path in (folder.parent, folder))
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are enough, and this is called after every submit
    except OSError:
        return []
