"""Pages of runs: a short index scan for every status that may match, merged, and the rows of the winners."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nlargest
from itertools import chain
from typing import Any, Final, TypeAlias

from tsuzuki.backends import Query
from tsuzuki.backends.filters import filters
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import numbers, run_from, text
from tsuzuki.backends.sqlite.writer import roll_back
from tsuzuki.lifecycle import TERMINAL, Run, Status

Execute: TypeAlias = Callable[..., sqlite3.Cursor]

_BY_SHELF: Final = ("flow", "tag", "tenant", "private")
"""The fields in which the runs of one shelf agree."""
_MERGED: Final = 24
"""So many shelves are looked through one by one."""
_SETTLED: Final = frozenset(Status) - {Status.RUNNING, Status.CANCELLING}
_WORTH_A_RANGE: Final = 2
"""A shorter beginning of an id matches so many runs that the newest few are found sooner by looking."""
_FEW: Final = 1000
"""So many runs are sorted faster than they are looked for in order."""


@contextmanager
def one_look(connection: sqlite3.Connection) -> Iterator[None]:
    """Lets several statements see one state: a run that is claimed between two of them would be in neither."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        roll_back(connection)


def search(execute: Execute, query: Query) -> list[Run]:
    """Gives a page of rows, the newest `updated_at` first."""
    # One more than asked for: `updated_at` is unique in a store, so at most one row ties with the cursor.
    values = _values(query, query.limit + 1)
    found = set(_found(execute, query, values))
    newest = [number for _, number in nlargest(query.limit + 1, found)]
    statement = SQL["runs_by_number" if query.params else "bare_runs_by_number"]
    rows = map(run_from, execute(statement, (numbers(newest),)).fetchall())
    page = sorted(rows, key=_place, reverse=True)
    return [run for run in page if query.before is None or _place(run) < query.before][: query.limit]


def _found(execute: Execute, query: Query, values: dict[str, Any]) -> list[tuple[float, int]]:
    if query.number is not None:
        return execute(SQL["list_by_number"], values).fetchall()
    if query.id_prefix and len(query.id_prefix) >= _WORTH_A_RANGE:
        return execute(SQL["list_by_id"], values).fetchall()
    if query.workflow:
        return execute(SQL["list_by_workflow"], values).fetchall()
    if query.spent:
        return execute(SQL["list_spent"], values).fetchall()
    if query.failures and query.status == (Status.COMPLETED,):
        return execute(SQL["list_with_failures"], values).fetchall()
    if query.digest and execute(SQL["digests"], (query.digest, _FEW + 1)).fetchall()[0][0] <= _FEW:
        return execute(SQL["list_by_digest"], values).fetchall()
    found = execute(SQL["list_held"], values).fetchall()
    statuses = _statuses(query)
    if query.holder is not None or not statuses:
        return found
    return found + _unheld(
        execute, query, {**values, "statuses": text([status.value for status in statuses])}, statuses
    )


def _unheld(
    execute: Execute, query: Query, values: dict[str, Any], statuses: frozenset[Status]
) -> list[tuple[float, int]]:
    """Looks through the runs that nobody holds, by what few of them share, or else in the order of time."""
    if query.key is not None and (query.label is None or _few(execute, "key", values)):
        return _by_status(execute, "list_by_key", values, statuses)
    shelves = _shelves(execute, values)
    values = {**values, "shelves": numbers(shelves or ())}
    if query.label is not None and (shelves is None or not _few(execute, "shelf", values)):
        return execute(SQL["list_by_label"], values).fetchall()
    if shelves is None:
        return _by_status(execute, "list", values, statuses)
    if len(shelves) <= _MERGED:
        each = (_by_status(execute, "list_by_shelf", {**values, "shelf": shelf}, statuses) for shelf in shelves)
        return list(chain.from_iterable(each))
    if _few(execute, "shelf", values):
        return execute(SQL["list_by_shelves"], values).fetchall()
    return _by_status(execute, "list", values, statuses)


def _by_status(
    execute: Execute, statement: str, values: dict[str, Any], statuses: frozenset[Status]
) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = []
    for status in statuses:
        found += execute(SQL[statement], {**values, "status": status.value}).fetchall()
    return found


def _shelves(execute: Execute, values: dict[str, Any]) -> list[int] | None:
    """Gives the shelves that fit; None: any does."""
    if all(values[name] is None for name in _BY_SHELF):
        return None
    return [number for (number,) in execute(SQL["shelves"], values).fetchall()]


def _statuses(query: Query) -> frozenset[Status]:
    """Gives the statuses to look through beside the held runs."""
    asked = frozenset(query.status or Status)
    return asked & (TERMINAL if query.finished_before is not None else _SETTLED)


def _few(execute: Execute, name: str, values: dict[str, Any]) -> bool:
    counted: int = execute(SQL[f"few_by_{name}"], {**values, "few": _FEW + 1}).fetchall()[0][0]
    return counted <= _FEW


def _values(query: Query, limit: int) -> dict[str, Any]:
    return {**filters(query), "statuses": text(list(query.status or Status)), "limit": limit}


def _place(run: Run) -> tuple[float, str]:
    return run.updated_at, run.id
