"""The reference of a run's life, made of the table in lifecycle.py and of the facts themselves."""

from tests.house.tables import cell, table
from tsuzuki import facts, lifecycle
from tsuzuki.lifecycle import MOVES, RunUpdateResult, Status

OPENING = """# The life of a run

<!-- Made of the tables in lifecycle.py and facts.py by `make docs`; a test compares them. -->

A run has a status, which is what folding the facts of its journal gives. A fact that is not in this table does not
happen to a run of that status: it is refused, over HTTP with 409. Why it is so: [ADR 4](../adr/0004-journal.md),
[ADR 7](../adr/0007-cancel.md).
"""
NOTES = """
COMPLETED runs are resumed only where items failed: exactly those are tried again. A shared run that was claimed twice
without one new outcome is executed alone. After {alone} more claims without one it is FAILED, and a dead letter: it
kills its workers. A private one has {most} claims. The attempt, which is the fencing number of a claim, grows when a
run is handed back, taken from a dead holder, or resumed.
"""
ANSWERS = {
    RunUpdateResult.UPDATED: "it was changed as asked",
    RunUpdateResult.NOT_FOUND: "there is no such run",
    RunUpdateResult.ALREADY_TERMINAL: "it had ended already, and was not changed",
}


def page() -> str:
    return "".join(
        (
            OPENING,
            f"\n```mermaid\n{lifecycle.diagram()}\n```\n",
            "\n## From status to status\n\n",
            table(("from \\ to", *Status), [(f"**{status}**", *moves(status)) for status in Status]),
            NOTES.format(most=lifecycle.MOST_CLAIMS, alone=lifecycle.MAX_CLAIMS_ALONE),
            "\n## Facts\n\n",
            "Whatever happens to a run is one of these. ",
            "A kind that a version does not know is shown, and its run left to newer ones.\n\n",
            table(("fact", "means", "leads to"), [fact(kind) for kind in facts.KINDS]),
            "\n## What an update answers\n\n",
            table(("answer", "means"), [(f"`{answer.value}`", ANSWERS[answer]) for answer in RunUpdateResult]),
        )
    )


def moves(status: Status) -> list[str]:
    return [
        ", ".join(f"`{kind}`" for kind, target in MOVES[status].items() if target is wanted) or "never"
        for wanted in Status
    ]


def fact(kind: str) -> tuple[str, str, str]:
    said = (facts.KINDS[kind].__doc__ or "").strip().splitlines()[0]
    places = dict.fromkeys(target for moves in MOVES.values() for name, target in moves.items() if name == kind)
    if kind == "Submitted":  # where every life begins
        places = {Status.PENDING: None}
    return f"`{kind}`", cell(said), ", ".join(places)
