"""One run in memory: its row, journal, log and blobs, and the bell that wakes those who watch it."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Entry, Line, Mark, Query
from tsuzuki.backends.bell import Bell
from tsuzuki.lifecycle import Run, Status

MOST_LINES: Final = 20_000
"""How many log lines a run keeps."""


class Record:
    """A run: its row, its journal, its log and its blobs."""

    def __init__(self, run: Run) -> None:
        self.row = run
        self.journal: list[bytes] = []
        self.marks: list[Mark] = []
        self.taken: set[tuple[str, str, int]] = set()
        self.lines: deque[Line] = deque(maxlen=MOST_LINES)
        self.last_line = 0
        self.blobs: dict[str, bytes] = {}
        self.bell = Bell()

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Reads facts, from the one after `start` up to `stop`."""
        for position, raw in enumerate(self.journal[start:stop], start + 1):
            yield Entry(position, f.decode(raw))

    def keep(self, fact: f.Fact, raw: bytes) -> None:
        """Adds a fact to the journal and to the index of outcomes."""
        self.journal.append(raw)
        if isinstance(fact, f.Outcome):
            self.taken.add(identity(fact))
            self.marks.append(Mark(len(self.journal), f.kind(fact), fact.step, fact.key))
        elif isinstance(fact, f.TryFailed):
            self.marks.append(Mark(len(self.journal), f.kind(fact), fact.step, fact.key))
        elif isinstance(fact, f.ResumeAsked) and fact.failed:
            self.marks.append(Mark(len(self.journal), f.kind(fact), "", ""))

    def write(self, lines: Sequence[Line]) -> None:
        """Adds lines to the log, numbered."""
        for line in lines:
            self.last_line += 1
            position = line.position or self.row.position
            self.lines.append(msgspec.structs.replace(line, number=self.last_line, position=position))

    def index(self, after: int, limit: int) -> list[Mark]:
        """Reads the outcomes after a position."""
        start = bisect_right(self.marks, after, key=lambda mark: mark.position)
        return self.marks[start : start + limit]

    def new(self, facts: Sequence[f.Fact]) -> list[f.Fact]:
        """Leaves out the outcomes that are there already: the first write wins, inside one batch too."""
        batch: set[tuple[str, str, int]] = set()
        fresh: list[f.Fact] = []
        for fact in facts:
            if isinstance(fact, f.Outcome):
                name = identity(fact)
                if name in self.taken or name in batch:
                    continue
                batch.add(name)
            fresh.append(fact)
        return fresh


def identity(outcome: f.Outcome) -> tuple[str, str, int]:
    """Says which outcomes are the same one: the first write of them wins."""
    return outcome.step, outcome.key, outcome.attempt


def matches(run: Run, query: Query) -> bool:
    """Tells whether a row is one that a query asks for."""
    return (
        all(
            wanted is None or getattr(run, name) == wanted
            for name in ("flow", "tag", "key", "tenant", "private", "digest", "number", "holder", "workflow")
            for wanted in (getattr(query, name),)
        )
        and (not query.status or run.status in query.status)
        and (not query.failures or run.status is not Status.COMPLETED or run.failed > 0)
        and (query.spent is None or bool(run.spent) is query.spent)
        and (query.label is None or query.label in run.tags)
        and run.id.startswith(query.id_prefix or "")
        and (query.text is None or _says(run, query.text.lower()))
        and (query.finished_before is None or (run.finished_at or "~") < query.finished_before)
        and (query.updated_after is None or run.updated_at > query.updated_after)
        and (query.before is None or (run.updated_at, run.id) < query.before)
    )


def _says(run: Run, text: str) -> bool:
    return any(text in said.lower() for said in (run.id, run.flow, "" if run.error is None else run.error.message))
