"""API keys: made, hashed with a salt, and compared in constant time.

A key is `tsz_<id>_<secret>` with 256 random bits in its secret. Nobody can guess or search those, so one round of
SHA-256 over salt and secret keeps it as safe as a slow hash would, and costs a request microseconds.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Final

import msgspec

WHEELS: Final = "wheels"
"""The right to upload and delete wheels, which is to run code on the workers."""
RIGHTS: Final = (WHEELS,)
_FORM: Final = re.compile(r"tsz_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a key: never the key itself."""

    id: str
    tenant: str
    salt: str
    digest: str
    created_at: float
    name: str = ""
    revoked_at: float | None = None
    rights: tuple[str, ...] = ()
    """What it may do beyond looking and running: `wheels`."""


def make(tenant: str, name: str, now: float, rights: Iterable[str] = ()) -> tuple[str, KeyRecord]:
    """Makes a key; gives its text, which is shown once, and what is kept of it."""
    number, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_hex(16)
    record = KeyRecord(
        id=number,
        tenant=tenant,
        salt=salt,
        digest=_digest(salt, secret),
        created_at=now,
        name=name,
        rights=tuple(sorted(set(rights))),
    )
    return f"tsz_{number}_{secret}", record


def id_of(text: str) -> str | None:
    """Reads the id in a key; None: it has not the form of one."""
    found = _FORM.fullmatch(text)
    return found[1] if found else None


def fits(text: str, record: KeyRecord) -> bool:
    """Tells whether a text is the key of a record that holds."""
    found = _FORM.fullmatch(text)
    if found is None or found[1] != record.id:
        return False
    same = hmac.compare_digest(_digest(record.salt, found[2]), record.digest)
    return same and record.revoked_at is None


def fast_hash(text: str) -> bytes:
    """Gives what a key that was found good is remembered by, for a moment."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _digest(salt: str, secret: str) -> str:
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()
