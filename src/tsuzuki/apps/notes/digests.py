"""The digest of a text; by itself, since every process beside a run imports it."""

import hashlib
from collections.abc import Iterable
from typing import Final

_AT_ONCE: Final = 1 << 20
"""How many characters are encoded at once: a conversation may have millions."""


def digest(content: str) -> str:
    """Gives the digest of a text."""
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def digest_of(pieces: Iterable[str]) -> str:
    """Gives the digest of a text that is in pieces, without putting it together."""
    sha = hashlib.sha256()
    for piece in pieces:
        for at in range(0, len(piece), _AT_ONCE):
            sha.update(piece[at : at + _AT_ONCE].encode("utf-8", "replace"))
    return sha.hexdigest()
