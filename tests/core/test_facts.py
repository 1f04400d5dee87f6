"""Facts are written and read without loss, by this version and by others."""

import msgspec
import pytest

from tsuzuki import facts as f

OOPS = f.Problem("ValueError", "oops", "traceback")
EXAMPLES: list[f.Fact] = [
    f.Submitted(at=1.5, flow="crawl", params=msgspec.Raw(b'{"site":"a"}'), tag="gpu"),
    f.Claimed(at=1.5, attempt=2, worker="w", fingerprint="v1"),
    f.Released(at=1.5, reason="drain", not_before=9.5),
    f.TryFailed(at=1.5, step="s", key="k", name="fetch", tries=2, error=f.Problem("ValueError", "oops")),
    f.StepStarted(at=1.5, step="s", key="k", name="fetch", parent="p", map=True, total=3),
    f.StepDone(at=1.5, step="s", name="load", took=0.5, result=msgspec.Raw(b'"x"')),
    f.StepFailed(at=1.5, step="s", name="load", tries=3, error=OOPS),
    f.ItemDone(at=1.5, step="s", key="日本", blob="b1", artifacts=(f.Artifact("a.csv", "b2", 3),)),
    f.ItemFailed(at=1.5, step="s", key="k", error=OOPS),
    f.ItemSkipped(at=1.5, step="s", key="k", result=msgspec.Raw(b"[1,null]"), origin="run-1"),
    f.CancelAsked(at=1.5, by="ann", reason="late"),
    f.CancelSeen(at=1.5),
    f.ResumeAsked(at=1.5, by="ann", failed=False),
    f.RunCompleted(at=1.5, result=msgspec.Raw(b'{"n":1}')),
    f.RunFailed(at=1.5, error=OOPS, reason="max_claims"),
    f.RunCancelled(at=1.5, never_started=1, finished_anyway=2, interrupted=3),
]


def test_every_kind_has_an_example() -> None:
    assert {type(fact).__name__ for fact in EXAMPLES} == set(f.KINDS)


@pytest.mark.parametrize("fact", EXAMPLES, ids=f.kind)
def test_a_fact_is_read_as_it_was_written(fact: f.Fact) -> None:
    assert f.decode(f.encode(fact)) == fact
    assert f.decode(f.encode(fact).decode()) == fact


@pytest.mark.parametrize("fact", EXAMPLES, ids=f.kind)
def test_a_fact_cannot_be_changed(fact: f.Fact) -> None:
    with pytest.raises(AttributeError):
        fact.at = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("fact", EXAMPLES, ids=f.kind)
def test_a_fact_names_its_kind_in_plain_json(fact: f.Fact) -> None:
    plain = f.plain(fact)
    assert (plain["kind"], plain["at"]) == (type(fact).__name__, 1.5)


@pytest.mark.parametrize("fact", EXAMPLES, ids=f.kind)
def test_unknown_fields_of_a_newer_version_are_ignored(fact: f.Fact) -> None:
    raw = msgspec.json.encode(f.plain(fact) | {"color": "green", "nested": {"a": [1]}})
    assert f.decode(raw) == fact


def test_missing_fields_of_an_older_version_have_their_defaults() -> None:
    assert f.decode(b'{"kind":"ItemDone","at":1.0,"step":"s"}') == f.ItemDone(at=1.0, attempt=1, step="s")
    assert f.decode(b'{"kind":"RunFailed","at":1,"error":{"type":"E","message":"m"}}') == f.RunFailed(
        at=1.0, error=f.Problem("E", "m"), reason="execution_error"
    )


@pytest.mark.parametrize("convert", [bytes, bytes.decode], ids=["bytes", "text"])
def test_an_unknown_kind_is_kept_whole(convert: type) -> None:
    raw = b'{"kind":"RunPaused","at":3.5,"attempt":4,"why":"lunch"}'
    fact = f.decode(convert(raw))
    assert isinstance(fact, f.Unknown)
    assert (f.kind(fact), fact.at, fact.attempt) == ("RunPaused", 3.5, 4)
    assert f.plain(fact) == {"kind": "RunPaused", "at": 3.5, "attempt": 4, "why": "lunch"}


def test_an_unknown_kind_needs_neither_time_nor_attempt() -> None:
    assert f.decode(b'{"kind":"RunPaused"}') == f.Unknown(kind="RunPaused", raw=msgspec.Raw(b'{"kind":"RunPaused"}'))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"kind":"Claimed","at":1.0}',
        b'{"kind":"ItemDone","at":"noon","step":"s"}',
        b'{"at":1.0}',
        b"[]",
        b"",
        b'{"kind":"Claimed"',
    ],
)
def test_a_broken_fact_is_an_error_and_not_an_unknown_kind(raw: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        f.decode(raw)


def test_defaults_are_not_written() -> None:
    assert f.encode(f.CancelSeen(at=1.5)) == b'{"kind":"CancelSeen","at":1.5}'


def test_outcomes_are_the_successes_and_failures_and_nothing_else() -> None:
    assert {name for name, cls in f.KINDS.items() if issubclass(cls, f.Outcome)} == f.OUTCOMES
    assert f.SUCCESSES.isdisjoint(f.FAILURES)
    assert f.OUTCOMES.isdisjoint(f.ENDINGS)


def test_a_tally_counts_items_and_steps_apart() -> None:
    tally = f.tally(EXAMPLES)
    assert (tally.done, tally.failed, tally.skipped, tally.steps, tally.outcomes) == (1, 1, 1, 2, 5)
    assert f.tally([f.CancelSeen(at=1.0)]).outcomes == 0


def test_an_exception_without_words_is_told_by_its_kind() -> None:
    assert f.Problem("ValueError", "7 is odd").said == "ValueError: 7 is odd"
    assert f.Problem("TimeoutError", "").said == "TimeoutError"
