"""What a provider means with a refusal: that this question is bad, that we ask too fast, or that nobody is let in."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from tsuzuki.clock import Clock

KEY: Final = frozenset({401, 403})
ACCOUNT: Final = 402
_ACCOUNT_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "insufficient_credits",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "payment_required",
    }
)
_ACCOUNT_TEXT: Final = re.compile(
    r"credit balance is too low|credits? (?:is|are|have been) (?:depleted|exhausted)|insufficient_quota"
    r"|insufficient (?:credits|balance|funds)|billing hard limit",
    re.IGNORECASE,
)
_QUOTA_TEXT: Final = re.compile(r"exceeded your current quota", re.IGNORECASE)
"""Gemini says so of its limits a minute too, and then for how long to wait."""
_MODERATION: Final = re.compile(r"moderation|flagged|content polic", re.IGNORECASE)
_TOO_LARGE: Final = re.compile(r"request too large", re.IGNORECASE)
_RETRY_DELAY: Final = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the body of a refusal says, in whatever form the provider puts it."""

    text: str
    codes: frozenset[str] = frozenset()
    """The types and codes of the error, in small letters."""
    details: str = ""
    pause: float | None = None

    @classmethod
    def read(cls, content: bytes) -> "Refusal":
        """Read a body."""
        try:
            found = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError):
            return cls(text_of(content))
        error = found
        for key in ("error", "message", "detail"):
            if isinstance(found, dict) and found.get(key):
                found = found[key]
                error = found if isinstance(found, dict) else error
        error = error if isinstance(error, dict) else {}
        codes = frozenset(str(error[key]).lower() for key in ("type", "code", "status") if error.get(key))
        text = str(found.get("code") or found.get("type") or found) if isinstance(found, dict) else str(found)
        details = str(error.get("details") or "")
        delay = _RETRY_DELAY.search(details)
        return cls(text, codes, details, float(delay[1]) if delay else None)

    def is_denied(self, status: int, pause: float | None) -> bool:
        """Tell whether it is the key or the account that is refused, and not this question."""
        if status in KEY:
            return not _MODERATION.search(self.text)
        if status == ACCOUNT or self.codes & _ACCOUNT_CODES or "PerDay" in self.details:
            return True
        return bool(_ACCOUNT_TEXT.search(self.text)) or (pause is None and bool(_QUOTA_TEXT.search(self.text)))

    @property
    def is_too_large(self) -> bool:
        """Whether the question alone exceeds a limit: waiting does not help."""
        return bool(_TOO_LARGE.search(self.text))


def retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Gives how long the provider asks us to wait (seconds); a date counts too."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        asked = _seconds(text, clock) if text else None
        if asked is not None:
            return max(0.0, asked * unit)
    return None


def _seconds(text: str, clock: Clock) -> float | None:
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return number if math.isfinite(number) else None
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - datetime.fromtimestamp(clock.now(), UTC)).total_seconds()


def text_of(content: bytes | bytearray) -> str:
    """Gives a body as text."""
    return content.decode(errors="replace")
