"""The log of a run: lines and progress, in a bounded buffer that counts what it drops and never slows the work."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tsuzuki.backends import Backend, Line
from tsuzuki.clock import Clock
from tsuzuki.context import FRAME, sayable
from tsuzuki.errors import StoreError
from tsuzuki.journal import Journal
from tsuzuki.redact import redact

MOST_WAITING: Final = 2000
FOR_TROUBLE: Final = 200
"""How many more may wait that tell of trouble: chatter that fills the buffer does not hide them."""
_TROUBLE: Final = frozenset({"warning", "error", "critical"})
MOST_TEXT: Final = 8192


class StepProgress(msgspec.Struct, omit_defaults=True):
    """How far one step is; the estimate comes from how long its items took."""

    step: str
    name: str
    total: int | None = None
    done: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    eta: float | None = None
    text: str = ""
    lanes: int = 1
    seconds: float = 0.0
    """How long items took together, and how many they were: what the journal had took no time."""
    timed: int = 0
    first: tuple[float, int, int] | None = None
    """Where code that tells its own progress began to be timed: when, at how much, after how many replayed calls."""

    def tell(self, done: int, total: int | None, text: str, *, at: float, replayed: int) -> None:
        """Takes what code says of itself; what it passes by because the journal has it is not timed."""
        if self.first is None or self.first[2] != replayed or done < self.done:
            self.first = (at, done, replayed)
        self.done, self.total, self.text = done, total, text
        self.seconds, self.timed = at - self.first[0], done - self.first[1]

    def shown(self) -> dict[str, Any]:
        """Gives what people see of it, with an estimate from how long its items took."""
        if self.total is not None and self.timed:
            left = max(self.total - self.done - self.failed - self.skipped, 0)
            self.eta = round(left * self.seconds / self.timed / self.lanes, 3)
        plain: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("seconds", "timed", "lanes", "first"):
            plain.pop(name, None)
        return plain


class RunLog:
    """Gathers the lines and the progress of one run until they are flushed."""

    __slots__ = ("_backend", "_clock", "_dropped", "_journal", "_lines", "_run_id", "dirty", "progress", "replayed")

    def __init__(self, backend: Backend, run_id: str, clock: Clock, journal: Journal) -> None:
        self._backend = backend
        self._run_id = run_id
        self._clock = clock
        self._journal = journal
        self._lines: list[Line] = []
        self._dropped = 0
        self.dirty = False
        self.progress: dict[str, StepProgress] = {}
        self.replayed = 0
        """How many calls were answered out of the journal."""

    @property
    def waiting(self) -> bool:
        """Whether there is something to flush."""
        return self.dirty or bool(self._lines) or self._dropped > 0

    def line(
        self, text: object, level: str = "info", *, step: str = "", name: str = "", key: str = "", logger: str = ""
    ) -> None:
        """Adds a line, unless too many wait already; then it is counted."""
        if len(self._lines) >= MOST_WAITING + (FOR_TROUBLE if level in _TROUBLE else 0):
            self._dropped += 1
            return
        said = _cut(redact(_text(text)))
        shown = redact(key)  # an item may be its own key, and have a token in its address
        self._lines.append(
            Line(
                self._clock.now(),
                said,
                level,
                step=step,
                name=name,
                key=shown,
                logger=logger,
                position=self._journal.position,
            )
        )

    def step(self, step: str, name: str, total: int | None = None) -> StepProgress:
        """Begins to tell the progress of a step."""
        found = self.progress.get(step)
        if found is None:
            found = self.progress[step] = StepProgress(step, name, total)
        self.dirty = True
        return found

    def finished(self, step: str) -> None:
        """Ends the progress of a step that is over."""
        self.progress.pop(step, None)
        self.dirty = True

    async def flush(self) -> None:
        """Writes what waits; a store that cannot take it loses it, which is what a lossy stream may do."""
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._lines.append(
                Line(
                    self._clock.now(),
                    f"{dropped} log lines were dropped: too many at once",
                    "warning",
                    position=self._journal.position,
                )
            )
        if not self.waiting:
            return
        lines, self._lines = self._lines, []
        progress = msgspec.json.encode([p.shown() for p in self.progress.values()]) if self.dirty else None
        self.dirty = False
        try:
            await self._backend.log(self._run_id, lines, progress)
        except StoreError:
            self._dropped += len(lines)


def filled(text: object, args: tuple[object, ...]) -> str:
    """Fills a message with its arguments as standard logging does; one that does not fit is shown beside them."""
    said = _text(text)
    if not args:
        return said
    try:
        return said % (args[0] if len(args) == 1 and args[0] and isinstance(args[0], Mapping) else args)
    except Exception:  # noqa: BLE001 - a log call never fails the work
        return f"{said} {' '.join(_text(arg) for arg in args)}"


def _text(value: object) -> str:
    try:
        text = str(value)
    except Exception as error:  # noqa: BLE001 - a log call never fails the work
        text = f"<{type(value).__name__}; its str() raised {type(error).__name__}>"
    return sayable(text[: 2 * MOST_TEXT])  # secrets are hidden before it is cut: half of one would not look like one


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…"


_OURS: Final = logging.getLogger("tsuzuki")


class Capture(logging.Handler):
    """Brings standard logging inside a run into the run's log; one handler, however many workers listen.

    Where the program has not configured logging at all, info lines are let through too, and warnings still
    reach stderr as they would without us; our own info lines, which nobody could see, are not even made.
    """

    def __init__(self) -> None:
        super().__init__()
        self._listeners = 0
        self._level: int | None = None

    def install(self) -> None:
        """Starts to listen."""
        self._listeners += 1
        if self._listeners > 1:
            return
        root = logging.getLogger()
        if not root.handlers and root.level == logging.WARNING:
            self._level = root.level
            root.setLevel(logging.INFO)
            _OURS.setLevel(logging.WARNING)
        root.addHandler(self)

    def remove(self) -> None:
        """Stops to listen and leaves everything as it was."""
        self._listeners -= 1
        if self._listeners > 0:
            return
        root = logging.getLogger()
        root.removeHandler(self)
        if self._level is not None:
            root.setLevel(self._level)
            _OURS.setLevel(logging.NOTSET)
            self._level = None

    def emit(self, record: logging.LogRecord) -> None:
        """Hands a record to the run that it was written in."""
        take = getattr(FRAME.get(), "take_record", None)
        if take is not None:
            take(record)
        if self._level is not None and record.levelno >= logging.WARNING and logging.lastResort is not None:
            logging.lastResort.handle(record)


CAPTURE: Final = Capture()
"""Standard logging belongs to the process, and so does this."""
