"""How a session stands, what failed in it, all that happened to one item, and its notes: read from its files alone."""

import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Final

import msgspec

from tsuzuki.apps.notes.batches import Group, groups_of, owed
from tsuzuki.apps.notes.completed import BOM, NO_SENSE, CompletedItemsCache, done_in, lines_in
from tsuzuki.apps.notes.items import COST, NOTE, PLACES, ItemStatus, StageType
from tsuzuki.apps.notes.outputs import COMPLETE, Entry, entries_of, kept_for
from tsuzuki.apps.notes.phases import PhaseStatistics
from tsuzuki.apps.notes.refusals import ItemNotFound
from tsuzuki.apps.notes.sessions import Session

DESCRIBED: Final[dict[str, Any]] = {"use_attribute_docstrings": True}
"""Lets pydantic tell over HTTP what is said of each field here."""
_ENDINGS: Final = frozenset({".zip", ".json", ".jsonl", ".md", ".markdown", ".txt"})
AGAIN: Final = "again"
"""Why the log says that a note is not done any more: somebody has asked for it again."""
_TELLING: Final = ("item_id", "stage", "status")
"""What a record of a stage says at least."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An item that has failed, and why."""

    __pydantic_config__: ClassVar[dict[str, Any]] = DESCRIBED

    item_id: str
    """The id of the item."""
    title: str
    """Its title; its id where it has none."""
    stage: str
    """The stage that failed: `extract`, `transform` or `load`."""
    error_message: str
    """What it failed of."""
    timestamp: str
    """When it failed (UTC, ISO 8601)."""


def records(path: Path, until: int | None = None, having: bytes = b"", *, since: int = 0) -> Iterator[dict[str, Any]]:
    """Gives the records of a log in order; lines without sense, or without what is looked for, are passed over."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(since)
        for line in lines_in(file, until):
            if having in line and isinstance(found := _decoded(line), dict):
                yield found


def stage_records(path: Path, until: int | None = None, *, since: int = 0) -> Iterator[dict[str, Any]]:
    """Gives the records of the log of stages, from a byte on, that say of which item, which stage and how it went."""
    for record in records(path, until, since=since):
        if all(isinstance(record.get(name), str) for name in _TELLING):
            yield record


def failures(path: Path, until: int | None = None) -> dict[str, dict[str, Any]]:
    """Gives the last record of each item whose last record is a failure.

    One whose note was written before that is none: whoever goes on passes it over.
    """
    found = _failed_last(stage_records(path, until))
    written = done_in(path, StageType.LOAD, until=until).items if found else set()
    return {item_id: record for item_id, record in found.items() if item_id not in written}


def _failed_last(told: Iterator[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for record in told:
        if record["status"] == "failed":
            found[record["item_id"]] = record
        elif record["status"] in ("success", "skipped") and record["stage"] != StageType.EXTRACT.value:
            found.pop(record["item_id"], None)
    return found


def failed_before(session: Session, stage: StageType) -> Counter[str]:
    """Counts how often a stage has failed with each item."""
    errors = records(session.error_log)
    return Counter(str(error.get("item_id")) for error in errors if error.get("stage") == stage.value)


def answered_before(session: Session) -> dict[str, dict[str, Any]]:
    """Gives the notes that a model was paid for, and that failed while they were translated."""
    found = ((str(error.get("item_id")), error.get("metadata")) for error in records(session.error_log, having=_NOTE))
    return {item_id: about[NOTE] for item_id, about in found if isinstance(about, dict) and NOTE in about}


def asked_again(session: Session) -> Counter[str]:
    """Count how often each item was asked for again after its note was made."""
    told = records(session.stage_log, having=AGAIN.encode())
    again = (each for each in told if each.get("skipped_reason") == AGAIN and each.get("stage") == StageType.TRANSFORM)
    return Counter(str(record.get("item_id")) for record in again)


def times_failed(path: Path, until: int) -> Counter[str]:
    """Counts how often each item has failed, as the log says up to some byte."""
    told = records(path, until, having=_FAILED)
    return Counter(str(record.get("item_id")) for record in told if record.get("status") == "failed")


def batch_groups(session: Session) -> dict[str, Group]:
    """Gives the conversations that were asked about together, with the batches that became of them."""
    return groups_of(records(session.batches_log))


def owed_batches(session: Session) -> list[str]:
    """Names the batches whose answers are to be collected; one is `unclear` that may have been created."""
    found = owed(batch_groups(session))
    return [group.created.get(intent, "unclear") for group in found for intent in group.intended]


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line.removeprefix(BOM))
    except NO_SENSE:
        return None


def failed_items(session: Session) -> list[Failed]:
    """Lists what has failed and was not done since, in the order of the export."""
    last = failures(session.stage_log)
    titles = {entry.item_id: entry.title for entry in entries_of(session.extracted)}
    known = [item_id for item_id in titles if item_id in last]
    return [_failed(item_id, titles.get(item_id, item_id), last[item_id]) for item_id in dict.fromkeys([*known, *last])]


def _failed(item_id: str, title: str, record: dict[str, Any]) -> Failed:
    stage, message, at = (str(record.get(name, "")) for name in ("stage", "error_message", "timestamp"))
    return Failed(item_id, title, stage, message, at)


def items(session: Session) -> list[dict[str, Any]]:
    """Lists the items of a session with what became of each."""
    entries, failed = entries_of(session.extracted), failures(session.stage_log)
    done = _written(session, entries)
    return [
        {
            "item_id": entry.item_id,
            "title": entry.title,
            "state": _state(entry, done, failed),
            "reason": entry.reason or str(failed.get(entry.item_id, {}).get("error_message", "")),
            "parent_item_id": entry.parent or None,
        }
        for entry in entries
    ]


def fits(item: dict[str, Any], text: str) -> bool:
    """Whether an item is looked for: by a part of its title, in whatever case, or by the beginning of its id."""
    words = text.strip().casefold()
    return words in str(item["title"]).casefold() or str(item["item_id"]).casefold().startswith(words)


def stem_of(source: str) -> str:
    """Gives the name of an export without the ending that says what it is."""
    path = Path(source)
    return path.stem if path.suffix.lower() in _ENDINGS else source


def _written(session: Session, entries: list[Entry], until: int | None = None) -> CompletedItemsCache:
    """Gives what was written into the vault; a whole counts where all its parts do."""
    done = done_in(session.stage_log, StageType.LOAD, until=until)
    done.leave_out((entry.item_id, entry.parts) for entry in entries if entry.parts)
    return done


def passed_over(session: Session) -> list[dict[str, Any]]:
    """Lists what extract has passed over, and why."""
    return [
        {"item_id": entry.item_id, "title": entry.title, "reason": entry.reason}
        for entry in entries_of(session.extracted)
        if entry.status == ItemStatus.SKIPPED.value
    ]


def _state(entry: Entry, done: CompletedItemsCache, failed: dict[str, dict[str, Any]]) -> str:
    if entry.status == ItemStatus.SKIPPED.value:
        return "skipped"
    if done.is_completed(entry.item_id):
        return "success"
    return "failed" if entry.item_id in failed else "pending"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was counted of a session whose files were so large."""

    sizes: tuple[int, ...]
    counts: PhaseStatistics
    retryable: int
    reasons: dict[str, int]
    cost: float | None


