"""Rows of runs in a SQLite database: in memory those that a worker may claim, in a file all of them, for lists."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Query
from tsuzuki.backends.filters import filters
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.frames import ELSEWHERE, Frame, Tip
from tsuzuki.backends.nats.queries import SQL
from tsuzuki.lifecycle import Run, Status


class News:
    """What was heard of a run, or written here: a message of its chain; without a row it is gone."""

    __slots__ = ("_frame", "_tip", "seq")

    def __init__(self, seq: int, *, frame: Frame | None = None, tip: Tip | None = None) -> None:
        self.seq, self._frame, self._tip = seq, frame, tip

    @property
    def tip(self) -> Tip | None:
        """The end of the chain; it is read out of the message when somebody needs it, and once."""
        if self._tip is None and self._frame is not None:
            self._tip = frames.tip_of(self._frame, self.seq)
        return self._tip

    @property
    def run(self) -> Run | None:
        """The row; None where the run is gone."""
        return None if self.tip is None else self.tip.run

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        if self._frame is not None:
            return len(self._frame.row or b"") + sum(map(len, self._frame.facts))
        run = self.run
        return 0 if run is None else len(run.params) + len(run.progress) + len(run.result or b"")

    def columns(self) -> tuple[Any, ...] | None:
        """Gives the row as it is written down."""
        tip = self.tip
        if tip is None or tip.run is None:
            return None
        run, row = tip.run, None if self._frame is None else self._frame.row
        return (
            *(run.id, tip.seq, tip.first, run.number, run.position, run.flow, run.digest, run.tag),
            *(f.encode(run.tags).decode(), run.priority, run.key, run.tenant, run.private, run.status.value),
            *(run.holder, run.not_before, run.wait, run.finished_at, run.updated_at, run.version, run.workflow),
            *(None if run.error is None else run.error.message, bool(run.spent)),
            *(run.status is Status.COMPLETED and run.failed > 0, row or frames.encode_row(run)),
        )


class Rows:
    """A database with rows of runs; what it says of a run may be a moment old."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._listable = False

    @classmethod
    def in_memory(cls) -> "Rows":
        """Makes one that is empty, for the runs that have not ended."""
        database = sqlite3.connect(":memory:", isolation_level=None)
        database.executescript(SQL["in_memory"])
        return cls(database)

    def close(self) -> None:
        """Leaves."""
        self._database.close()

    @contextmanager
    def transaction(self, begin: str = "begin") -> Iterator[None]:
        """Does several things as one, or nothing of it."""
        self._database.execute(SQL[begin])
        try:
            yield
            self._database.execute(SQL["commit"])  # a full disk may refuse it, and leave the transaction open
        except BaseException:
            if self._database.in_transaction:
                self._database.execute(SQL["roll_back"])
            raise

    # Writing

    def put(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes over rows, unless newer ones are there."""
        self._database.executemany(SQL["put"], rows)

    def forget(self, gone: Iterable[tuple[str, int]]) -> None:
        """Removes the rows of runs that are gone, or have ended, since a sequence."""
        self._database.executemany(SQL["forget"], gone)

    def touch(self, touched: Mapping[str, float]) -> None:
        """Sets when runs were last updated, where that is later than what is known."""
        self._database.executemany(SQL["touch"], [{"id": run_id, "at": at} for run_id, at in touched.items()])

    def keep_params(self, params: Mapping[str, bytes]) -> None:
        """Keeps the large params of runs, which only the first messages of their chains have."""
        self._database.executemany(SQL["keep_params"], params.items())

    # Reading

    def all(self, name: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Asks a question by its name; nothing is left unread, which would hold an old state of the file."""
        return self._database.execute(SQL[name], values).fetchall()

    def one(self, name: str, values: Any = ()) -> Any:
        """Gives the first value of an answer; None where there is none."""
        found = self.all(name, values)
        return found[0][0] if found else None

    def tip(self, run_id: str) -> Tip | None:
        """Reads a row."""
        found = self.all("run", (run_id,))
        return tip_in(found[0]) if found else None

    def runs(self, name: str, values: Any = ()) -> list[Run]:
        """Gives rows without anything beside them."""
        return [frames.decode_row(row) for (row,) in self.all(name, values)]

    def list(self, kind: str, values: Mapping[str, Any]) -> list[Tip]:
        """Gives a page of rows."""
        return [tip_in(row) for row in self.all(kind, values)]

    def make_listable(self) -> None:
        """Makes the indexes of lists, where they are missing."""
        if not self._listable:
            if not self.one("listable"):
                self._database.executescript(SQL["listing"])
            self._listable = True


def tip_in(row: tuple[Any, ...]) -> Tip:
    """Reads a row with its large params."""
    seq, first, body, updated_at, params = row
    run = frames.decode_row(body)
    changed: dict[str, Any] = {}
    if params is not None and run.params == ELSEWHERE:
        changed["params"] = msgspec.Raw(params)
    if updated_at > run.updated_at:
        changed["updated_at"] = updated_at
    return Tip(seq, first, "", msgspec.structs.replace(run, **changed) if changed else run)


def values_of(query: Query) -> dict[str, Any]:
    """Gives what a list is asked for, by the names that its statement has for it."""
    return {
        **filters(query),
        "statuses": f.encode([Status(status).value for status in query.status]).decode() if query.status else None,
        "workflow": query.workflow or None,
        "before_id": "" if query.before is None else query.before[1],
        "limit": query.limit,
        "params": query.params,
    }
