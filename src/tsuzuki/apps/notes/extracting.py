"""The extract stage: an export becomes items with stable ids, all of them or none."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final
from zlib import crc32

import msgspec

from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.chunking import chunks
from tsuzuki.apps.notes.digests import digest
from tsuzuki.apps.notes.items import TOO_LARGE, ItemStatus, ProcessingItem, StageType, path_of
from tsuzuki.apps.notes.looking import AGAIN, entry_named
from tsuzuki.apps.notes.names import safe
from tsuzuki.apps.notes.outputs import COMPLETE, INDEX, ITEMS, Entry, Extracted, lines_of, whole
from tsuzuki.apps.notes.refusals import NothingFailed
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.shelf import DELETED, UNCHANGED, Remembered
from tsuzuki.apps.notes.sources.conversation import Conversation, Unreadable, transcript
from tsuzuki.apps.notes.stagelog import Lines, Place, error_detail, line_of, message_of
from tsuzuki.apps.notes.times import CLOCK

STEP: Final = "parse_conversation"
RECORDS: Final = "records.jsonl.part"
ERRORS: Final = "errors.jsonl.part"
_LONGEST_TITLE: Final = 200
_PIECE: Final = 1 << 18
"""How many bytes of items are handed to the system at once."""
_encode: Final = msgspec.json.Encoder().encode


class _Told(msgspec.Struct):
    """What is read of a line of the log."""

    stage: str
    item_id: str


_TOLD: Final = msgspec.json.Decoder(_Told).decode


def items_of(
    conversation: Conversation, provider: str, *, chunk: bool, size: int, remembered: Remembered | None = None
) -> Iterator[ProcessingItem]:
    """Makes the items of a conversation: itself, or its chunks and their parent; too much or nothing is SKIPPED.

    So is what is `remembered`: a conversation whose note is in the vault already, or was deleted from it.
    """
    if conversation.repeated:
        yield _item(conversation, provider, "", said=conversation.said, skipped="repeated")
    elif conversation.blank:
        yield _item(conversation, provider, "", said=conversation.said, skipped="empty")
    elif conversation.own:
        yield _item(conversation, provider, "", skipped="own_note")
    elif remembered and (reason := remembered.reason(conversation.id, conversation.said)):
        yield _item(conversation, provider, "", said=conversation.said, skipped=reason)
    elif conversation.length <= size:
        yield _item(conversation, provider, conversation.text, said=conversation.said)
    elif not chunk:
        yield _item(conversation, provider, "", said=conversation.said, skipped=TOO_LARGE)
    else:
        yield from _chunked(conversation, provider, size)


def _chunked(conversation: Conversation, provider: str, size: int) -> Iterator[ProcessingItem]:
    total = sum(1 for _ in chunks(conversation.messages, size))  # counted first: all of them are as much as it is
    ids = [f"{conversation.id}_chunk_{number:03d}" for number in range(1, total + 1)]
    for number, piece in enumerate(chunks(conversation.messages, size)):
        yield _item(
            conversation,
            provider,
            transcript(piece),
            item_id=ids[number],
            is_chunked=True,
            chunk_index=number,
            total_chunks=total,
            parent_item_id=conversation.id,
            chunk_filename=f"{safe(conversation.title)}_{number + 1:03d}.md",
        )
    yield _item(conversation, provider, "", said=conversation.said, total_chunks=total, chunk_item_ids=ids)


def _item(
    conversation: Conversation,
    provider: str,
    text: str,
    *,
    item_id: str = "",
    said: str = "",
    skipped: str = "",
    **metadata: Any,
) -> ProcessingItem:
    about = {
        "title": conversation.title[:_LONGEST_TITLE],
        "created": conversation.created,
        "source_provider": provider,
        "conversation_id": conversation.id,
        "file_id": f"sha256:{said or digest(text or conversation.id)}",
    }
    if skipped:
        metadata["skipped_reason"] = skipped
    return ProcessingItem(
        item_id=item_id or conversation.id,
        source_path=path_of(conversation.filename),
        current_step=STEP,
        status=ItemStatus.SKIPPED if skipped else ItemStatus.PENDING,
        metadata={**about, **metadata},
        content=text,
    )


class Ids:
    """Sees to it that ids are unique: a conversation that comes twice is made once, and told of twice."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._again = 0

    def told(self, found: Conversation) -> Conversation:
        """Gives a conversation under an id of its own; the very same as one before is `repeated`."""
        said = found.said[:16]
        for own in (found.id, f"{found.id}-{said[:8]}"):
            if own not in self._seen:
                self._seen[own] = said
                return found if own == found.id else replace(found, id=own)
            if self._seen[own] == said:
                break
        self._again += 1
        return replace(found, id=f"{found.id}_repeated_{self._again:03d}", repeated=True)