_SEEN: Final[dict[Path, _Seen]] = {}
"""What was counted last: pages ask every second or two, and logs only grow."""
_MOST_SEEN: Final = 200
_COST: Final = b'"cost":'
_NOTE: Final = msgspec.json.encode(NOTE)
_FAILED: Final = b"failed"


def counted(session: Session) -> tuple[PhaseStatistics, int, dict[str, int], float | None]:
    """Counts what became of all items of a session, how many can be tried again, why others were passed over, and what
    all of it has cost."""
    sizes = tuple(path.stat().st_size if path.exists() else -1 for path in _counted_from(session))
    seen = _SEEN.get(session.folder)
    if seen is None or seen.sizes != sizes:
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        seen = _SEEN[session.folder] = _Seen(sizes, *_counts(session), cost_of(session))
    return replace(seen.counts), seen.retryable, dict(seen.reasons), seen.cost


def _counted_from(session: Session) -> tuple[Path, ...]:
    return session.stage_log, session.error_log, session.transformed, session.extracted / COMPLETE


def _counts(session: Session) -> tuple[PhaseStatistics, int, dict[str, int]]:
    entries, failed = entries_of(session.extracted), failures(session.stage_log)
    done = _written(session, entries)
    states = Counter(_state(entry, done, failed) for entry in entries)
    counts = PhaseStatistics(states["success"], states["failed"], states["skipped"], states.total())
    reasons = Counter(entry.reason for entry in entries if entry.status == ItemStatus.SKIPPED.value)
    return counts, sum(retryable(record) for record in failed.values()), dict(sorted(reasons.items()))


