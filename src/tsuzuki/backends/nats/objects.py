"""What an Object Store bucket holds, as every client of NATS knows it: pieces under a name of their own, and a record.

An object is there once its record is, which is written after its pieces and tells how many those are.
"""

import asyncio
import base64
from typing import Any, Final

import msgspec

from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import IN_FLIGHT, NO_MESSAGE, PASSED, ApiError
from tsuzuki.backends.nats.wire import Wire

DIGEST: Final = "SHA-256="
AT_ONCE: Final = 16
"""How many pieces are read at once."""
ABANDONED: Final = 3600.0
"""After so many seconds without a new piece whoever wrote it is gone."""
_AGAIN: Final = 0.02


class Meta(msgspec.Struct, omit_defaults=True):
    """The record of an object, by the names that clients of NATS give it."""

    name: str
    bucket: str = ""
    nuid: str = ""
    size: int = 0
    chunks: int = 0
    digest: str = ""
    mtime: str = ""
    headers: dict[str, list[str]] | None = None
    metadata: dict[str, str] | None = None
    deleted: bool = False


decode: Final = msgspec.json.Decoder(Meta).decode


def digest(sha256: bytes) -> str:
    """Writes the digest of an object."""
    return DIGEST + base64.urlsafe_b64encode(sha256).decode()


async def again(error: ApiError) -> None:
    """Lets a write be tried again that somebody else came before, or is just coming before; raises any other error."""
    if error.error not in (PASSED, IN_FLIGHT):
        raise error
    await asyncio.sleep(_AGAIN)


async def subjects(wire: Wire, stream: str, filtered: str) -> list[str]:
    """Names the subjects of a stream that have messages; a server tells so many at once and no more."""
    found: list[str] = []
    while True:
        told = await wire.api(topology.stream_info(stream), None, subjects_filter=filtered, offset=len(found))
        some: dict[str, Any] = (told.get("state") or {}).get("subjects") or {}
        found += some
        if not some or len(found) >= int(told.get("total", 0)):
            return found


async def record(wire: Wire, stream: str, subject: str) -> tuple[Meta | None, int]:
    """Reads the record of an object from the leader, and its sequence; None and 0 where there is none."""
    try:
        message = (await wire.api(topology.leader_get(stream), last_by_subj=subject))["message"]
    except ApiError as error:
        if error.error == NO_MESSAGE:
            return None, 0
        raise
    return decode(base64.b64decode(message.get("data") or "")), int(message["seq"])


async def pieces(wire: Wire, stream: str, subject: str, count: int) -> list[bytes]:
    """Reads the pieces of an object; fewer where the others are gone.

    Any replica gives them, one too that lags behind: what it does not have is asked of the leader.
    """
    found: list[bytes] = []
    seq = 1
    while len(found) < count:
        request = {"seq": seq, "next_by_subj": subject, "batch": min(AT_ONCE, count - len(found))}
        answers = await wire.many(topology.direct_get(stream), msgspec.json.encode(request))
        found += [answer.data for answer in answers]
        if answers:
            seq = int((answers[-1].headers or {})["Nats-Sequence"]) + 1
            continue
        try:
            last = (await wire.api(topology.leader_get(stream), None, seq=seq, next_by_subj=subject))["message"]
        except ApiError as error:
            if error.error == NO_MESSAGE:
                break
            raise
        found.append(base64.b64decode(last.get("data") or ""))
        seq = int(last["seq"]) + 1
    return found
