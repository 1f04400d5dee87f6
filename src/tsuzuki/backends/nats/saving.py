"""Gathers what is heard of runs for the file that is kept, and writes it down in one transaction when it is needed.

A worker that lists nothing writes nothing once it knows what waits: it forgets what it gathered, the file is behind,
and whoever asks for a list reads that part of the journal again.
"""

import sqlite3
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.frames import ELSEWHERE, Tip
from tsuzuki.backends.nats.kept import About, Kept
from tsuzuki.backends.nats.rows import News
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreClosed
from tsuzuki.lifecycle import Run

MOST: Final = 4096
MOST_BYTES: Final = 16 << 20
"""How many rows, and bytes of them, gather."""
MOST_COUNTED: Final = 256
"""So many rows are looked at for a count without being written: whoever counts often pays for each of them once."""


class Saving:
    """The file with what is not written to it yet.

    `behind` says that it lacks what this process has heard and forgotten, `broken` why it is of no use any more, and
    `stuck` that another file in its place would be no better.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: Kept | None = None
        self._news: dict[str, News] = {}
        self._params: dict[str, bytes] = {}
        self._touched: dict[str, float] = {}
        self._size = 0
        self._heard, self._mark, self._latest = 0, "", 0.0  # up to here the file knows all, with what has gathered
        self._sparse: About | None = None
        self._loading = False
        self.needed = False
        self.behind = False
        self.broken, self.stuck = "", False

    @property
    def kept(self) -> Kept:
        """The file."""
        if self._kept is None:
            raise StoreClosed("lists are asked for once the journal is followed")
        return self._kept

    @property
    def path(self) -> Path | None:
        """Where the file is; None where there is none."""
        return None if self._kept is None else self._kept.path

    def open(self, kept: Kept) -> About:
        """Goes on with a file, and forgets the one before."""
        if self._kept is not None:
            self._kept.close()
        self._kept = kept
        self.broken, self.stuck = "", False
        return kept.about

    def read_again(self, about: About, *, sparse: bool) -> None:
        """Gathers anew, after the message up to which the file knows the journal.

        Where only the last messages of runs are read (sparse), there is no later such message until all are.
        """
        self._clear()
        self._heard, self._mark = about.seq, about.mark
        self._sparse = about if sparse else None
        self._loading, self.behind = True, False

    def loaded(self) -> None:
        """Takes note that what was there when we came has been heard."""
        if self._loading:
            self._loading, self._sparse = False, None
            self.try_to_save()

    def close(self) -> None:
        """Leaves."""
        self.try_to_save()
        if self._kept is not None:
            self._kept.close()

    # What gathers

    def heard(self, run_id: str, news: News, mark: str, *, needed: bool) -> None:
        """Gathers a message that comes in the order of the journal."""
        self._heard, self._mark = news.seq, mark
        self.gather(run_id, news, needed=needed)

    def gather(self, run_id: str, news: News, *, needed: bool) -> None:
        """Gathers what is the last that is known of a run; too much of it is saved, or forgotten if nobody needs it."""
        before = self._news.get(run_id)
        if self._kept is None or self.behind or (before is not None and before.seq >= news.seq):
            return
        self._news[run_id] = news
        self._size += news.size - (0 if before is None else before.size)
        if len(self._news) < MOST and self._size < MOST_BYTES:
            return
        if self._loading or self.needed or needed:
            self.try_to_save()
        else:
            self._forget()

    def add_params(self, run: Run) -> None:
        """Gathers large params, which only the first message of a chain has."""
        if len(run.params) > frames.LARGE_PARAMS and self._kept is not None and not self.behind:
            self._params[run.id] = bytes(run.params)
            self._size += len(run.params)

    def touch(self, run_id: str, updated_at: float) -> None:
        """Gathers when a run was last updated."""
        if self._kept is not None and not self.behind:
            self._touched[run_id] = updated_at

    def get(self, run_id: str) -> News | None:
        """Gives what has gathered of a run."""
        return self._news.get(run_id)

    def whole(self, tip: Tip | None) -> Tip | None:
        """Gives a tip with its large params, where they have just been heard."""
        if tip is None or tip.run is None:
            return None
        if tip.run.params != ELSEWHERE or (params := self._params.get(tip.run.id)) is None:
            return tip
        return msgspec.structs.replace(tip, run=msgspec.structs.replace(tip.run, params=msgspec.Raw(params)))

    # What is written

    def save(self) -> None:
        """Writes what has gathered to the file."""
        if self._kept is not None and not self.behind:
            heard = (self._heard, self._mark) if self._sparse is None else (self._sparse.seq, self._sparse.mark)
            upto = About("", *heard, self._clock.now(), self._latest)
            self._kept.apply(self._news, self._params, self._touched, upto)
            self._clear()

    def try_to_save(self) -> None:
        """Saves where nobody waits for it; a file that cannot be written is built anew when a list is asked for."""
        try:
            self.save()
        except sqlite3.Error as error:
            self.give_up(error)

    def give_up(self, error: Exception) -> None:
        """Takes note that the file is of no use."""
        self.broken = self.broken or str(error) or "it cannot be read"
        self.stuck = self.stuck or isinstance(error, sqlite3.OperationalError)
        self._forget()

    def _forget(self) -> None:
        self._clear()
        self.behind = True

    def _clear(self) -> None:
        self._news, self._touched, self._params, self._size = {}, {}, {}, 0

    def stamped(self, updated_at: float) -> None:
        """Takes note of the time of a write."""
        self._latest = max(self._latest, updated_at)

    # What is read

    def ask(self, question: str, *asked: Any) -> Any:
        """Asks the file, which may be damaged: then it knows nothing."""
        if self._kept is None:
            return None
        try:
            return getattr(self._kept, question)(*asked)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self.give_up(error)
            return None

    def listable(self) -> Kept:
        """Gives the file with all that is known, and the indexes of lists; from now on it is kept up."""
        self.needed = True
        self.save()
        self.kept.make_listable()
        return self.kept

    def counts(self) -> dict[str, int]:
        """Counts the runs by status, whether they are written or not."""
        if len(self._news) > MOST_COUNTED:
            self.save()
        return self.kept.counts(self._news)
