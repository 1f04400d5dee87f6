"""Follows the journal once somebody asks for more than one run: from where the file of this machine ends.

Whatever is asked for by the id of a run needs none of it; whoever waits for news of a single run hears of that alone.
"""

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from tsuzuki import settings
from tsuzuki.backends.nats import frames, topology
from tsuzuki.backends.nats.chain import TOMBSTONE, Chain
from tsuzuki.backends.nats.faults import Unclear
from tsuzuki.backends.nats.feed import SILENT, Feed
from tsuzuki.backends.nats.frames import Frame
from tsuzuki.backends.nats.kept import About, Kept, Shelf, Untrusted
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.projection import Projection
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import Run

logger: Final = logging.getLogger("tsuzuki.nats")
Answer = TypeVar("Answer")

MOST_WATCHED: Final = 16
"""So many runs are watched one by one; who watches more follows the whole journal."""
OLDEST: Final = TOMBSTONE - 3600
"""A file that has not followed for so long may have missed that runs were removed: no trace is left of it (seconds)."""
_TRIES: Final = 40
_AGAIN: Final = 0.05
"""How often, and after how many seconds, a file is tried to be opened that another process makes just now."""


class Follower:
    """Feeds the projection of this process, and opens its file."""

    def __init__(
        self,
        wire: Wire,
        names: Topology,
        options: Options,
        clock: Clock,
        *,
        chain: Chain,
        projection: Projection,
        news: Callable[[Run], None],
        asked: Callable[[str, int, bytes, float], None],
        caught_up: Callable[[], Awaitable[None]],
        subjects: list[str],
    ) -> None:
        self._wire, self._names, self._options, self._clock = wire, names, options, clock
        self._chain, self._projection, self._news = chain, projection, news
        self._asked, self._caught_up = asked, caught_up
        self._watched: dict[str, Feed] = {}
        self._opening: asyncio.Task[None] | None = None
        self._mending = asyncio.Lock()
        self.feed = Feed(wire, clock, names.journal, subjects, self._heard, whole=True)
        chain.on_stray = self._take

    def start(self) -> None:
        """Begins to follow, unless it has begun; nobody waits for it."""
        if self._opening is None or (self._opening.done() and _failed(self._opening)):
            self._opening = asyncio.get_running_loop().create_task(self._open(), name="tsuzuki-projection")

    async def close(self) -> None:
        """Leaves."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        for feed in (self.feed, *self._watched.values()):
            await feed.close()

    # What is heard

    def _heard(self, subject: str, seq: int, data: bytes) -> None:
        if run_id := _last_of(self._names.all_requests, subject):
            self._asked(run_id, seq, data, self.feed.kept_at)
            return
        run_id = _last_of(self._names.all_chains, subject)
        if not run_id:  # a later version has let it into the journal, and knows what it is
            return
        try:
            frame = frames.decode(data)
        except StoreError as error:  # it has no place in the lists, and must not keep what follows out of them
            logger.warning("%s: %s", subject, error)
            return
        fresh = self._projection.heard(run_id, seq, frame)
        if fresh and not self._chain.heard(seq, frame):
            self._take(run_id, seq, frame)

    def _heard_of_one(self, subject: str, seq: int, data: bytes) -> None:
        frame = frames.decode(data)
        if not self._chain.heard(seq, frame):
            self._take(topology.last_token(subject), seq, frame)

    def _take(self, run_id: str, seq: int, frame: Frame) -> None:
        run = self._projection.follow(run_id, seq, frame)
        if run is not None:
            self._news(run)

    async def watch(self, run_id: str) -> None:
        """Hears of one run, where the journal as a whole is not followed."""
        if run_id in self._watched:
            return
        if self._opening is not None or len(self._watched) >= MOST_WATCHED:
            self.start()  # again, where it has failed
            return
        feed = self._watched[run_id] = Feed(
            self._wire, self._clock, self._names.journal, [self._names.chain(run_id)], self._heard_of_one
        )
        feed.start()

    # What is asked for

    async def loaded(self) -> None:
        """Waits until what was there when we came is known here."""
        if self.feed.loaded.is_set() and self._opening is not None and self._opening.done():
            return
        self.start()
        opening = self._opening
        if opening is None:
            return
        await asyncio.wait({opening}, timeout=12 * self._options.timeout)
        if not opening.done():
            raise Unclear("its journal cannot be followed")
        opening.result()
        await self._read()

    async def _read(self) -> None:
        """Waits until the journal is read to its end."""
        try:
            async with asyncio.timeout(12 * self._options.timeout):
                await self.feed.loaded.wait()
        except TimeoutError:
            raise Unclear("its journal cannot be followed") from None
        self._projection.file.loaded()

    async def asked(self, ask: Callable[[], Answer], *, lists: bool = True) -> Answer:
        """Asks the projection; a file that turns out to be damaged is built anew, and asked again."""
        await self.loaded()
        if self._projection.file.broken or (lists and self._projection.file.behind):
            await self._mend()
        try:
            return ask()
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._projection.file.give_up(error)
        await self._mend()
        return ask()

    async def current(self, ask: Callable[[], Answer], *, lists: bool = True) -> Answer:
        """Asks once what is known here is at most moments old: what others wrote since may be missing otherwise.

        The feed speaks up every second. After a silence the next word is waited for, since it may have been this
        process that stood still; where the connection has been gone for longer than that, it is said at once.
        """
        await self.loaded()
        time, away = asyncio.get_running_loop().time, partial(self._wire.away, self._options.timeout)
        silent, began = self.feed.spoken_at, time()
        while away() or (began - silent > SILENT and self.feed.spoken_at == silent):
            if away() or time() - began >= self._options.timeout:
                raise Unclear(f"nothing was heard of its journal for {time() - silent:.0f} s")
            await asyncio.sleep(_AGAIN)
        return await self.asked(ask, lists=lists)

    async def rebuild(self, why: str) -> None:
        """Builds the file anew."""
        self._projection.file.give_up(sqlite3.DatabaseError(why))
        await self.loaded()
        await self._mend()

    # The file

    async def _open(self) -> None:
        """Opens the file and reads what came since, or the last row of every run where that is less."""
        state = await self._stream()
        kept = await self._kept(state)
        seq, told = self._projection.open(kept), state["state"]
        if int(told["last_seq"]) - seq > int(told.get("num_subjects", 0)):
            seq = 0
        self._projection.read_again(sparse=not seq)
        self.feed.start(seq)
        await self.feed.loaded.wait()
        await self._caught_up()
        self._projection.file.loaded()
        for run_id in list(self._watched):
            await self._watched.pop(run_id).close()

    async def _mend(self) -> None:
        """Makes the file whole again: what it lacks is read again, and where it is damaged there is a new one."""
        async with self._mending:
            if self._projection.file.broken:
                logger.warning("the lists of %s are built anew: %s", self._options.url, self._projection.file.broken)
                created = (await self._stream())["created"]
                self._projection.open(await self._other(created))
            elif not self._projection.file.behind:
                return
            self.feed.again(self._projection.read_again())
            await self._read()

    async def _stream(self) -> dict[str, Any]:
        return await self._wire.api(topology.stream_info(self._names.journal))

    def _shelf(self) -> Shelf:
        options = self._options
        who = (",".join(sorted(options.servers)), options.prefix, options.user, options.creds, options.nkey)
        folder = Path(settings.projection_dir())
        return Shelf(folder, hashlib.sha256("\0".join(who).encode()).hexdigest()[:16])

    async def _kept(self, state: dict[str, Any]) -> Kept:
        """Opens the file of this machine, a new one where it cannot be trusted; a private one where none can be."""
        shelf = self._shelf()
        try:
            shelf.make()
            path = shelf.last()
            try:
                return await self._trusted(path, state)
            except Untrusted as reason:
                logger.warning("the lists of %s are built anew: %s: %s", self._options.url, path, reason)
                return await self._at(shelf.after(path), state["created"])
        except (OSError, sqlite3.Error, Untrusted) as error:
            logger.info("the lists of %s are kept for this process alone: %s", self._options.url, error)
            return Kept.private(state["created"])

    async def _other(self, created: str) -> Kept:
        """Opens another file in place of the one that is open."""
        path, shelf = self._projection.file.path, self._shelf()
        try:
            if path is not None and not self._projection.file.stuck:
                return await self._at(shelf.after(path), created)
        except (OSError, sqlite3.Error, Untrusted) as error:
            logger.info("the lists of %s are kept for this process alone: %s", self._options.url, error)
        return Kept.private(created)

    async def _at(self, path: Path, created: str) -> Kept:
        """Opens a file; that another process is making it just now passes."""
        for _ in range(_TRIES):
            try:
                return Kept.at(path, created)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
            await asyncio.sleep(_AGAIN)
        return Kept.at(path, created)

    async def _trusted(self, path: Path, state: dict[str, Any]) -> Kept:
        """Opens a file if it follows this very journal and has missed nothing that it cannot read again."""
        kept = await self._at(path, state["created"])
        try:
            doubt = await self._doubt(kept.about, state["created"], int(state["state"]["last_seq"]))
        except (sqlite3.Error, IndexError) as error:
            doubt = str(error)
        except BaseException:
            kept.close()
            raise
        if doubt:
            kept.close()
            raise Untrusted(doubt)
        return kept

    async def _doubt(self, about: About, created: str, last: int) -> str:
        """Says why a file cannot be trusted; empty where it can."""
        if about.created != created:
            return "its journal is no more"
        if about.seq > last:
            return "it knows more than the journal, which was restored"
        if about.seq and await self._chain.mark_at(about.seq) != about.mark:
            return "the journal is not what it was, or its last known message was removed"
        if about.seq < last and about.seq and self._clock.now() - about.at > OLDEST:
            return "it is older than the traces of runs that were removed"
        return ""


def _last_of(pattern: str, subject: str) -> str:
    """Gives the last word of a subject, where a pattern fits it that leaves this one open; empty where none does."""
    start = pattern[:-1]
    last = subject[len(start) :] if subject.startswith(start) else ""
    return "" if "." in last else last


def _failed(opening: "asyncio.Task[None]") -> bool:
    return opening.cancelled() or opening.exception() is not None
