"""Cursors of lists: opaque to clients, unpadded base64url of a small JSON document."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from math import isfinite

import msgspec

from tsuzuki.errors import BadListQuery, BadRequest
from tsuzuki.gateway.problems import no_query
from tsuzuki.lifecycle import Run


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    u: float
    r: str


class _Position(msgspec.Struct, forbid_unknown_fields=True):
    p: int


def after_run(row: Run) -> str:
    """Makes the cursor that goes on after a run."""
    return _text(msgspec.json.encode(_Place(row.updated_at, row.id)))


def run_place(text: str) -> tuple[float, str] | None:
    """Reads the cursor of a list of runs; the empty one is the first page."""
    if not text:
        return None
    try:
        place = msgspec.json.decode(_bytes(text), type=_Place)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise refused(BadListQuery) from None
    if not isfinite(place.u):
        raise refused(BadListQuery)
    return place.u, place.r


def until(at: float) -> tuple[float, str]:
    """Gives the place before which all runs are that changed at a time or earlier: it comes after every id."""
    return at, "~"


def after_position(position: int) -> str:
    """Makes the cursor that goes on after a position."""
    return _text(msgspec.json.encode(_Position(position)))


def position(text: str) -> int:
    """Reads the cursor of a list of items; the empty one is the beginning."""
    if not text:
        return 0
    try:
        place = msgspec.json.decode(_bytes(text), type=_Position).p
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise refused(BadRequest) from None
    if not 0 <= place < 2**53:
        raise refused(BadRequest)
    return place


def refused(kind: type[BadRequest]) -> BadRequest:
    """Says that a cursor is none of ours."""
    return no_query(kind, "cursor", "no page gave this cursor; send the next_cursor of a page, or leave it out")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii", "strict") + b"=" * (-len(text) % 4))
