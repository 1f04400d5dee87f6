"""When a failed call is tried again, and the two things user code may raise to decide it itself."""

import math
import random
from dataclasses import dataclass


class Later(Exception):
    """Raised by user code: not now; try again after so many seconds. It does not count as a failure."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds} s")
        try:
            self.seconds = float(seconds)
        except (TypeError, ValueError):
            self.seconds = math.nan
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"Later needs a number of seconds of at least 0, not {seconds!r}")


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

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"Retry(attempts=…) must be at least 1, not {self.attempts!r}")
        if self.backoff < 0 or self.factor < 1 or self.most < 0 or not 0 <= self.jitter <= 1:
            raise ValueError(f"Retry needs backoff >= 0, factor >= 1, most >= 0 and jitter from 0 to 1; got {self!r}")

        try:
            isinstance(ValueError(), self.on)
        except TypeError:
            raise ValueError(
                f"Retry(on=…) takes exception classes, for example on=(ConnectionError,), not {self.on!r}"
            ) from None

    def again(self, tries: int, error: BaseException) -> bool:
        """Tells whether a call that failed with this error after so many tries is tried again."""
        return tries < self.attempts and isinstance(error, self.on) and not isinstance(error, GiveUp)

    def delay(self, tries: int) -> float:
        """Gives the wait after so many tries, drawn around the exponential backoff."""
        wait: float = min(self.backoff * self.factor ** (tries - 1), self.most)
        return wait * (1 + self.jitter * random.uniform(-1, 1))


ONCE = Retry(attempts=1)
