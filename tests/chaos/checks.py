"""What must hold of a store whatever happened to the processes that wrote it.

Each check gives its offences as sentences. They read journals as they lie there, and fold them by rules of their own.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.doubles import NUMBER
from tests.chaos.flows import EXPECTED
from tests.chaos.reading import Story

ENDED = {"RunCompleted": "COMPLETED", "RunFailed": "FAILED", "RunCancelled": "CANCELLED"}
ACTIVE = ("PENDING", "RUNNING", "CANCELLING")
SUCCESSES = ("StepDone", "ItemDone", "ItemSkipped")
FAILURES = ("StepFailed", "ItemFailed")
WOKEN = ("goes on", "mended", "quick disk", "quick link", "room again")
"""Events after which a process may still believe in a claim that it has lost."""
BELIEF = 12.0
"""For how long it may (seconds)."""


@dataclass
class Evidence:
    """Everything that is known afterwards."""

    stories: dict[str, Story]
    submissions: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    watched: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    listed: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    figures: Counter[str] = field(default_factory=Counter)


def accepted_runs_have_ended(evidence: Evidence) -> Iterator[str]:
    """A run that was answered with success is there, and has ended."""
    for each in evidence.submissions:
        if not each["run_id"]:
            continue
        story = evidence.stories.get(each["run_id"])
        if story is None:
            yield f"{each['flow']} {each['token']}: run {each['run_id']} was accepted and is lost"
        elif story.row["status"] in ACTIVE:
            yield f"{each['flow']} {each['token']}: run {each['run_id']} is still {story.row['status']}"
        elif story.row["status"] == "CANCELLED" and not each["cancelled"]:
            yield f"{each['flow']} {each['token']}: nobody cancelled run {each['run_id']}"
        elif story.row["status"] == "FAILED":
            yield f"{each['flow']} {each['token']}: run {each['run_id']} failed: {story.row['error']}"


def refused_runs_never_ran(evidence: Evidence) -> Iterator[str]:
    """What was answered with an error is not there, or was taken back; how many of these had begun is counted.

    And what was asked for several times is there once.
    """
    made: dict[str, list[str]] = defaultdict(list)
    for story in evidence.stories.values():
        for token in story.row["tags"]:
            made[token].append(story.run_id)
        if story.row["flow"].startswith("yaml-"):
            made[story.row["flow"].removeprefix("yaml-")].append(story.run_id)
    for each in evidence.submissions:
        runs = made[each["token"]]
        back = [run for run in runs if _taken_back(evidence.stories[run], unclear=each["refused"] in (0, 503))]
        evidence.figures["submissions taken back"] += len(back)
        evidence.figures["submissions taken back that had begun"] += sum(_begun(evidence.stories[run]) for run in back)
        if each["refused"] and runs != back:
            yield f"{each['flow']} {each['token']} was refused with {each['refused']} and is run {runs}"
        if len(runs) - len(back) > 1:
            yield f"{each['flow']} {each['token']} was asked for once and is there as {runs}"


def _begun(story: Story) -> bool:
    return bool(story.of("Claimed"))


def _taken_back(story: Story, *, unclear: bool) -> bool:
    """Tells whether a submission whose fate was unclear was cancelled by who made it; any other never began."""
    by = {fact.get("by") for fact in story.of("CancelAsked")}
    return story.row["status"] == "CANCELLED" and by == {"submit"} and (unclear or not _begun(story))


def journals_are_gapless(evidence: Evidence) -> Iterator[str]:
    """Positions count from 1 without a gap, a journal begins with its submission, attempts never fall."""
    for story in evidence.stories.values():
        positions = [position for position, _ in story.facts]
        if positions != list(range(1, len(positions) + 1)):
            yield f"run {story.run_id}: positions {_odd(positions)}"
        kinds = [fact["kind"] for _, fact in story.facts]
        if kinds[:1] != ["Submitted"] or "Submitted" in kinds[1:]:
            yield f"run {story.run_id}: the journal begins with {kinds[:1]}"
        attempts = [fact.get("attempt", 1) for _, fact in story.facts]
        if attempts != sorted(attempts):
            yield f"run {story.run_id}: attempts fall: {attempts}"


def requests_are_let_in_once(evidence: Evidence) -> Iterator[str]:
    """Each request that a journal has let in was asked, and is let in once."""
    for story in evidence.stories.values():
        evidence.figures["requests asked"] += len(story.asked)
        if len(set(story.let_in)) < len(story.let_in) or not set(story.let_in) <= set(story.asked):
            yield f"run {story.run_id}: the requests {story.let_in} were let in, {story.asked} were asked"


def _odd(positions: list[int]) -> str:
    return str(next((pair for pair in zip([0, *positions], positions, strict=False) if pair[1] != pair[0] + 1), ""))


def rows_are_what_the_journals_say(evidence: Evidence) -> Iterator[str]:
    """Status, counts and position of a row are those of its journal."""
    for story in evidence.stories.values():
        told = folded(story)
        row = {name: story.row.get(name, 0) for name in told}
        if row != told:
            yield f"run {story.run_id}: the row has {row}, the journal {told}"


def folded(story: Story) -> dict[str, Any]:
    """Gives what a row must say, from the kinds of the facts alone; a resume forgets failures unless told not to."""
    status, failed, kinds = "", 0, Counter(fact["kind"] for _, fact in story.facts)
    for _, fact in story.facts:
        kind = fact["kind"]
        status = ENDED.get(kind, status)
        if kind in ("Submitted", "Released", "ResumeAsked"):
            status = "PENDING"
        elif kind == "Claimed" and status != "CANCELLING":
            status = "RUNNING"
        elif kind == "CancelAsked":
            status = "CANCELLING"
        if kind == "ResumeAsked" and fact.get("failed", True):
            failed = 0
        failed += kind == "ItemFailed"
    return {
        "status": status,
        "position": len(story.facts),
        "done": kinds["ItemDone"],
        "failed": failed,
        "skipped": kinds["ItemSkipped"],
        "steps": kinds["StepDone"] + kinds["StepFailed"],
    }


def outcomes_are_recorded_once(evidence: Evidence) -> Iterator[str]:
    """A step or an item has one success, and one outcome in each attempt."""
    for story in evidence.stories.values():
        names = Counter((fact["step"], fact.get("key", "")) for fact in story.of(*SUCCESSES))
        for name, times in names.items():
            if times > 1:
                yield f"run {story.run_id}: {name} succeeded {times} times"
        outcomes = Counter(
            (fact["step"], fact.get("key", ""), fact.get("attempt", 1)) for fact in story.of(*SUCCESSES, *FAILURES)
        )
        for outcome, times in outcomes.items():
            if times > 1:
                yield f"run {story.run_id}: {outcome} has {times} outcomes"
        endings = Counter(fact.get("attempt", 1) for fact in story.of(*ENDED))
        for attempt, times in endings.items():
            if times > 1:
                yield f"run {story.run_id}: attempt {attempt} ended {times} times"


def nothing_acknowledged_was_called_again(evidence: Evidence) -> Iterator[str]:
    """No call begins after the recorded one has returned, but in a process that has lost its claim meanwhile."""
    began, ended = _calls(evidence)
    made: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in began.values():
        made[each["run"], each["task"], each["key"]].append(each)
    evidence.figures["calls"] = len(began)
    raised = {name for name, each in ended.items() if each["what"] == "raised"}
    again = [sum(call["call"] not in raised for call in calls) - 1 for calls in made.values()]
    evidence.figures["calls made again"] = sum(max(count, 0) for count in again)
    for story in evidence.stories.values():
        for fact, value in _noted(story):
            evidence.figures["items recorded"] += 1
            recorded = ended.get(value["call"])
            if recorded is None or recorded["what"] != "returned":
                yield f"run {story.run_id}: {value['task']} {value['key']} was recorded and never returned"
                continue
            for other in made[story.run_id, value["task"], value["key"]]:
                if other["at"] <= recorded["at"]:
                    continue
                if other["attempt"] < fact.get("attempt", 1) and _woken(evidence, other["at"]):
                    evidence.figures["calls of claims that were lost"] += 1
                else:
                    late = other["at"] - recorded["at"]
                    yield (
                        f"run {story.run_id}: {value['task']} {value['key']} was called again {late:.3f} s after it "
                        f"returned (attempt {other['attempt']}, recorded in {fact.get('attempt', 1)})"
                    )


def _calls(evidence: Evidence) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    began = {each["call"]: each for each in evidence.calls if each["what"] == "began"}
    ended = {each["call"]: each for each in evidence.calls if each["what"] != "began"}
    return began, ended


def _noted(story: Story) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Gives recorded successes whose value names the call it came from."""
    for fact in story.of("StepDone", "ItemDone"):
        value = fact.get("result")
        if isinstance(value, dict) and "call" in value:
            yield fact, value


