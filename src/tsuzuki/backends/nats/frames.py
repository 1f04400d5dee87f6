"""What a message of a chain is: facts, and the row after them, so that the last message of a run is its row."""

from collections.abc import Container, Sequence
from typing import Final

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import DeadLetter, Entry, Mark, dead_letter
from tsuzuki.backends.filters import NO_PARAMS
from tsuzuki.errors import StoreError
from tsuzuki.lifecycle import Run, counted, fold, only_outcomes

LARGE_PARAMS: Final = 2048
"""Params of more bytes are not repeated with every row: they stay in the first message."""
ELSEWHERE: Final = msgspec.Raw(b"null")
"""The params of a row whose own are in the first message of its chain, or in the blob that this one names."""
HUGE_PARAMS: Final = 256 * 1024
"""Params of more bytes are kept as a blob of their run: they would not fit into a message."""
_TURNS: Final = frozenset({"RunCompleted", "RunFailed", "RunCancelled", "ResumeAsked"})
_KNOWN: Final = frozenset(f.KINDS.values())


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """A message of a chain. `mark` is the writer's own, so that a lost acknowledgement can be made up for.

    `first` is the sequence of the first message (0 in that message itself). Without a row it is a tombstone: the
    run was purged, or was never submitted, and whoever thought so is fenced.
    """

    mark: str
    position: int
    first: int
    row: bytes | None
    facts: list[bytes]
    requests: list[int] = []
    """The sequences of the requests that it lets in."""


class Tip(msgspec.Struct, frozen=True):
    """The end of a chain: its sequence, the first one, the row, and the mark of who wrote it; no row: a tombstone."""

    seq: int
    first: int
    mark: str
    run: Run | None


class _Row(msgspec.Struct, array_like=True):
    run: bytes
    result: bytes | None


class _Stamp(msgspec.Struct, gc=False):
    updated_at: float = 0.0


class _Head(msgspec.Struct, gc=False):
    kind: str
    step: str = ""
    key: str = ""
    attempt: int = 1
    failed: bool = True


encode: Final = msgspec.msgpack.Encoder().encode
_frame: Final = msgspec.msgpack.Decoder(Frame).decode
_run: Final = msgspec.json.Decoder(Run).decode
_row: Final = msgspec.msgpack.Decoder(_Row).decode
_stamp: Final = msgspec.json.Decoder(_Stamp).decode
_list: Final = msgspec.json.Decoder(list[_Head]).decode


def decode(data: bytes) -> Frame:
    """Reads a message; what is none was put into the journal by somebody else."""
    try:
        return _frame(data)
    except msgspec.MsgspecError as error:
        raise StoreError(f"a message of the journal makes no sense, and was not written by Tsuzuki: {error}") from error


def encode_row(run: Run) -> bytes:
    """Writes a row and, apart from it, its result; large params are left out."""
    params = ELSEWHERE if len(run.params) > LARGE_PARAMS else run.params
    plain = f.encode(msgspec.structs.replace(run, params=params, result=None))
    return encode(_Row(plain, None if run.result is None else bytes(run.result)))


def decode_row(data: bytes) -> Run:
    """Reads a row, whose own bytes are kept apart from the message's."""
    plain, result = msgspec.structs.astuple(_row(data))
    run = _run(plain)
    return msgspec.structs.replace(
        run,
        params=msgspec.Raw(bytes(run.params)),
        progress=msgspec.Raw(bytes(run.progress)),
        result=None if result is None else msgspec.Raw(result),
    )


def updated_at(frame: Frame) -> float | None:
    """Reads when a message says that its run was updated, and nothing else of it; None: it is a tombstone."""
    return None if frame.row is None else _stamp(_row(frame.row).run).updated_at


