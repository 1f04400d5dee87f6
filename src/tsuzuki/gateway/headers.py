"""The headers that every answer gets, whatever else becomes of a request."""

from collections.abc import Iterable
from typing import Final

POLICY: Final = (
    "default-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
    "require-trusted-types-for 'script'",  # no page can make HTML or script out of text, even if it tried
    "trusted-types 'none'",
)
SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", "; ".join(POLICY).encode()),
    (b"cache-control", b"no-store"),  # no cache keeps an answer of the API; files of pages say otherwise
)


def with_security(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Adds what is missing of them to the headers of an answer."""
    given = list(headers)
    named = {name for name, _ in given}
    return [*given, *(pair for pair in SECURITY if pair[0] not in named)]
