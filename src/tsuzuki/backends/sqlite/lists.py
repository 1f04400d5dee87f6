"""Pages of runs: a short index scan for every status that may match, merged, and the rows of the winners."""

import sqlite3
from collections.abc import Callable
from heapq import nlargest
from typing import Any, Final, TypeAlias

from tsuzuki.backends import Query
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import numbers, run_from, text
from tsuzuki.lifecycle import TERMINAL, Run, Status

Execute: TypeAlias = Callable[..., sqlite3.Cursor]

_LEADING: Final = ("key", "flow", "tag", "tenant", "private")
"""The fields that have an index of their own, the most selective first."""
_COUNTED: Final = frozenset({"key", "flow", "tag"})
"""The fields that may be rare enough to lead a search by label."""
_SETTLED: Final = frozenset(Status) - {Status.RUNNING, Status.CANCELLING}
_WORTH_A_RANGE: Final = 2
"""A shorter beginning of an id matches so many runs that the newest few are found sooner by looking."""
_FEW: Final = 1000
"""So many runs are sorted faster than they are looked for in order."""
_ALWAYS: Final = 1e300


def search(execute: Execute, query: Query) -> list[Run]:
    """Gives a page of rows, the newest `updated_at` first."""
    # One more than asked for: `updated_at` is unique in a store, so at most one row ties with the cursor.
    values = _values(query, query.limit + 1)
    found = set(_found(execute, query, values))
    newest = [number for _, number in nlargest(query.limit + 1, found)]
    rows = map(run_from, execute(SQL["runs_by_number"], (numbers(newest),)).fetchall())
    page = sorted(rows, key=_place, reverse=True)
    return [run for run in page if query.before is None or _place(run) < query.before][: query.limit]


def _found(execute: Execute, query: Query, values: dict[str, Any]) -> list[tuple[float, int]]:
    if query.number is not None:
        return execute(SQL["list_by_number"], values).fetchall()
    if query.id_prefix and len(query.id_prefix) >= _WORTH_A_RANGE:
        return execute(SQL["list_by_id"], values).fetchall()
    if query.workflow:
        return execute(SQL["list_by_workflow"], values).fetchall()
    if query.digest and execute(SQL["digests"], (query.digest, _FEW + 1)).fetchall()[0][0] <= _FEW:
        return execute(SQL["list_by_digest"], values).fetchall()
    found = execute(SQL["list_held"], values).fetchall()
    statuses = _statuses(query)
    if query.holder is not None or not statuses:
        return found
    field = _leading(execute, query, values, statuses)
    if field == "label":
        return found + execute(SQL["list_by_label"], values).fetchall()
    statement = SQL[f"list_by_{field}" if field else "list"]
    for status in statuses:
        found += execute(statement, {**values, "status": status.value}).fetchall()
    return found


def _statuses(query: Query) -> frozenset[Status]:
    """Gives the statuses to look through beside the held runs."""
    asked = frozenset(query.status or Status)
    return asked & (TERMINAL if query.finished_before is not None else _SETTLED)


def _leading(execute: Execute, query: Query, values: dict[str, Any], statuses: frozenset[Status]) -> str | None:
    """Chooses the index to go by: two fields that have one together, a field that few runs share, or the first."""
    given = [name for name in _LEADING if values[name] is not None]
    if query.label is not None:
        rare = (name for name in given if name in _COUNTED and _few(execute, name, values, statuses))
        return next(rare, "label")
    if "flow" in given and "tag" in given and "key" not in given:
        return "flow_and_tag"
    return given[0] if given else None


def _few(execute: Execute, name: str, values: dict[str, Any], statuses: frozenset[Status]) -> bool:
    left = _FEW
    for status in statuses:
        if left >= 0:
            counted = execute(SQL[f"few_by_{name}"], {**values, "status": status.value, "few": left + 1})
            left -= counted.fetchall()[0][0]
    return left >= 0


def _values(query: Query, limit: int) -> dict[str, Any]:
    return {
        "statuses": text(list(query.status or Status)),
        "flow": query.flow,
        "tag": query.tag,
        "label": query.label,
        "key": query.key,
        "tenant": query.tenant,
        "private": query.private,
        "digest": query.digest,
        "number": query.number,
        "prefix": query.id_prefix or None,
        "workflow": query.workflow,
        "text": None if query.text is None else query.text.lower(),
        "holder": query.holder,
        "finished_before": query.finished_before,
        "updated_after": -_ALWAYS if query.updated_after is None else query.updated_after,
        "before": _ALWAYS if query.before is None else query.before[0],
        "limit": limit,
    }


def _place(run: Run) -> tuple[float, str]:
    return run.updated_at, run.id