def tip_of(frame: Frame, seq: int) -> Tip:
    """Gives the end of a chain from its last message."""
    first = frame.first or seq
    if frame.row is None:
        return Tip(seq, first, frame.mark, None)
    run = decode_row(frame.row)
    if run.params == ELSEWHERE and not frame.first and (params := params_of(frame)) is not None:
        run = msgspec.structs.replace(run, params=params)
    return Tip(seq, first, frame.mark, run)


def params_of(frame: Frame) -> msgspec.Raw | None:
    """Gives the params out of the first message of a chain; None where they are in a blob."""
    fact = submission_of(frame)
    return None if fact is None or fact.blob else msgspec.Raw(bytes(fact.params))


def submission_of(frame: Frame) -> f.Submitted | None:
    """Gives the fact with which a chain begins."""
    fact = f.decode(frame.facts[0]) if frame.facts else None
    return fact if isinstance(fact, f.Submitted) else None


def lean(tip: Tip) -> Tip:
    """Leaves huge params out: whoever needs them reads them, and nobody keeps them for all runs."""
    if tip.run is None or len(tip.run.params) <= HUGE_PARAMS:
        return tip
    return msgspec.structs.replace(tip, run=msgspec.structs.replace(tip.run, params=ELSEWHERE))


def bare(tip: Tip) -> Run | None:
    """Gives a row for a list that leaves params out."""
    return None if tip.run is None else msgspec.structs.replace(tip.run, params=NO_PARAMS)


def entries(frame: Frame, wanted: Container[int] | None = None) -> list[Entry]:
    """Reads the facts of a message, or those at the positions that are wanted."""
    numbered = enumerate(frame.facts, frame.position - len(frame.facts) + 1)
    return [Entry(position, f.decode(raw)) for position, raw in numbered if wanted is None or position in wanted]


def marks(frame: Frame) -> list[Mark]:
    """Read the outcomes and failed tries of a message, and the requests to try failures again, without values."""
    return [
        Mark(position, head.kind, head.step, head.key)
        for position, head in enumerate(_heads(frame), frame.position - len(frame.facts) + 1)
        if head.kind in f.MARKED or (head.kind == "ResumeAsked" and head.failed)
    ]


def outcome_names(frame: Frame) -> list[tuple[int, str, str]]:
    """Names the outcomes of a message: attempt, step, key."""
    return [(head.attempt, head.step, head.key) for head in _heads(frame) if head.kind in f.OUTCOMES]


def _heads(frame: Frame) -> list[_Head]:
    """Reads the facts of a message at once, and nothing but their heads."""
    return _list(b"[" + b",".join(frame.facts) + b"]")


def folded(run: Run, facts: Sequence[f.Fact], encoded: Sequence[bytes]) -> Run:
    """Gives the row after facts; a fact of a kind that nobody knows yet counts as its readers see it."""
    known = _KNOWN.issuperset(map(type, facts))
    if known and only_outcomes(facts):
        return counted(msgspec.structs.replace(run, position=run.position + len(facts)), f.tally(facts))
    for fact, raw in zip(facts, encoded, strict=True):
        run = fold(run, fact if known else f.decode(raw))
    return run


def extended(
    tip: Tip, run: Run, facts: Sequence[f.Fact], mark: str, updated_at: float, *, request: int = 0
) -> tuple[Frame, Run]:
    """Makes the message that extends a chain by facts, those of a request perhaps, and the row after them."""
    encoded = [f.encode(fact) for fact in facts]
    row = msgspec.structs.replace(folded(run, facts, encoded), updated_at=updated_at)
    return Frame(mark, row.position, tip.first, encode_row(row), encoded, [request] if request else []), row


def begins_anew(frame: Frame) -> bool:
    """Tells whether a run ended or was resumed with a message: requests from before it are over."""
    return any(head.kind in _TURNS for head in _heads(frame))


def letters(run: Run, facts: Sequence[f.Fact]) -> list[DeadLetter]:
    """Writes the dead letters that follow from facts."""
    return [dead_letter(run, fact) for fact in facts if isinstance(fact, f.RunFailed)]