def _woken(evidence: Evidence, at: float) -> bool:
    """Tells whether something came back not long before: whoever was away may not know that its claim is lost."""
    return any(each["what"] in WOKEN and 0 <= at - each["at"] <= BELIEF for each in evidence.events)


def results_are_those_of_an_undisturbed_run(evidence: Evidence) -> Iterator[str]:
    """A completed run gives what arithmetic gives; its answers are those that were paid for."""
    for each in evidence.submissions:
        story = evidence.stories.get(each["run_id"])
        if story is None or story.row["status"] != "COMPLETED":
            continue
        evidence.figures["results compared"] += 1
        found = evidence.results.get(each["run_id"])
        if each["flow"] in EXPECTED:
            wanted = EXPECTED[each["flow"]](**each["params"])
        else:
            how, token, count = each["flow"], each["params"]["token"], each["params"]["count"]
            word = {"asking": "sync", "batching": "batch"}[how]
            wanted = [f"answer to {word} {token} {n}" for n in range(count)]
            found = [NUMBER.sub("", text) for text in found or []]
        if found != wanted:
            yield f"run {each['run_id']} ({each['flow']} {each['params']}): {found!r} instead of {wanted!r}"


def keys_were_exclusive(evidence: Evidence) -> Iterator[str]:
    """Calls of two runs that hold one key never overlap, but where one of them has lost its claim."""
    began, ended = _calls(evidence)
    killed = {each["pid"]: each["at"] for each in evidence.events if each["what"] == "killed"}
    held: dict[str, list[tuple[float, float, dict[str, Any]]]] = defaultdict(list)
    for name, each in began.items():
        if each["holds"]:
            until = ended[name]["at"] if name in ended else killed.get(each["pid"], each["at"])
            held[each["holds"]].append((each["at"], until, each))
    for key, calls in held.items():
        calls.sort(key=lambda call: call[0])
        evidence.figures["calls under keys"] += len(calls)
        for at, (_, until, first) in enumerate(calls):
            for begun, _, second in calls[at + 1 :]:
                if begun >= until:
                    break
                if first["run"] != second["run"] and not (_lost(evidence, first) or _lost(evidence, second)):
                    yield f"key {key}: runs {first['run']} and {second['run']} worked at the same time"


