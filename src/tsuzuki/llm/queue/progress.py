"""Who is told how far a process is, without ever waiting for them."""

import logging
import threading
from dataclasses import dataclass
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeAlias

ProgressStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]

logger: Final = logging.getLogger("tsuzuki.llm.queue")

WAITING: Final = 10_000
"""How many events wait for a slow listener; more are left out."""
FAREWELL: Final = 2.0
"""How long a listener may take for the last events (seconds)."""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """How far a process is; its id is the correlation id."""

    correlation_id: str
    status: ProgressStatus
    message: str = "Processing..."
    total: int = 0
    completed: int = 0
    """How many have ended, failures included."""
    failed: int = 0


class ProgressNotifier(Protocol):
    """Is told of progress."""

    def on_progress(self, event: ProgressEvent) -> None:
        """Takes an event; it is called on a thread of its own."""
        ...


class Telling:
    """Tells a notifier on a thread of its own: one that is slow or raises disturbs nobody. `with` it."""

    def __init__(self, notifier: ProgressNotifier | None) -> None:
        self._notifier = notifier
        self._events: Queue[ProgressEvent] = Queue(WAITING)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._notifier is not None:
            self._thread = threading.Thread(target=self._run, name="tsuzuki-llm-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(FAREWELL)

    def tell(self, event: ProgressEvent) -> None:
        """Takes an event; gives up on it rather than wait."""
        if self._thread is not None:
            try:
                self._events.put_nowait(event)
            except Full:
                logger.debug("progress of %s is not told: its listener is too slow", event.correlation_id)

    def _run(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=0.02)
            except Empty:
                if self._over.is_set():
                    return
                continue
            try:
                if self._notifier is not None:
                    self._notifier.on_progress(event)
            except Exception:
                logger.exception("a listener for progress failed")
