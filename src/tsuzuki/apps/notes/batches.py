"""`batches.jsonl`: which conversations were asked about together, and which batches of the provider that became.

It is part of the session, so that whoever resumes it finds these batches, on whatever machine, with whatever database.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tsuzuki import llm
from tsuzuki.apps.notes.refusals import BatchesDamaged
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.apps.notes.times import now


@dataclass(slots=True)
class Group:
    """Conversations that were asked about together."""

    name: str
    items: dict[str, int]
    """How often each had failed before: it is part of the question."""
    intended: dict[str, float] = field(default_factory=dict)
    """When each batch of it was meant to be created (Unix seconds), by intent."""
    created: dict[str, str] = field(default_factory=dict)
    """The ids of its batches, by intent."""
    lost: bool = False
    """Whether the line that says what it was asked about is gone."""
    settled: bool = False
    """Whether each item has an outcome that came of it."""

    @property
    def owed(self) -> bool:
        """Whether batches of it were paid for, or may have been, whose answers are not all notes yet."""
        return bool(self.intended) and not self.settled

    def take(self, event: str, line: Mapping[str, Any]) -> None:
        """Takes in what happened to it."""
        if event == "intended":
            self.intended.setdefault(str(line["intent"]), float(line["at"]))
        elif event == "created":
            self.intended.setdefault(str(line["intent"]), _time(line.get("timestamp")))
            self.created.setdefault(str(line["intent"]), str(line["batch"]))
        elif event == "settled":
            self.settled = True


def _time(told: Any) -> float:
    """Gives a time of a line in Unix seconds; of one that is lost it is not known, and may have been any."""
    try:
        return datetime.fromisoformat(str(told)).timestamp()
    except ValueError:
        return 0.0


def groups_of(lines: Iterable[Mapping[str, Any]]) -> dict[str, Group]:
    """Folds the lines of the file; one that makes no sense is passed over."""
    found: dict[str, Group] = {}
    for line in lines:
        try:
            name, event = str(line["group"]), str(line["event"])
            if event == "asked":
                items = {str(item): int(failed) for item, failed in line["items"].items()}
                found.setdefault(name, Group(name, items))
            else:
                found.setdefault(name, Group(name, {}, lost=True)).take(event, line)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


def owed(groups: Mapping[str, Group]) -> list[Group]:
    """Gives the groups whose answers are to be collected, the oldest first."""
    return [group for group in groups.values() if group.owed]


def refuse_lost(groups: Mapping[str, Group]) -> None:
    """Refuses where it is not known what a batch was asked that is owed: to go on would be to pay for it twice."""
    for group in owed(groups):
        if group.lost:
            raise BatchesDamaged(", ".join(group.created.values()) or "?")


class Batches:
    """The file, while a run works on the session; each line is on the disk before anything else is done."""

    def __init__(self, path: Path, session_id: str, groups: dict[str, Group]) -> None:
        self._path, self._session_id = path, session_id
        self.groups = groups
        self._given: set[str] = set()
        """The groups that this run has taken up."""

    def next_group(self, begin: Callable[[], dict[str, int]]) -> Group | None:
        """Gives the next group: first those that are owed from before, then what `begin` says is asked together."""
        refuse_lost(self.groups)
        for group in owed(self.groups):
            if group.name not in self._given:
                return group
        items = begin()
        if not items:
            return None
        return self._begun(str(uuid.uuid4()), items)

    def taken(self, name: str, items: dict[str, int]) -> Group:
        """Takes up a group as the run has recorded it; where the file has lost it, it is there again."""
        self._given.add(name)
        group = self.groups.get(name)
        if group is None or group.lost:
            known, group = group, self._begun(name, items)
            if known is not None:
                group.intended, group.created, group.settled = known.intended, known.created, known.settled
        return group

    def _begun(self, name: str, items: dict[str, int]) -> Group:
        self._append(name, "asked", items=items)
        group = self.groups[name] = Group(name, items)
        return group

    def settle(self, group: Group) -> None:
        """Notes that each of its items has an outcome."""
        if not group.settled:
            self._append(group.name, "settled")
            group.settled = True

    def note(self, group: Group, event: str, **more: Any) -> None:
        """Writes down what happened to a batch of a group, and takes it in."""
        self._append(group.name, event, **more)
        group.take(event, more)

    def _append(self, name: str, event: str, **more: Any) -> None:
        with room(), Lines(self._path) as lines:  # closing it syncs it
            lines.append({"timestamp": now(), "session_id": self._session_id, "group": name, "event": event, **more})


class GroupLedger:
    """Notes the intents and batches of a group with its session, before and after each is created."""

    def __init__(self, batches: Batches, group: Group) -> None:
        self._batches, self._group = batches, group

    async def intend(self, intent: llm.Intent) -> tuple[llm.Intent, bool]:
        """Notes that a batch is going to be created; gives when that was first meant, and whether it is now."""
        first = intent.id not in self._group.intended
        if first:
            await self._note("intended", intent=intent.id, at=intent.at, requests=len(intent.jobs))
        at = self._group.intended[intent.id]
        return llm.Intent(intent.id, intent.process_id, at, intent.jobs), first

    async def submitted(self, intent: llm.Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Gives the id of the batch: as noted, else what `create` gives, which is then noted."""
        if intent.id not in self._group.created:
            await self._note("created", intent=intent.id, batch=await create())
        return self._group.created[intent.id]

    async def _note(self, event: str, **more: Any) -> None:
        await asyncio.to_thread(self._batches.note, self._group, event, **more)


def process_of(batches: Batches, group: Group, *, inherited: bool) -> llm.Process:
    """Gives what `ask_all` knows a group by; an inherited one was begun by another run."""
    return llm.Process(f"notes/{group.name}", tuple(group.items), GroupLedger(batches, group), resumed=inherited)
