"""Entries of a run's log as lines of the engine's log, and back: one log for everybody who reads it."""

import re
from typing import Any, Final

_PROGRESS: Final = re.compile(
    r"(?P<message>.*) \[(?P<step>extract|provisional|issues|refined) (?P<current>\d+)/(?P<total>\d+)\]", re.DOTALL
)
_PERCENT: Final = re.compile(r"(?:(?P<term>.+): )?(?:\d{1,3}%|\*\*\*)", re.DOTALL)
"""How far it is; what follows a word such as "secret: " is hidden in logs, and is known from the counts."""


def entry(run_id: int, level: str, message: str, **fields: Any) -> dict[str, Any]:
    """Makes an entry; what is not given is not there."""
    return {"run_id": run_id, "level": level, "message": message, **fields}


def progress(run_id: int, step: str, current: int, total: int, term: str = "") -> dict[str, Any]:
    """Makes the entry that says how far a step is."""
    percent = int(current / total * 100) if total > 0 else 0
    name = term.strip()
    message = f"{name}: {percent}%" if name else f"{percent}%"
    named = {"current_term": name} if name else {}
    return entry(run_id, "info", message, step=step, progress_current=current, progress_total=total, **named)


def written(told: dict[str, Any]) -> str:
    """Gives the line that an entry is kept as."""
    if "progress_total" not in told:
        return str(told["message"])
    return f"{told['message']} [{told['step']} {told['progress_current']}/{told['progress_total']}]"


def read(run_id: int, level: str, text: str) -> dict[str, Any]:
    """Gives the entry that a line was."""
    found = _PROGRESS.fullmatch(text)
    said = _PERCENT.fullmatch(found["message"]) if found else None
    if found is None or said is None:
        return entry(run_id, level, text)
    return progress(run_id, found["step"], int(found["current"]), int(found["total"]), said["term"] or "")
