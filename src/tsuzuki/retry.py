"""When a failed call is tried again, and the two things user code may raise to decide it itself."""

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tsuzuki import options

_CENTURY = 100 * 366 * 86400.0
"""The longest wait (seconds): a time that calendars can still write."""


class Later(Exception):
    """Raised by user code: not now; try again after so many seconds. It does not count as a failure.

    The reason is shown wherever the run is shown while it waits.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        self.reason = str(reason)
        try:
            self.seconds = math.nan if isinstance(seconds, str | bytes | bool) else float(seconds)
        except (TypeError, ValueError, OverflowError):
            self.seconds = math.nan
        if not 0 <= self.seconds <= _CENTURY:
            allowed = "a number of at least 0, and at most 100 years"
            raise ValueError(f"Later needs a number of seconds: {options.wrong('what it was given', allowed, seconds)}")
        super().__init__(f"again in {seconds} s" + (f": {reason}" if reason else ""))


class GiveUp(Exception):
    """Raised by user code: trying again will not help; the step fails for good, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a task is tried, and how long to wait between: backoff, backoff x factor, … with jitter."""

    attempts: int = 3
    backoff: float = 1.0
    factor: float = 2.0
    most: float = 60.0
    jitter: float = 0.25
    on: tuple[type[Exception], ...] = (Exception,)

    if not TYPE_CHECKING:  # a type checker knows the fields

        def __new__(cls, *args: Any, **fields: Any) -> Self:
            """Refuse a misspelt field by name."""
            del args
            options.known("Retry", fields, cls.__match_args__)
            return object.__new__(cls)

    def __post_init__(self) -> None:
        options.whole("Retry(attempts=…)", self.attempts, 1)
        options.number("Retry(backoff=…)", self.backoff, 0)
        options.number("Retry(factor=…)", self.factor, 1)
        options.number("Retry(most=…)", self.most, 0)
        options.number("Retry(jitter=…)", self.jitter, 0, 1)
        options.exceptions("Retry(on=…)", self.on)

    def again(self, tries: int, error: BaseException) -> bool:
        """Tells whether a call that failed with this error after so many tries is tried again."""
        return tries < self.attempts and isinstance(error, self.on) and not isinstance(error, GiveUp)

    def delay(self, tries: int) -> float:
        """Gives the wait after so many tries, drawn around the exponential backoff."""
        try:
            wait = min(self.backoff * self.factor ** (tries - 1), self.most)
        except OverflowError:  # far beyond `most`
            wait = self.most
        return wait * (1 + self.jitter * random.uniform(-1, 1))


ONCE = Retry(attempts=1)
