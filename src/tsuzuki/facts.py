"""The facts of a run: what happened, in the past tense, frozen, versioned and keyed.

A journal is a sequence of facts, each at a position. Two outcomes of one step or item in one attempt
share an identity, and the first one written wins. Readers ignore unknown fields; a kind that this
version does not know is read as `Unknown`, shown to people, and keeps its run from being claimed.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

VERSION: Final = 1
"""The version of facts that this code writes; a row that carries a higher one is not claimed here."""
NOT_KEPT: Final = msgspec.Raw(b"null")
"""The inputs of a call whose inputs are not kept."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is kept of an exception."""

    type: str
    message: str
    traceback: str = ""
    detail: str = ""
    """What else it says, as JSON: of a question to a model, the last answer."""

    @property
    def said(self) -> str:
        """What it was and what it says; some, such as most time-outs, say nothing."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def logged(self) -> dict[str, str]:
        """The fields of a log line that tells of it, named as those of an exception that was caught here."""
        return {"exc_type": self.type, "exc_message": self.message, "exc_traceback": self.traceback or self.said}


class Artifact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A named file that a step saved beside its result."""

    name: str
    blob: str
    size: int


class Spent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What was used of a model that somebody may have to pay for: requests, tokens, US dollars."""

    provider: str
    model: str
    requests: int = 0
    cached: int = 0
    """How many of the requests were answered by what had been kept, and used nothing."""
    unpriced: int = 0
    """How many of them have no price that is known: the cost is without them."""
    input: int = 0
    output: int = 0
    cost: float = 0.0
    uncertain: int = 0
    """How many of the requests brought no answer: they may have been charged, and the cost is without them."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True, tag_field="kind", gc=False):
    """Something that happened to a run, at a time (Unix seconds), in an attempt.

    Facts hold nothing that could hold them, so that the garbage collector need not look at a million of them.
    """

    at: float
    attempt: int = 1


class Submitted(Fact, frozen=True, kw_only=True):
    """The run was accepted."""

    flow: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    tag: str = "default"
    workflow: str = ""
    """The YAML text of a run that brings its flow with it."""
    blob: str = ""
    """Where a store keeps large params apart; it puts them in their place before anybody reads the fact."""


class Claimed(Fact, frozen=True, kw_only=True):
    """A worker took the run."""

    worker: str
    fingerprint: str = ""
    wheels: dict[str, str] = {}
    """The digests of the wheels that the worker had installed, by name."""
    alone: bool = False
    """Whether the worker executed no other run beside it."""


class Released(Fact, frozen=True, kw_only=True):
    """The holder handed the run back, to be claimed again (not before a time).

    `wait` is the length of a `Later` in seconds: whoever sees a wait that would be longer knows that a clock is wrong.
    """

    reason: str = ""
    not_before: float = 0.0
    wait: float = 0.0


class _Named(Fact, frozen=True, kw_only=True):
    """A fact about one step: its id, the task's name, its explicit key where it has one, and who called it."""

    step: str
    key: str = ""
    name: str = ""
    parent: str = ""


class StepStarted(_Named, frozen=True, kw_only=True):
    """A step began; a map begins with the number of its items where that is known.

    A step that ends before this was written leaves it out: its outcome says when it began.
    """

    map: bool = False
    total: int | None = None
    takes: str = ""
    """The parameter that takes the item, where all that the items of a map are given is said by their keys."""


class TryFailed(_Named, frozen=True, kw_only=True):
    """A try of a step or an item failed, and another one follows.

    `tries` counts the failed tries so far: whoever resumes the run counts on from there.
    """

    tries: int
    error: Problem


class Outcome(_Named, frozen=True, kw_only=True):
    """How a step or an item ended: the base of the facts that replay reads."""

    took: float = 0.0
    tries: int = 1
    spent: tuple[Spent, ...] = ()
    """What it used that is paid for, also where it failed."""
    inputs: msgspec.Raw = NOT_KEPT
    """What it was given, for people: an object by the names of the parameters. Nothing is decided by it."""
    inputs_cut: bool = False
    """Whether that is only a part."""


