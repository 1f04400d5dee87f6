"""The rows of all runs in a file of this machine, with the sequence of the journal up to which they are known.

It is a cache that several processes read and write, any of which may be killed at any moment. Each applies what it has
heard of the same journal, so a row is never replaced by an older one, and what somebody else has applied already is
skipped. A file that cannot be trusted is not mended: the next one, with a name of its own, is built from the journal,
because a name that is used again would let two files share one write-ahead log.
"""

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tsuzuki import privacy
from tsuzuki.backends.nats.queries import SQL
from tsuzuki.backends.nats.rows import News, Rows

BUSY: Final = 3.0
"""How long another process may write before we go on without the file: it stands still (seconds)."""
FRESH: Final = 600.0
"""How often it is noted that nothing has happened since (seconds)."""
_GENERATION: Final = re.compile(r"\.(\d+)\.db")
_BESIDE: Final = ("", "-wal", "-shm")
_SIZE: Final = slice(16, 18)
_PAGES: Final = slice(28, 32)


class Untrusted(Exception):
    """Why a file is not used, but built anew."""


class About(NamedTuple):
    """Which journal a file follows (by when it was made), and how far.

    `seq` and `mark` name the last message that it knows, `at` is when it knew no later one, `latest` the last
    `updated_at` of a run.
    """

    created: str
    seq: int
    mark: str
    at: float
    latest: float


class Kept(Rows):
    """The rows of all runs."""

    def __init__(self, database: sqlite3.Connection, path: Path | None) -> None:
        super().__init__(database)
        self.path = path

    @classmethod
    def private(cls, created: str = "") -> "Kept":
        """Makes an empty one that is gone with its process; where it grows, it is a file without a name."""
        return cls._made(sqlite3.connect("", isolation_level=None), None, created)

    @classmethod
    def at(cls, path: Path, created: str) -> "Kept":
        """Opens a file, which is made where it is missing; `Untrusted` where it is not what it should be."""
        if path.exists():
            _check_size(path)
        database = sqlite3.connect(path, isolation_level=None, timeout=BUSY)
        try:
            _check_layout(database.execute(SQL["layout_found"]).fetchone()[0])
            database.executescript(SQL["file"])
            return cls._made(database, path, created)
        except BaseException as error:
            database.close()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                raise Untrusted(str(error)) from error
            raise

    @classmethod
    def _made(cls, database: sqlite3.Connection, path: Path | None, created: str) -> "Kept":
        made = cls(database, path)
        if not database.execute(SQL["layout_found"]).fetchone()[0]:
            database.executescript(SQL["whole"])
        database.execute(SQL["begun"], (created,))
        return made

    @property
    def about(self) -> About:
        """What the file says of itself."""
        return About(*self.all("about")[0])

    def apply(
        self, news: Mapping[str, News], params: Mapping[str, bytes], touched: Mapping[str, float], upto: About
    ) -> None:
        """Writes what was heard of runs, up to a message, as one: killed on the way, nothing of it is there."""
        known = self.about
        fresh = {run_id: one for run_id, one in news.items() if one.seq > known.seq}
        if not fresh and not touched and upto.seq <= known.seq and upto.at - known.at < FRESH:
            return
        rows = [columns for one in fresh.values() if (columns := one.columns()) is not None]
        with self.transaction("begin_writing"):
            self.put(rows)
            self.keep_params(params)
            self.forget([(run_id, one.seq) for run_id, one in fresh.items() if one.run is None])
            self.touch(touched)
            self._database.execute(SQL["reached"], upto._asdict())

    def counts(self, news: Mapping[str, News]) -> dict[str, int]:
        """Counts the runs by status, with what is not written yet."""
        with self.transaction():  # what others write meanwhile would be counted twice
            counts: Counter[str] = Counter(dict(self.all("counts")))
            for run_id, one in news.items():
                before = self.all("known", (run_id,))
                if before and before[0][0] >= one.seq:
                    continue
                if before:
                    counts[before[0][1]] -= 1
                if (run := one.run) is not None:
                    counts[run.status.value] += 1
        return {status: count for status, count in counts.items() if count > 0}

    def intact(self) -> bool:
        """Looks the whole file over."""
        try:
            return bool(self.one("intact") == "ok")
        except sqlite3.DatabaseError:
            return False


class Shelf:
    """Where the files of one store are on this machine; the last one counts."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def last(self) -> Path:
        """Gives the file that counts; it may be missing."""
        return self._path(max(self._generations(), default=1))

    def after(self, bad: Path) -> Path:
        """Gives the file that counts instead of a bad one: another process may have begun it already.

        Those before it are removed; whoever has one open goes on with it, alone.
        """
        if (newest := self.last()) != bad:
            return newest
        before = self._generations()
        for path in map(self._path, before):
            for beside in _BESIDE:
                with contextlib.suppress(OSError):
                    Path(f"{path}{beside}").unlink()
        return self._path(max(before, default=0) + 1)

    def make(self) -> None:
        """Makes the folder; what is in it is only for this user."""
        privacy.make_folder(self._folder)

    def _path(self, generation: int) -> Path:
        return self._folder / f"{self._name}.{generation}.db"

    def _generations(self) -> list[int]:
        found = (_GENERATION.fullmatch(path.name.removeprefix(self._name)) for path in self._folder.glob("*.db"))
        return [int(match[1]) for match in found if match]


def _check_layout(found: int) -> None:
    if found not in (0, int(SQL["layout"])):
        raise Untrusted(f"its layout is {found}, not {SQL['layout']}")


def _check_size(path: Path) -> None:
    """Refuses a file that is shorter than it says; SQLite would see so only when it comes to what is missing."""
    wal = Path(f"{path}-wal")
    if wal.exists() and wal.stat().st_size:  # what is missing may be in there
        return
    with path.open("rb") as file:
        header = file.read(100)
    size = int.from_bytes(header[_SIZE], "big")
    expected = (1 << 16 if size == 1 else size) * int.from_bytes(header[_PAGES], "big")
    if header and path.stat().st_size < expected:
        raise Untrusted("it was truncated")
