"""The stages around their steps: what was done is passed over, what is done is measured, recorded and kept.

Steps get an item and give it back; they know nothing of sessions, logs and resuming.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from contextvars import ContextVar
from itertools import islice
from types import TracebackType
from typing import Any, Final

import msgspec

from tsuzuki.apps.notes.batches import Batches, Group, process_of
from tsuzuki.apps.notes.completed import done_in, told_here
from tsuzuki.apps.notes.gathering import Gathering, Together
from tsuzuki.apps.notes.items import COST, NOTE, ItemStatus, ProcessingItem, StageType
from tsuzuki.apps.notes.knowledge import ExtractKnowledge
from tsuzuki.apps.notes.looking import (
    answered_before,
    asked_again,
    batch_groups,
    cost_of,
    failed_before,
    failures,
    times_failed,
)
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.merging import MergeChunks, Part
from tsuzuki.apps.notes.outputs import Extracted, Kept
from tsuzuki.apps.notes.phases import Phase, PhaseStatistics, Stage, StageContext
from tsuzuki.apps.notes.presses import Lent, Presses
from tsuzuki.apps.notes.refusals import ItemNotFound
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.shelf import LEDGER, ledger_entry
from tsuzuki.apps.notes.stagelog import Lines, Place, error_detail, line_of, message_of
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.apps.notes.vault import sweep
from tsuzuki.apps.notes.writing import WriteFile
from tsuzuki.errors import StoreClosed, StoreError

BENCH: ContextVar["Workbench"] = ContextVar("notes_bench")
"""The session that the run around this code works on."""
LENT: ContextVar[Lent] = ContextVar("notes_lent")
"""Who lends a hand to the import around this code."""
FAILED_ONLY: Final = "failed"
GROUP: Final = 1000
"""How many conversations go into a batch: their questions are in memory together."""
_read: Final = msgspec.json.Decoder(dict[str, Any]).decode


class _AtWork:
    """Lets items be worked on. What a closed session refuses has not failed: the run has stopped, and goes on."""

    __slots__ = ("_bench",)

    def __init__(self, bench: "Workbench") -> None:
        self._bench = bench

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raises that in place of what was refused."""
        if self._bench.closed and isinstance(error, Exception) and not isinstance(error, StoreError):
            raise StoreClosed("the session is closed: the run has stopped, and goes on") from error


