"""How fast a process asks: limits that are set, and those that a provider announces; everybody who asks keeps them."""

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tsuzuki.clock import Clock
from tsuzuki.errors import ProviderDenied

MINUTE: Final = 60.0
MAX_HOLD_S: Final = 60.0
"""The longest pause that we choose ourselves: a provider may ask for more."""
FIRST_GAP_S: Final = 0.05
MAX_GAP_S: Final = 2.0
GAP_DECAY: Final = 0.98
"""By how much the gap between requests shrinks with each answer: after about 35 of them we ask twice as fast."""
DENIED_S: Final = 30.0
"""How long a run whose key or account was refused asks nothing (seconds)."""
PROBES: Final = 5
"""How many are asked at first: their answers may announce limits that the others have to keep."""
PROBE_S: Final = 2.0
"""How long the others wait for that (seconds)."""
PROBE_INTERVAL_S: Final = 0.02


@dataclass(slots=True)
class Pace:
    """Requests and tokens a minute, evenly spread: a minute's worth at once is what providers refuse."""

    requests: int | None = None
    tokens: int | None = None
    _gap: float = 0.0
    """The least time between requests, as learned from refusals."""
    _next: float = 0.0
    """When the next request may be sent."""
    _held_until: float = 0.0
    _refused: int = 0
    """How often in a row a request was refused after a pause."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def turn(self, clock: Clock, weight: int) -> None:
        """Wait until a request of so many tokens may be sent, and take its place."""
        while True:
            slot = self.reserve(clock.monotonic(), weight)
            try:
                if (wait := slot - clock.monotonic()) > 0:
                    await clock.sleep(wait)
            except BaseException:
                with self._lock:
                    self._next -= self._cost(weight)
                raise
            if slot >= self._held_until:
                return

    def reserve(self, now: float, weight: int) -> float:
        """Return when a request may be sent, and keep the time after it free."""
        with self._lock:
            slot = max(now, self._next)
            self._next = slot + self._cost(weight)
        return slot

    def _cost(self, weight: int) -> float:
        """Return how long after such a request the next one may follow (seconds)."""
        by_requests = MINUTE / self.requests if self.requests else 0.0
        by_tokens = MINUTE * weight / self.tokens if self.tokens else 0.0
        return max(by_requests, by_tokens, self._gap)

    def used(self, more: int) -> None:
        """Take note that a request used more tokens than was thought, or fewer."""
        if self.tokens:
            with self._lock:
                self._next += MINUTE * more / self.tokens

    def hold(self, now: float, seconds: float) -> None:
        """Let nobody send for a while: those who have a turn in that time wait for another."""
        with self._lock:
            self._held_until = max(self._held_until, now + seconds)
            self._next = max(self._next, self._held_until)

    def refused(self, sent_at: float, now: float, asked: float | None, first: float) -> None:
        """Take note of a 429: everybody pauses, as long as the provider asks or longer each time, and then goes slower.

        What was sent before the pause began, and is refused during it, says nothing new.
        """
        news = sent_at >= self._held_until
        self._refused += news
        if asked is None and news:
            asked = min(MAX_HOLD_S, first * 2 ** min(self._refused - 1, 20))
        if news:
            self._gap = min(MAX_GAP_S, max(FIRST_GAP_S, 2 * self._gap))
        if asked is not None:
            self.hold(now, asked * random.uniform(1.01, 1.05))  # other processes were told the same

    def answered(self) -> None:
        """Take note of an answer: after refusals, requests may follow each other a little faster."""
        self._refused = 0
        self._gap = self._gap * GAP_DECAY if self._gap > FIRST_GAP_S / 10 else 0.0


@dataclass(slots=True)
class Denials:
    """Those who were refused for their key or account a moment ago: each of their questions would be refused too."""

    _known: dict[tuple[object, int], tuple[float, ProviderDenied]] = field(default_factory=dict)

    def note(self, asker: tuple[object, int], error: ProviderDenied, clock: Clock) -> None:
        """Take note of a refusal."""
        now = clock.monotonic()
        self._known = {each: known for each, known in self._known.items() if now - known[0] < DENIED_S}
        self._known[asker] = now, error

    def get(self, asker: tuple[object, int], clock: Clock) -> ProviderDenied | None:
        """Return what was said to somebody, if that was a moment ago."""
        at, error = self._known.get(asker, (0.0, None))
        return error if clock.monotonic() - at < DENIED_S else None


@dataclass(slots=True)
class ModelPace(Pace):
    """The pace of one model of a provider, as its answers announce it."""

    denied: Denials = field(default_factory=Denials)
    _probes: int = 0
    _heard: bool = False
    last_answer: float = 0.0
    """When it last answered a question (monotonic seconds)."""

    async def probed(self, clock: Clock) -> None:
        """Wait until an answer may have announced limits, unless this is one of the first requests."""
        with self._lock:
            self._probes += 1
            if self._probes <= PROBES:
                return
        until = clock.monotonic() + PROBE_S
        while not self._heard and clock.monotonic() < until:
            await clock.sleep(PROBE_INTERVAL_S)
        self._heard = True

    def heard(self, headers: Mapping[str, str], clock: Clock, weight: int) -> None:
        """Take note of the limits in the headers of an answer."""
        self._heard = True
        if requests := Limit.read(headers, "requests", clock):
            self.requests = requests.limit
            self._await_room(requests, 1, clock)
        if tokens := Limit.read(headers, "tokens", clock):
            # A provider takes a burst of tokens as long as it has them.
            scarce = tokens.remaining < tokens.limit / 2
            self.tokens = tokens.limit if scarce or self._refused else None
            self._await_room(tokens, weight, clock)

    def _await_room(self, limit: "Limit", need: int, clock: Clock) -> None:
        """Pause until so much of a limit is there again, if that is soon."""
        missing = min(need, limit.limit) - limit.remaining
        if missing > 0 and limit.reset > 0:
            wait = missing * limit.reset / max(1, limit.limit - limit.remaining)
            self.hold(clock.monotonic(), min(wait, MAX_HOLD_S))


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as a provider announces it: how much there is, how much is left, and when all of it is back (seconds)."""

    limit: int
    remaining: int
    reset: float

    @classmethod
    def read(cls, headers: Mapping[str, str], what: str, clock: Clock) -> "Limit | None":
        """Read the limit of requests or tokens as OpenAI or Anthropic writes it."""
        for form in ("x-ratelimit-{1}-{0}", "anthropic-ratelimit-{0}-{1}"):
            limit, left, reset = (headers.get(form.format(what, part), "") for part in ("limit", "remaining", "reset"))
            if limit.isdigit() and left.isdigit() and int(limit):
                return cls(int(limit), int(left), duration(reset, clock))
        return None


_UNITS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|[smhd])")


def duration(text: str, clock: Clock) -> float:
    """Return the seconds that a text stands for: `1s`, `6m0s`, `120ms`, or a time to come; 0 if it is none."""
    if parts := _DURATION.findall(text):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - clock.now())
    except ValueError:
        return 0.0


_PACES: Final[dict[tuple[str, str], Pace]] = {}
_MODELS: Final[dict[tuple[str, str, str], ModelPace]] = {}


def pace_of(provider: str, base_url: str, requests: int | None, tokens: int | None) -> Pace:
    """Return the pace that is set for a provider: everybody in this process keeps it."""
    pace = _PACES.setdefault((provider, base_url), Pace())
    pace.requests, pace.tokens = requests, tokens
    return pace


def model_pace_of(provider: str, base_url: str, model: str) -> ModelPace:
    """Return the pace that a model of a provider announces: everybody in this process keeps it."""
    return _MODELS.setdefault((provider, base_url, model), ModelPace())