class _Writing:
    """The files of the stage while they are written, beside those that are there."""

    def __init__(self, session: Session, stack: ExitStack) -> None:
        self._place = Place(session.session_id, StageType.EXTRACT, STEP)
        self._items = stack.enter_context((session.extracted / f"{ITEMS}.part").open("wb", _PIECE))
        self._index = stack.enter_context((session.extracted / f"{INDEX}.part").open("wb"))
        self._records = stack.enter_context((session.extracted / RECORDS).open("wb"))
        self._errors = stack.enter_context((session.extracted / ERRORS).open("wb"))
        self.counts = {"PENDING": 0, "SKIPPED": 0, "FAILED": 0}
        self._at = 0

    def add(self, item: ProcessingItem, took: float, error: Exception | None = None) -> None:
        """Writes an item, its place and its record."""
        line, about, status = _encode(item.to_dict()) + b"\n", item.metadata, item.status.value
        self._items.write(line)
        reason = str(about.get("skipped_reason", "")) or (message_of(error) if error else "")
        entry = Entry(
            item.item_id, self._at, len(line), status, str(about.get("title", "")), reason,
            str(about.get("parent_item_id", "")), tuple(about.get("chunk_item_ids", ())), crc32(line),
        )  # fmt: skip
        self._index.write(_encode(entry) + b"\n")
        self._at += len(line)
        self.counts[status] += 1
        self._record(item, took, error)

    def _record(self, item: ProcessingItem, took: float, error: Exception | None) -> None:
        if error is not None:
            self._errors.write(msgspec.json.encode(error_detail(item, self._place, error)) + b"\n")
        self._records.write(_encode(_line(item, self._place, took)) + b"\n")

    def sync(self) -> None:
        """Waits until everything is on the disk."""
        for file in (self._items, self._index, self._records, self._errors):
            _sync(file)


def extract(session: Session, tell: Callable[[int], None] = lambda _: None) -> dict[str, int]:
    """Extracts the items of a session, unless that was done; `tell` hears how many conversations there are so far.

    Records are added to the log only when all is there, and `complete.json` comes last: a half is noticed.
    """
    if (done := completed(session)) is not None:
        return done
    about, options, ids = session.about, session.options, Ids()
    session.extracted.mkdir(parents=True, exist_ok=True)  # somebody may have removed all of it
    with ExitStack() as stack:
        writing = _Writing(session, stack)
        began = CLOCK.monotonic()
        provider, chunk, size = about["provider"], bool(options.get("chunk")), int(options["chunk_size"])
        remembered = remembered_by(session)

        def take(found: Conversation | Unreadable) -> None:
            nonlocal began
            if isinstance(found, Unreadable):
                writing.add(_unreadable(found, provider), CLOCK.monotonic() - began, found.error)
            else:
                for item in items_of(ids.told(found), provider, chunk=chunk, size=size, remembered=remembered):
                    writing.add(item, CLOCK.monotonic() - began)
                    began = CLOCK.monotonic()
            began = CLOCK.monotonic()

        # Mapped, not looped over: nobody holds a conversation, which may be megabytes, while the next is read.
        for number, _ in enumerate(map(take, sources.conversations(session.input, provider)), start=1):
            tell(number)
        writing.sync()
    return _concluded(session, writing)


def remembered_by(session: Session) -> Remembered | None:
    """Return what the vault of a session remembers; None where everything is made again.

    What the session itself has made is left to its log.
    """
    again = session.options.get("again")
    if again is True:
        return None
    own = {item_id.rpartition("_chunk_")[0] or item_id for item_id, _, _ in lines_of(session.transformed)}
    paid = session.options.get("provider") != "offline"
    return Remembered(session.vault, session.about["provider"], paid=paid, leave={*own, *(again or ())})


def told_again(session: Session) -> None:
    """Writes the lines of a stage that is whole anew where the log has fewer: somebody has removed it.

    What was passed over and what cannot be read would be unfinished for ever otherwise: no other stage tells of it.
    """
    if sum((completed(session) or {}).values()) <= sum(1 for _ in _told(session)):
        return
    known, place = set(_told(session)), Place(session.session_id, StageType.EXTRACT, STEP)
    place_of_items = session.extracted / ITEMS
    with place_of_items.open("rb") as items, Lines(session.stage_log) as log, whole():
        for line in items:
            item = ProcessingItem.from_dict(msgspec.json.decode(line))
            if item.item_id not in known:
                log.append(_line(item, place, 0.0))