class _Attempt:
    """Lets a step work on an item; what fails is recorded. (As a generator it would take longer than the step.)"""

    __slots__ = ("_at", "_began", "_bench", "_item")

    def __init__(self, bench: "Workbench", item: ProcessingItem, at: Place) -> None:
        self._bench, self._item, self._at = bench, item, at

    def __enter__(self) -> float:
        """Gives when it began."""
        self._item.status, self._item.current_step = ItemStatus.IN_PROGRESS, self._at.step
        self._began = CLOCK.monotonic()
        return self._began

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Records a failure, with all that is known of it; where the run is stopped, and goes on, there is none."""
        if error is None:
            self._item.status = ItemStatus.COMPLETED
        elif isinstance(error, Exception) and not isinstance(error, StoreError):
            self._bench.failed(self._item, self._at, error, CLOCK.monotonic() - self._began)


class Workbench:
    """An open session, while a run works on it."""

    def __init__(self, session: Session) -> None:
        about = session.about
        self.session = session
        self._told = told_here()
        self.session_id = str(about["session_id"])
        self.options: dict[str, Any] = dict(about["options"])
        self.vault = session.vault
        self.vault.mkdir(parents=True, exist_ok=True)
        self.extracted = Extracted(session.extracted)
        self.transformed = Kept(session.transformed)
        self.loaded = Kept(session.loaded)
        self.log = Lines(session.stage_log)
        self.errors = Lines(session.error_log)
        self._made = Gathering(self.transformed, self.log)
        self._filed = Gathering(self.loaded, self.log)
        self.ready: dict[str, dict[str, Any]] = {}
        """Notes that were made and are about to be written."""
        self._items: dict[str, ProcessingItem] = {}
        """Their items, without what was said: they are not read a second time."""
        stages = (StageType.TRANSFORM, StageType.LOAD)
        self._contexts = {stage: self._context(stage) for stage in stages}
        self._write = WriteFile(self.vault, str(about["created_at"])[:10], self.session_id, self.extracted.entries)
        self._extract = ExtractKnowledge(self.options)
        self._merge = MergeChunks(self._part)
        self._failed_before = failed_before(session, StageType.TRANSFORM) + asked_again(session)
        self._answered_before = answered_before(session)
        made, filed = (self._extract.name, self._merge.name), self._write.name
        self._places = {name: Place(self.session_id, StageType.TRANSFORM, name) for name in made}
        self._places[filed] = Place(self.session_id, StageType.LOAD, filed)
        self._presses: Presses | None = None
        self.batches = Batches(session.batches_log, self.session_id, batch_groups(session))
        self.left: dict[str, None] = {}
        """What batches are to answer, and what is in none yet."""
        self._again = self.options.get("again") or ()
        """Which items are made again on request: True for all, or their ids."""
        self._ledger: Lines | None = None
        self.closed = False
        self.at_work = _AtWork(self)
        self.settled = 0
        """How many items of this run have ended."""
        self.cost = cost_of(session)
        """What the session has cost so far."""

    def _context(self, stage: StageType, until: int | None = None, limit: int = 0) -> StageContext:
        cache = done_in(self.session.stage_log, stage, until=until, told=self._told)
        cache.leave_out((entry.item_id, entry.parts) for entry in self.extracted.entries.values() if entry.parts)
        chunk = bool(self.options.get("chunk"))
        return StageContext(Phase(self.session_id), Stage(stage), False, limit or None, chunk, cache)

    def chosen(self, until: int, limit: int, only: str, item: str = "") -> tuple[list[str], list[str]]:
        """Gives the items to work on, as the log said when the run began; parents apart, which come last."""
        entries = self.extracted.entries
        wanted = [entry.item_id for entry in entries.values() if entry.status == ItemStatus.PENDING.value]
        if item:
            among = {item, *entries[item].parts} if item in entries else set()
            wanted = [item_id for item_id in wanted if item_id in among]
        elif only == FAILED_ONLY:
            failed = failures(self.session.stage_log, until)
            wanted = [item_id for item_id in wanted if item_id in failed]
        context = self._context(StageType.LOAD, until, limit)
        ids = context.chosen(self._least_failed_first(wanted, until) if limit else wanted)
        among = set(ids)
        parents = [
            item_id
            for item_id in ids
            if entries[item_id].parts
            and all(part in among or context.passes_over(part) for part in entries[item_id].parts)
        ]
        return [item_id for item_id in ids if not entries[item_id].parts], parents

    def _least_failed_first(self, ids: list[str], until: int) -> list[str]:
        """Puts what was never tried before what failed: a limit would be used up by that each time.

        A whole comes after its parts, which it waits for.
        """
        entries, failed = self.extracted.entries, times_failed(self.session.stage_log, until)
        return sorted(ids, key=lambda item_id: max(failed[each] for each in (item_id, *entries[item_id].parts)))

    def expect(self, count: int) -> None:
        """Prepares for so many items: where they are many, and nobody is asked about them, others lend a hand."""
        self._presses = LENT.get().taken(count)
        if self._presses is not None:
            make = Together(self._presses.made)
            self._extract.made = lambda title, text: make.put((title, text))
            self._write.by(self._presses.written)

    def next_group(self) -> dict[str, Any]:
        """Says what is asked about together next, and whether another run has begun that; nothing where all is."""
        group = self.batches.next_group(self._asked_next)
        return {} if group is None else {"name": group.name, "items": group.items, "inherited": group.owed}

    def _asked_next(self) -> dict[str, int]:
        context = self._contexts[StageType.TRANSFORM]
        undone = (item_id for item_id in self.left if not context.passes_over(item_id))
        return {item_id: self._failed_before[item_id] for item_id in islice(undone, GROUP)}

    async def batched(self, group: Group, *, inherited: bool) -> list[str]:
        """Has batches answer what is asked about a group; gives those of its items that this run works on."""
        process = process_of(self.batches, group, inherited=inherited)
        answers = await self._extract.answered(self._asked_about(group), process)
        self._extract.given = {  # what was in vain, and is tried again, is asked directly
            item_id: answer
            for item_id, answer in answers.items()
            if answer.ok or self._failed_before[item_id] <= group.items[item_id]
        }
        worked_on = [item_id for item_id in group.items if item_id in self.left]
        for item_id in worked_on:
            del self.left[item_id]
        return worked_on

    def _asked_about(self, group: Group) -> Iterator[ProcessingItem]:
        for item_id, failed in group.items.items():
            item = self.extracted.item(item_id)
            item.metadata["failed_before"] = failed
            yield item

    def settle(self, group: Group, ids: list[str]) -> None:
        """Notes that a group has become notes, or failures, after these were worked on: unless some are left."""
        among, context = set(ids), self._contexts[StageType.LOAD]
        if all(item_id in among or context.passes_over(item_id) for item_id in group.items):
            self.batches.settle(group)

    async def transform(self, item_id: str) -> dict[str, Any]:
        """Makes the note of an item, or gives the one that was made."""
        context = self._contexts[StageType.TRANSFORM]
        if context.passes_over(item_id) and (kept := self.transformed.get(item_id)) is not None:
            return kept
        item = self.extracted.item(item_id)
        item.metadata["failed_before"] = self._failed_before[item_id]
        if item_id in self._answered_before:
            item.metadata[NOTE] = self._answered_before[item_id]
        step = self._merge if item.is_parent else self._extract
        for part in item.metadata.get("chunk_item_ids", ()):
            await self._made_again(part)
        at = self._places[step.name]
        with _Attempt(self, item, at) as began, room():
            item, note = await step.run(item)
        characters = {"before_chars": len(item.content or ""), "after_chars": len(item.transformed_content or "")}
        record = line_of(item, at, "success", CLOCK.monotonic() - began, **characters)
        output = await self._made.write(item_id, {"note": note, "record": record}, record)
        self._done(context, item_id)
        self._pay(note.cost)
        item.content = item.transformed_content = None
        self._items[item_id] = item
        return _read(output)

    async def load(self, item_id: str) -> dict[str, Any]:
        """Writes the note of an item, or gives where it was written."""
        context, made = self._contexts[StageType.LOAD], self.ready.pop(item_id, None)
        item = self._items.pop(item_id, None)
        if context.passes_over(item_id) and (kept := self.loaded.get(item_id)) is not None:
            return kept
        item, note = item or self.extracted.item(item_id), self._note(item_id, made)
        item.metadata["again"] = self._again is True or item.metadata.get("conversation_id") in self._again
        at = self._places[self._write.name]
        with _Attempt(self, item, at) as began, room():
            item = await self._write.run(item, note)
        record = line_of(item, at, "success", CLOCK.monotonic() - began)
        self._remember(item)
        plain = {"path": str(item.output_path), "title": note.title, "record": record}
        await self._filed.write(item_id, plain, record)
        self._done(context, item_id)
        return {"item_id": item_id, **plain}

    def _remember(self, item: ProcessingItem) -> None:
        """List a note as written into the vault: if it is not there later, its owner has deleted it.

        A crash before this line leaves a note that the vault itself shows.
        """
        if self._ledger is None:
            self._ledger = Lines(self.vault / LEDGER)
        self._ledger.append(ledger_entry(item.metadata, item.item_id))

    def _note(self, item_id: str, made: dict[str, Any] | None) -> Note:
        found = made or self.transformed.get(item_id)
        if found is None:
            raise ItemNotFound(f"{item_id!r} のノートがありません / no note was made of {item_id!r}")
        return msgspec.convert(found["note"], Note)

    async def _made_again(self, item_id: str) -> None:
        """Makes the note of a chunk anew that was written, and whose output somebody has removed since."""
        if self._contexts[StageType.LOAD].passes_over(item_id) and self._part(item_id) is None:
            self.ready[item_id] = await self.transform(item_id)
            self._undo(StageType.LOAD, item_id)  # its file and the whole say the same
            await self.load(item_id)

    def _undo(self, stage: StageType, item_id: str) -> None:
        cache = self._contexts[stage].completed_cache
        if cache is not None:
            cache.items.discard(item_id)

    def _part(self, item_id: str) -> Part | None:
        note, file = self.transformed.get(item_id), self.loaded.get(item_id)
        if note is None or file is None or not self._contexts[StageType.LOAD].passes_over(item_id):
            return None
        return msgspec.convert(note["note"], Note), str(file["path"])

    def failed(self, item: ProcessingItem, at: Place, error: Exception, took: float) -> None:
        """Records a failure, with all that is known of it."""
        item.status, item.error = ItemStatus.FAILED, message_of(error)
        self.errors.append(error_detail(item, at, error))
        self._pay(item.metadata.get(COST))
        self.log.append(line_of(item, at, "failed", took, error_message=item.error))

    def _pay(self, cost: float | None) -> None:
        self.cost = self.cost if cost is None else (self.cost or 0.0) + cost

    def _recorded(self, context: StageContext, record: dict[str, Any]) -> None:
        """Writes the line of a success; its output is there already."""
        self.log.append(record)
        self._done(context, record["item_id"])

    def _done(self, context: StageContext, item_id: str) -> None:
        if context.completed_cache is not None:
            known = self.extracted.entries.get(item_id)  # one text for each item, however often it was read
            context.completed_cache.items.add(known.item_id if known else item_id)

    def ensure(self, stage: StageType, outcome: dict[str, Any]) -> None:
        """Writes what the journal has of an item, and the log has not: somebody has removed it, or a power cut."""
        context = self._contexts[stage]
        if context.passes_over(outcome["item_id"]):
            return
        kept = self.transformed if stage is StageType.TRANSFORM else self.loaded
        kept.put(outcome["item_id"], {name: value for name, value in outcome.items() if name != "item_id"})
        self._recorded(context, outcome["record"])

    @property
    def passed_over(self) -> int:
        """How many items extract has passed over: empty, or too long."""
        return sum(entry.status == ItemStatus.SKIPPED.value for entry in self.extracted.entries.values())

    def statistics(self, ids: set[str]) -> PhaseStatistics:
        """Counts what became of the items of a run; those done before somebody asked to go on are skipped."""
        before = self._context(StageType.LOAD, self.session.since)
        after = self._contexts[StageType.LOAD]
        counts = PhaseStatistics(total_count=len(self.extracted.entries))
        for item_id, entry in self.extracted.entries.items():
            if entry.status == ItemStatus.SKIPPED.value:
                counts.skipped_count += 1
            elif entry.status == ItemStatus.FAILED.value:
                counts.error_count += 1
            elif before.passes_over(item_id):
                counts.skipped_count += 1
            elif item_id not in ids:
                continue
            elif after.passes_over(item_id):
                counts.success_count += 1
            else:
                counts.error_count += 1
        return counts

    def close(self) -> None:
        """Syncs and closes everything, the outputs before the lines that tell of them."""
        self.closed = True
        with ExitStack() as closed:  # the last is the first; one that cannot be synced keeps no other open
            for each in (self.extracted, self.log, self.errors, self.loaded, self.transformed, self._ledger):
                if each is not None:
                    closed.callback(each.close)
            if self._presses is not None:
                closed.callback(sweep, self.vault, self.session_id)  # one that was killed has left what it wrote
                closed.callback(self._presses.close)