def _lost(evidence: Evidence, call: dict[str, Any]) -> bool:
    """Tells whether somebody else claimed the run after the attempt that a call was made in."""
    story = evidence.stories.get(call["run"])
    return story is not None and any(fact.get("attempt", 1) > call["attempt"] for fact in story.of("Claimed"))


def nothing_was_paid_for_twice(evidence: Evidence) -> Iterator[str]:
    """A request is repeated only where its answer was never acknowledged; no question is in two batches."""
    paid: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in evidence.ledger:
        paid[each["prompt"]].append(each)
    evidence.figures["requests paid for"] = len(evidence.ledger)
    evidence.figures["requests made again"] = len(evidence.ledger) - len(paid)
    acknowledged = {
        int(number)
        for story in evidence.stories.values()
        for fact in story.of("StepDone", "ItemDone")
        for number in NUMBER.findall(json.dumps(fact.get("result")))
    }
    evidence.figures["answers recorded"] = len(acknowledged)
    for prompt, requests in paid.items():
        if requests[0]["how"] == "batch" and len(requests) > 1:
            yield f"{prompt!r} went into {len(requests)} batches"
        kept = [each["number"] for each in requests if each["number"] in acknowledged]
        for each in requests:
            if kept and each["number"] > kept[0] and not _woken(evidence, each["at"]):
                yield f"{prompt[:60]!r} was paid for again ({each['number']}) after {kept[0]} was recorded"