def completed(session: Session) -> dict[str, int] | None:
    """Gives the counts of a stage that is whole; None where it is not, or not any more."""
    place = session.extracted
    try:
        told = msgspec.json.decode((place / COMPLETE).read_bytes())
        found: dict[str, int] = told["counts"]
        sizes = {name: (place / name).stat().st_size for name in (ITEMS, INDEX)}
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        return None
    return found if told.get("sizes", sizes) == sizes else None


def cut_from_here_on(session: Session) -> None:
    """Lets long conversations be cut that were passed over: it is extracted anew; ids, and what is done, stay."""
    if not session.options.get("chunk"):
        session.input  # noqa: B018 - it raises where there is nothing to extract from
        session.change(options={**session.options, "chunk": True})
        (session.extracted / COMPLETE).unlink(missing_ok=True)


def ask_again(session: Session, named: str) -> str:
    """Let the note of a conversation be made again, whatever became of it; return the id of its item."""
    entry = entry_named(session, named)
    item_id = entry.parent or entry.item_id
    again = session.options.get("again") or []
    if entry.status == ItemStatus.SKIPPED.value and entry.reason not in (UNCHANGED, DELETED):
        raise NothingFailed(
            f"{entry.title!r} からはノートを作成できません（{entry.reason}） / "
            f"no note can be made of {entry.title!r}: {entry.reason}"
        )
    if entry.status == ItemStatus.PENDING.value:
        _undo(session, item_id)
    else:  # its text was not kept: it is extracted again
        session.input  # noqa: B018 - it raises where there is nothing to extract from
        (session.extracted / COMPLETE).unlink(missing_ok=True)
    if again is not True:
        session.change(options={**session.options, "again": [*dict.fromkeys([*again, item_id])]})
    return item_id


def _undo(session: Session, item_id: str) -> None:
    """Write into the log that an item, and its pieces, are not done any more."""
    extracted = Extracted(session.extracted)
    try:
        with Lines(session.stage_log) as log:
            for each in (*extracted.entries[item_id].parts, item_id):
                for stage, step in ((StageType.TRANSFORM, "extract_knowledge"), (StageType.LOAD, "write_file")):
                    place = Place(session.session_id, stage, step)
                    log.append(line_of(extracted.item(each), place, "skipped", 0.0, skipped_reason=AGAIN))
    finally:
        extracted.close()


def _line(item: ProcessingItem, place: Place, took: float) -> dict[str, Any]:
    """Makes the line of what extract did with an item."""
    if item.status is ItemStatus.SKIPPED:
        return line_of(item, place, "skipped", took, skipped_reason=item.metadata["skipped_reason"])
    if item.status is ItemStatus.FAILED:
        return line_of(item, place, "failed", took, error_message=item.error)
    return line_of(item, place, "success", took, after_chars=len(item.content or ""))


def _unreadable(found: Unreadable, provider: str) -> ProcessingItem:
    return ProcessingItem(
        item_id=found.id,
        source_path=Path(found.filename),
        current_step=STEP,
        status=ItemStatus.FAILED,
        metadata={"title": found.title[:_LONGEST_TITLE], "source_provider": provider},
        error=message_of(found.error),
    )


def _concluded(session: Session, writing: _Writing) -> dict[str, int]:
    place = session.extracted
    for name in (ITEMS, INDEX):
        (place / f"{name}.part").replace(place / name)
    known = set(_told(session))
    for part, log in ((RECORDS, session.stage_log), (ERRORS, session.error_log)):
        _added(place / part, log, known)
    marker = place / f"{COMPLETE}.part"
    with marker.open("wb") as file:
        sizes = {name: (place / name).stat().st_size for name in (ITEMS, INDEX)}
        file.write(msgspec.json.encode({"counts": writing.counts, "sizes": sizes}))
        _sync(file)
    marker.replace(place / COMPLETE)
    for part in (RECORDS, ERRORS):
        (place / part).unlink()
    return writing.counts


def _added(part: Path, log: Path, known: set[str]) -> None:
    """Adds lines to a log; where a kill has interrupted that, those of items that are not there yet."""
    with Lines(log):
        pass  # so that half a line at the end is ended
    with part.open("rb") as lines, log.open("ab") as file:
        if not known:
            shutil.copyfileobj(lines, file, 1 << 20)
        else:
            file.writelines(line for line in lines if msgspec.json.decode(line)["item_id"] not in known)
        _sync(file)


def _told(session: Session) -> Iterator[str]:
    """Gives the items that the log has a line of extract of."""
    if not session.stage_log.exists():
        return
    with session.stage_log.open("rb") as file:
        for line in file:
            try:
                found = _TOLD(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if found.stage == StageType.EXTRACT.value:
                yield found.item_id


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
