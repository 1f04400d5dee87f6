"""Turns what NATS says, or does not say, into our errors, with what to do next."""

from collections.abc import Mapping
from typing import Final

import msgspec

from tsuzuki.errors import StoreError, StoreUnavailable

PASSED: Final = 10071
"""Somebody wrote to the subject since we looked: compare."""
IN_FLIGHT: Final = 10164
"""Somebody is writing to the subject: try again."""
NOT_FOUND: Final = 10059
NO_MESSAGE: Final = 10037
NO_MESSAGE_AT: Final = frozenset({10043, 10057})
"""There is no message of that sequence, or none any more."""
CONSUMER_EXISTS: Final = 10148
"""A consumer of this name is there, with other settings."""
DENIED: Final = -403
"""The server does not let this user write to a subject, or listen to it; it has no number of its own for that."""
NO_ROOM: Final = 10023
FULL: Final = frozenset({10002, NO_ROOM, 10028, 10047, 10122})
"""No room is left: for the account, on the server, in memory, on disk, or as much as one stream may ask for."""
WITHOUT_JETSTREAM: Final = 10076
_WITHOUT: Final = frozenset({10035, 10039, WITHOUT_JETSTREAM})
"""There is no JetStream, on the server or for the account."""
_NO_REPLICAS: Final = 10074
_TOO_MUCH: Final = 10077
"""It could not be stored: beyond a limit, as its text says, or for a reason that passes."""
_UNAVAILABLE: Final = 503
TOO_LARGE: Final = 10054
_PASSING: Final = frozenset({10004, 10005, 10006, 10007, 10008, 10009, 10014, 10118})
"""No leader, no quorum, no peers or no answer inside the cluster just now; a consumer that has gone with its server."""


class ApiError(Exception):
    """JetStream refused a request."""

    def __init__(self, code: int, error: int, text: str) -> None:
        super().__init__(f"{text} ({error or code})")
        self.code, self.error, self.text = code, error, text

    @property
    def there_already(self) -> bool:
        """Whether a message was refused because its subject has one, and may have only one."""
        return self.error == _TOO_MUCH and "per subject" in self.text

    @property
    def full(self) -> bool:
        """Whether a message was refused because no room is left."""
        return self.error in FULL or (self.error == _TOO_MUCH and not self.there_already)


class Unclear(Exception):
    """No answer came: what was asked for may have happened, or may not."""


class Away(Unclear):
    """There was no connection: nothing was asked."""


class _Error(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct):
    error: _Error | None = None
    seq: int = 0


_answer: Final = msgspec.json.Decoder(_Answer).decode


def sequence_of(data: bytes) -> int:
    """Reads an acknowledgement: the sequence of what was written; a refusal is raised."""
    answer = _answer(data)
    if answer.error is not None:
        raise refusal(answer.error.code, answer.error.err_code, answer.error.description)
    return answer.seq


def refusal(code: int, error: int, text: str) -> ApiError | Unclear:
    """Says what a refusal means; a fault that passes leaves it unclear."""
    if error in FULL or (error == _TOO_MUCH and "maximum" in text):
        return ApiError(code, error, text)
    if error in _WITHOUT:
        return ApiError(code, error, text)
    if error in _PASSING or code == _UNAVAILABLE:
        return Unclear(text)
    return ApiError(code, error, text)


def unclear(error: StoreUnavailable) -> StoreUnavailable:
    """Says what whoever submitted a run may assume when nobody can tell whether it was kept."""
    told = (
        "whether the run was accepted is unclear: it is taken back once the store answers. To be sure of one run, "
        "ask again with the same idempotency key"
    )
    return StoreUnavailable(f"{error}; {told}", f"{error.advice}; {told}" if error.advice else told)


def unclear_request(error: StoreUnavailable) -> StoreUnavailable:
    """Says what whoever asked something of a run may assume when nobody can tell whether that was let in."""
    told = "what was asked may or may not have been let in: look at the run, or ask again, which does no harm"
    return StoreUnavailable(f"{error}; {told}", f"{error.advice}; {told}" if error.advice else told)


def fault(error: ApiError | Unclear, url: str) -> StoreError:
    """Says what a failed request means for the store."""
    if isinstance(error, Unclear):
        advice = "check the server, its disk and the network, then try again"
        told = StoreUnavailable(f"{url} does not answer ({error}); {advice}", f"its server does not answer; {advice}")
        told.passing = not isinstance(error, Away)
        return told
    if error.full or error.there_already:
        advice = "nothing was half-written: purge old runs, or give it more room"
        return StoreUnavailable(f"{url}: JetStream is full ({error}); {advice}", f"JetStream is full; {advice}")
    if error.error == DENIED:
        return StoreError(f"{url}: this user may not {error.text}; give it the rights of its role (docs/nats.md)")
    if error.error in _WITHOUT:
        return StoreUnavailable(
            f"{url}: there is no JetStream ({error}); start the server with --jetstream, or enable it for the account"
        )
    if error.error == _NO_REPLICAS:
        return StoreUnavailable(f"{url}: it is no cluster ({error}); leave replicas= out, or give a cluster's address")
    if error.error == TOO_LARGE:
        return StoreError(f"{url}: the message is larger than the server allows ({error}); raise its max_payload")
    if error.error == NOT_FOUND:
        return StoreUnavailable(f"{url}: a stream of the store is gone ({error}); restore it, or open the store anew")
    return StoreError(f"{url}: JetStream says: {error}")


def refuse_too_large(data: bytes, headers: Mapping[str, str] | None, largest: int) -> None:
    """Refuses a message that a server would turn its sender out for: it counts the headers too, the client does not."""
    weight = sum(len(name) + len(value.encode()) + len(": \r\n") for name, value in (headers or {}).items())
    if len(data) + (weight + len("NATS/1.0\r\n\r\n") if weight else 0) > largest:
        raise ApiError(400, TOO_LARGE, f"{len(data)} bytes")