class _Success(Outcome, frozen=True, kw_only=True):
    """A success, with its value as JSON: here, or in a blob when it is large."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    blob: str = ""
    artifacts: tuple[Artifact, ...] = ()


class StepDone(_Success, frozen=True, kw_only=True):
    """A step returned."""


class ItemDone(_Success, frozen=True, kw_only=True):
    """The task returned for an item."""


class ItemSkipped(_Success, frozen=True, kw_only=True):
    """An item had succeeded in the run that this one continues; its result is carried over."""

    origin: str = ""


class StepFailed(Outcome, frozen=True, kw_only=True):
    """A step failed for good."""

    error: Problem


class ItemFailed(Outcome, frozen=True, kw_only=True):
    """An item failed for good."""

    error: Problem


class CancelAsked(Fact, frozen=True, kw_only=True):
    """Somebody asked for the run to be cancelled."""

    by: str = ""
    reason: str = ""


class CancelSeen(Fact, frozen=True, kw_only=True):
    """The holder saw the request and starts nothing more."""


class ResumeAsked(Fact, frozen=True, kw_only=True):
    """Somebody asked for the run to go on: an ended one tries again what failed (or not), one that waits is woken.

    With `share`, workers may take a private run.
    """

    by: str = ""
    failed: bool = True
    share: bool = False


class RunCompleted(Fact, frozen=True, kw_only=True):
    """The flow returned."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    blob: str = ""
    artifacts: tuple[Artifact, ...] = ()


class RunFailed(Fact, frozen=True, kw_only=True):
    """The flow raised, or could not be run at all; the reason says which."""

    error: Problem
    reason: str = "execution_error"
    worker: str = ""


class RunCancelled(Fact, frozen=True, kw_only=True):
    """The run ended because somebody asked for it, with the count of what that cut off."""

    never_started: int = 0
    finished_anyway: int = 0
    interrupted: int = 0


class Unknown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fact of a kind that a newer version writes."""

    kind: str
    at: float = 0.0
    attempt: int = 0
    raw: msgspec.Raw = msgspec.Raw(b"{}")


Kind = (
    Submitted
    | Claimed
    | Released
    | StepStarted
    | TryFailed
    | StepDone
    | StepFailed
    | ItemDone
    | ItemFailed
    | ItemSkipped
    | CancelAsked
    | CancelSeen
    | ResumeAsked
    | RunCompleted
    | RunFailed
    | RunCancelled
)

KINDS: Final[dict[str, type[Fact]]] = {cls.__name__: cls for cls in Kind.__args__}
SINCE: Final[dict[type[Fact], int]] = {}
"""The kinds that came after the first version, and with which: a run that holds one is left to those who know it."""
SUCCESSES: Final = frozenset({"StepDone", "ItemDone", "ItemSkipped"})
FAILURES: Final = frozenset({"StepFailed", "ItemFailed"})
OUTCOMES: Final = SUCCESSES | FAILURES
MARKED: Final = OUTCOMES | {"TryFailed"}
"""The kinds that the replay index is built from, beside the `ResumeAsked` that retry failures."""
ENDINGS: Final = frozenset({"RunCompleted", "RunFailed", "RunCancelled"})

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Kind).decode


class _Header(msgspec.Struct):
    kind: str
    at: float = 0.0
    attempt: int = 0


def kind(fact: Fact | Unknown) -> str:
    """Names the kind of a fact."""
    return fact.kind if isinstance(fact, Unknown) else type(fact).__name__


def decode(raw: bytes | str) -> Fact | Unknown:
    """Reads a fact; a kind from a newer version becomes `Unknown`."""
    try:
        fact: Fact = _decode(raw)
        return fact
    except msgspec.ValidationError:
        header = msgspec.json.decode(raw, type=_Header)
        if header.kind in KINDS:
            raise
        data = raw.encode() if isinstance(raw, str) else raw
        return Unknown(kind=header.kind, at=header.at, attempt=header.attempt, raw=msgspec.Raw(data))


def name_of(began: StepStarted | None) -> str:
    """Gives the task of a map by how it began; none where that is not known."""
    return "" if began is None else began.name


def plain(fact: Fact | Unknown) -> dict[str, Any]:
    """Gives a fact as plain JSON types, for exports and for people."""
    data = fact.raw if isinstance(fact, Unknown) else encode(fact)
    result: dict[str, Any] = msgspec.json.decode(data)
    return result


class Tally(msgspec.Struct, frozen=True):
    """What a batch of facts adds to the counters of a run."""

    done: int
    failed: int
    skipped: int
    steps: int
    spent: tuple[Spent, ...] = ()

    @property
    def outcomes(self) -> int:
        """The number of outcomes in the batch."""
        return self.done + self.failed + self.skipped + self.steps


def tally(facts: Sequence[Fact]) -> Tally:
    """Counts the outcomes in a batch of facts: items done, failed, skipped, and steps."""
    done = failed = skipped = steps = 0
    spent: list[Spent] = []
    for fact in facts:
        cls = type(fact)
        if cls is ItemDone:
            done += 1
        elif cls is ItemFailed:
            failed += 1
        elif cls is ItemSkipped:
            skipped += 1
        elif cls is StepDone or cls is StepFailed:
            steps += 1
        else:
            continue
        if fact.spent:  # type: ignore[attr-defined] # an outcome; to ask for that takes twenty times as long
            spent += fact.spent  # type: ignore[attr-defined] # the same
    return Tally(done, failed, skipped, steps, tuple(spent))
