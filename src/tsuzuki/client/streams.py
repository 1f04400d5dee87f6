"""Streams that go on after the connection was lost: what to ask for next, what has come, and when it is over.

One that never was connected has nothing to go on with: it fails at once, as every other call does.
"""

import logging
import math
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import httpx2
import msgspec

from tsuzuki.client import shapes
from tsuzuki.client.calls import Call, Words, given, run_path
from tsuzuki.client.failures import PASSING, HTTPStatusError, unreachable
from tsuzuki.clock import SystemClock

logger: Final = logging.getLogger("tsuzuki.client")

Taken = TypeVar("Taken")
Notice: TypeAlias = Callable[[str], object]
"""Takes a sentence for people: the connection is lost, or there again."""

SILENCE: Final = 15.0
"""The gateway says something every few seconds: after so much silence (seconds) the connection is given up."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 3.0
LARGEST_EVENT: Final = 64 * 1024 * 1024
_LONGEST_WATCH: Final = 600


class Stream(Generic[Taken]):
    """A stream over as many connections as it needs."""

    def __init__(self, server: str, patience: float) -> None:
        self._server, self._patience = server, patience
        self._clock = SystemClock()
        self._failing_since: float | None = None
        self._pause = FIRST_PAUSE
        self._begun = False
        self.notice: Notice = logger.warning
        self.over = False

    def next(self) -> Call[Any] | None:
        """Gives what to ask for; None when it is over."""
        raise NotImplementedError

    def take(self, event: httpx2.ServerSentEvent) -> Taken | None:
        """Takes an event; gives what it brings, if that is new."""
        raise NotImplementedError

    def connected(self) -> None:
        """Takes note that the gateway answers."""
        if self._failing_since is not None:
            self.notice(f"connected to the gateway at {self._server} again")
        self._begun, self._failing_since, self._pause = True, None, FIRST_PAUSE

    def lost(self, error: httpx2.TransportError | HTTPStatusError) -> float:
        """Takes note that the connection was lost; gives how long to wait before the next, or raises."""
        now = self._clock.monotonic()
        if isinstance(error, HTTPStatusError) and error.status_code not in PASSING:
            raise error
        if self._failing_since is None and self._begun:
            why = str(error) or type(error).__name__
            self.notice(f"lost the gateway at {self._server} ({why}); trying again for {self._patience:g} s")
        self._failing_since = now if self._failing_since is None else self._failing_since
        if not self._begun or now - self._failing_since > self._patience:
            raise error if isinstance(error, HTTPStatusError) else unreachable(self._server, error)
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return pause


class Watching(Stream[shapes.RunSnapshot]):
    """The snapshots of a run: each change once, until the run or the time is over."""

    def __init__(
        self,
        server: str,
        patience: float,
        run_id: str | int,
        *,
        include: Words = None,
        since: float | None = None,
        timeout_sec: float | None = None,
    ) -> None:
        super().__init__(server, patience)
        self._run_id, self._include, self._since = run_id, include, since
        self._until = None if timeout_sec is None else self._clock.monotonic() + timeout_sec
        self._seen = -1.0

    def next(self) -> Call[Any] | None:
        """Gives what to ask for; None when it is over."""
        left = _LONGEST_WATCH if self._until is None else self._until - self._clock.monotonic()
        if self.over or left <= 0:
            return None
        seconds = min(max(math.ceil(left), 1), _LONGEST_WATCH)
        since = self._since if self._seen < 0 else self._seen
        return Call(
            "GET", run_path(self._run_id, "/watch"), given(include=self._include, since=since, timeout_sec=seconds)
        )

    def take(self, event: httpx2.ServerSentEvent) -> shapes.RunSnapshot | None:
        """Takes an event; gives the snapshot that it brings, if it is a new one."""
        self.connected()
        if self._until is not None and self._clock.monotonic() > self._until:
            self.over = True
        if event.event != "snapshot":
            return None
        snapshot: shapes.RunSnapshot = msgspec.json.decode(event.data)["snapshot"]
        self.over = self.over or snapshot["status"] in shapes.TERMINAL
        if snapshot["updated_at"] <= self._seen:
            return None
        self._seen = snapshot["updated_at"]
        return snapshot


class Following(Stream[shapes.Event]):
    """The facts of a run's journal, each once, until the run has ended."""

    def __init__(self, server: str, patience: float, run_id: str | int, *, after: int = 0) -> None:
        super().__init__(server, patience)
        self._run_id, self._position = run_id, after

    def next(self) -> Call[Any] | None:
        """Gives what to ask for; None when it is over."""
        if self.over:
            return None
        return Call("GET", run_path(self._run_id, "/events"), headers={"Last-Event-ID": f"{self._position}"})

    def take(self, event: httpx2.ServerSentEvent) -> shapes.Event | None:
        """Takes an event; gives the fact that it brings, if it is a new one."""
        self.connected()
        self.over = self.over or event.event == "end"
        if event.event != "fact":
            return None
        fact: shapes.Event = msgspec.json.decode(event.data)
        if fact["position"] <= self._position:
            return None
        self._position = fact["position"]
        return fact
