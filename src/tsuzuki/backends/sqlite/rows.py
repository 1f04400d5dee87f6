"""Rows of the tables and what they stand for: runs, facts, log lines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from tsuzuki import facts as f
from tsuzuki.backends import Entry, Line
from tsuzuki.lifecycle import Run, Status

Columns: TypeAlias = tuple[Any, ...]
"""What sqlite3 gives and takes for one row."""

_STATUS: Final = {status.value: status for status in Status}
_labels: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_problem: Final = msgspec.json.Decoder(f.Problem).decode
_spent: Final = msgspec.json.Decoder(tuple[f.Spent, ...]).decode
_line: Final = msgspec.json.Decoder(Line).decode
_given: Final = msgspec.json.Decoder(list[Any]).decode
_GIVEN: Final = (
    *("tag", "tags", "priority", "key", "idempotency_key", "tenant", "source", "continues", "workflow", "api_key"),
    "workflow_bytes",
)
"""What `new_runs` tells of a run that is not like most, in this order."""


def run_from(row: Columns) -> Run:
    """Reads a row, in the order of the query part `columns`; a held run beats with its worker."""
    return Run(
        number=row[0],
        id=row[1],
        flow=row[2],
        created_at=row[3],
        digest=row[4],
        tag=row[5],
        tags=() if row[6] == "[]" else _labels(row[6]),
        priority=row[7],
        key=row[8],
        idempotency_key=row[9],
        tenant=row[10],
        private=bool(row[11]),
        source=row[12],
        continues=row[13],
        status=_STATUS[row[14]],
        attempt=row[15],
        holder=row[16],
        not_before=row[17],
        started_at=row[18],
        finished_at=row[19],
        updated_at=row[20],
        heartbeat_at=row[22] if row[21] is None else row[21],
        position=row[23],
        done=row[24],
        failed=row[25],
        skipped=row[26],
        steps=row[27],
        barren=row[28],
        fingerprint=row[29],
        blob=row[30],
        cancel_asked_at=row[31],
        cancel_asked_by=row[32],
        cancel_reason=row[33],
        version=row[34],
        progress=msgspec.Raw(row[35].encode()),
        error=None if row[36] is None else _problem(row[36]),
        result=None if row[37] is None else msgspec.Raw(row[37].encode()),
        params=msgspec.Raw(row[38].encode()),
        workflow=row[39],
        workflow_bytes=row[40],
        api_key=row[41],
        worker=row[42],
        spent=spent_from(row[43]),
        wait=row[44],
        waiting_reason=row[45],
    )


def newly_claimed(rows: Iterable[Columns], like: Run, first: float, lowest: int) -> Iterator[Run]:
    """Reads what `new_runs` gives; the rest of such a row is as in a run that it is like.

    Most runs were submitted alike: one is made of the one before it, which takes a quarter of the time.
    """
    plain, before = like, ""
    for number, run_id, created_at, digest, params, given in rows:
        if given != before:
            like, before = _with(plain, given), given
        yield msgspec.structs.replace(
            like,
            number=number,
            id=run_id,
            created_at=created_at,
            digest=digest,
            updated_at=first + 1e-6 * (number - lowest),
            params=msgspec.Raw(params.encode()),
        )


def _with(plain: Run, given: str) -> Run:
    if not given:
        return plain
    fields = dict(zip(_GIVEN, _given(given), strict=True))
    return msgspec.structs.replace(plain, **fields | {"tags": _labels(fields["tags"])})


def submitted(run: Run, shelf: int) -> Columns:
    """Gives the columns that the submission fixes, in the order of `insert_run`."""
    return (
        run.id,
        run.flow,
        run.created_at,
        run.digest,
        run.tag,
        text(run.tags),
        run.priority,
        run.key,
        run.idempotency_key,
        run.tenant,
        run.private,
        run.source,
        run.continues,
        run.workflow,
        run.workflow_bytes,
        run.api_key,
        shelf,
    )


def folded(run: Run) -> Columns:
    """Gives the columns that facts can change, in the order of `insert_run` and `write_run`."""
    return (
        run.status.value,
        run.attempt,
        run.holder,
        run.not_before,
        run.started_at,
        run.finished_at,
        run.heartbeat_at,
        run.position,
        run.done,
        run.failed,
        run.skipped,
        run.steps,
        run.barren,
        run.fingerprint,
        run.blob,
        run.cancel_asked_at,
        run.cancel_asked_by,
        run.cancel_reason,
        run.version,
        bytes(run.progress).decode(),
        None if run.error is None else text(run.error),
        None if run.result is None else bytes(run.result).decode(),
        run.worker,
        spent_text(run.spent),
        run.wait,
        run.waiting_reason,
        run.updated_at,
    )


def spent_from(said: str) -> tuple[f.Spent, ...]:
    """Reads what a run has spent; most have spent nothing."""
    return _spent(said) if said else ()


def spent_text(spent: tuple[f.Spent, ...]) -> str:
    """Gives the column of it."""
    return text(spent) if spent else ""


def fact_columns(fact: f.Fact) -> Columns:
    """Gives kind, step, key, attempt and body of a fact; the body of an outcome is without its step and key."""
    kind = type(fact).__name__
    if isinstance(fact, f.Outcome):
        rest = msgspec.structs.replace(fact, step="", key="")
        return kind, fact.step, fact.key, fact.attempt, f.encode(rest).decode()
    return kind, None, None, fact.attempt, f.encode(fact).decode()


def entry_from(row: Columns) -> Entry:
    """Reads a fact: position, kind, step, key, body."""
    position, _, step, key, body = row
    fact = f.decode(body)
    if step is None:
        return Entry(position, fact)
    if isinstance(fact, f.Unknown):
        whole = {**msgspec.json.decode(fact.raw), "step": step, "key": key}
        return Entry(position, msgspec.structs.replace(fact, raw=msgspec.Raw(f.encode(whole))))
    return Entry(position, msgspec.structs.replace(fact, step=step, key=key))


def line_columns(line: Line, position: int) -> str:
    """Gives the body of a log line, written after a position of the journal."""
    return text(msgspec.structs.replace(line, number=0, position=line.position or position))


def line_from(row: Columns) -> Line:
    """Reads a log line: number, body."""
    return msgspec.structs.replace(_line(row[1]), number=row[0])


def text(value: object) -> str:
    """Writes a value as JSON text."""
    return f.encode(value).decode()


def numbers(values: Sequence[int]) -> str:
    """Writes numbers as a JSON list, for `json_each`."""
    return text(list(values))