def done_since(session: Session) -> PhaseStatistics:
    """Counts what became of items since somebody asked last to go on: of work that was stopped, which counts nothing.

    As in the end of a run, what was done before that is skipped, and nobody has come to the rest.
    """
    entries, since = entries_of(session.extracted), session.since
    before, done = _written(session, entries, since), _written(session, entries)
    failed = _failed_last(stage_records(session.stage_log, since=since))
    states = Counter(
        "skipped" if before.is_completed(entry.item_id) else _state(entry, done, failed) for entry in entries
    )
    unreadable = sum(entry.status == ItemStatus.FAILED.value and entry.item_id not in failed for entry in entries)
    return PhaseStatistics(states["success"], states["failed"] + unreadable, states["skipped"], states.total())


def retryable(record: dict[str, Any]) -> bool:
    """Whether what failed can be tried again: an export that cannot be read stays as it is."""
    return record.get("stage") != StageType.EXTRACT.value


def cost_of(session: Session) -> float | None:
    """Adds up what notes, and what failed, have cost in a session; None where no price is known."""
    # A note that was lost and told again has the same line; failures are told once, however fast they follow.
    notes = {_identity(line): line.get("note", {}).get(COST) for line in records(session.transformed, having=_COST)}
    failed = [line.get("metadata", {}).get(COST) for line in records(session.error_log, having=_COST)]
    costs = [cost for cost in (*notes.values(), *failed) if isinstance(cost, int | float)]
    return round(sum(costs), PLACES) if costs else None


def _identity(line: dict[str, Any]) -> tuple[str, str, str]:
    record = line.get("record", {})
    return str(line.get("item_id")), str(record.get("timestamp")), str(record.get("timing_ms"))


def traced(session: Session, item_id: str) -> dict[str, Any]:
    """Tells all that happened to one item, and to its pieces where it was cut: records, failures, its note."""
    entry = entry_named(session, item_id)
    found = entry.item_id
    among = {found, *entry.parts}
    note, file = kept_for(session.transformed, found), kept_for(session.loaded, found)
    return {
        "session_id": session.session_id,
        "item_id": found,
        "title": entry.title,
        "status": _outcome(session, entry),
        "reason": entry.reason,
        "parent_item_id": entry.parent or None,
        "chunk_item_ids": list(entry.parts),
        "records": [record for record in stage_records(session.stage_log) if record["item_id"] in among],
        "errors": [error for error in records(session.error_log) if str(error.get("item_id")) in among],
        "note": None if note is None else note.get("note"),
        "output_path": None if file is None else str(session.vault / str(file["path"])),
    }


def entry_named(session: Session, item_id: str) -> Entry:
    """Return the item with this id, with an id that begins so, or with this title."""
    if not item_id.strip():
        raise ItemNotFound(
            "会話の ID またはタイトルが空です。変数が設定されているか確認してください / "
            "the id or title of the conversation is empty: look whether a variable is not set"
        )
    entries = {entry.item_id: entry for entry in entries_of(session.extracted)}
    return entries.get(item_id) or _beginning_with(entries, item_id)


_ENDED: Final = {
    "success": ItemStatus.COMPLETED, "failed": ItemStatus.FAILED, "skipped": ItemStatus.SKIPPED,
    "pending": ItemStatus.PENDING,
}  # fmt: skip


def _outcome(session: Session, entry: Entry) -> str:
    done = _written(session, [entry])
    return _ENDED[_state(entry, done, failures(session.stage_log))].value


def _beginning_with(entries: dict[str, Entry], text: str) -> Entry:
    """Finds an item by the beginning of its id, or by its title."""
    fitting = [entry for entry in entries.values() if entry.item_id.startswith(text) or entry.title == text]
    among = {entry.item_id for entry in fitting}
    found = [entry for entry in fitting if entry.parent not in among]  # pieces are told of with their conversation
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(entry.item_id for entry in found[:5])
        raise ItemNotFound(f"{text!r} に当てはまる会話が複数あります（{names}） / several items fit {text!r}: {names}")
    raise ItemNotFound(f"{text!r} はセッションにありません / no item of the session has the id or title {text!r}")


def packed(session: Session) -> IO[bytes]:
    """Puts the notes of a session into a ZIP, for whoever cannot reach the vault; the file has no name."""
    names = {str(line["path"]) for line in records(session.loaded) if "path" in line}
    file = TemporaryFile(dir=session.folder)  # noqa: SIM115 - whoever sends it closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(names):
            note = session.vault / name
            if ".." not in Path(name).parts and note.is_relative_to(session.vault) and note.is_file():
                archive.write(note, name)
    return file