def watchers_saw_the_journal(evidence: Evidence) -> Iterator[str]:
    """Who follows a run over lost connections has seen each of its facts once and in order, up to an end."""
    for each in evidence.watched:
        story = evidence.stories.get(each["run_id"])
        if story is None:
            continue
        journal = [(position, fact["kind"]) for position, fact in story.facts]
        seen = [(int(position), kind) for position, kind in each["facts"]]
        evidence.figures["facts watched"] += len(seen)
        if seen != journal[: len(seen)] or (each["ended"] and not seen):
            odd = next((pair for pair in zip(seen, journal, strict=False) if pair[0] != pair[1]), None)
            yield f"run {each['run_id']}: a watcher saw {odd and odd[0]} in the place of {odd and odd[1]}"
        if not each["ended"]:
            yield f"run {each['run_id']}: a watcher never saw its end, only {len(seen)} of {len(journal)} facts"


def lists_are_what_the_rows_are(evidence: Evidence) -> Iterator[str]:
    """The list, following the list, and the counts show the runs that there are, as they are."""
    rows = {run_id: _row(story.row) for run_id, story in evidence.stories.items()}
    for name, shown in (("the list", evidence.listed), ("who followed the list", evidence.rows)):
        seen = {run_id: _shown(row) for run_id, row in shown.items()}
        for run_id in sorted(rows.keys() | seen.keys()):
            if seen.get(run_id) != rows.get(run_id):
                yield f"run {run_id}: {name} shows {seen.get(run_id)}, the store has {rows.get(run_id)}"
    there = Counter(row["status"] for row in rows.values())
    shown_counts = Counter({status: count for status, count in evidence.counts.items() if count})
    if shown_counts != there:
        yield f"the counts are {dict(shown_counts)}, there are {dict(there)}"


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("status", "attempt", "done", "failed", "skipped", "steps")}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {"status": row["status"], "attempt": row["attempt"], **row["counts"]}


def processes_end_when_told(evidence: Evidence) -> Iterator[str]:
    """A process that is told to stop, when all is calm, ends."""
    for each in evidence.events:
        if each["what"] == "does not end":
            yield f"{each['part']} did not end when it was told to"


def items_are_what_the_journal_has(evidence: Evidence) -> Iterator[str]:
    """The table of the items of a run has each outcome of its journal, at its position."""
    for run_id, items in evidence.items.items():
        story = evidence.stories.get(run_id, Story(run_id, {}))
        there = [position for position, fact in story.facts if fact["kind"] in SUCCESSES + FAILURES]
        seen = [each["position"] for each in items]
        evidence.figures["items listed"] += len(items)
        if seen != there:
            yield f"run {run_id}: the table has {len(seen)} items, the journal {len(there)}"


CHECKS: tuple[Callable[[Evidence], Iterator[str]], ...] = (
    accepted_runs_have_ended,
    refused_runs_never_ran,
    journals_are_gapless,
    requests_are_let_in_once,
    rows_are_what_the_journals_say,
    outcomes_are_recorded_once,
    nothing_acknowledged_was_called_again,
    results_are_those_of_an_undisturbed_run,
    keys_were_exclusive,
    nothing_was_paid_for_twice,
    watchers_saw_the_journal,
    lists_are_what_the_rows_are,
    items_are_what_the_journal_has,
    processes_end_when_told,
)


def offences(evidence: Evidence) -> dict[str, list[str]]:
    """Asks every check; gives what each found."""
    return {check.__name__: list(check(evidence)) for check in CHECKS}
