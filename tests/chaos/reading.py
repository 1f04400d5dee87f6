"""Reads stores as they lie there, without the product: journals and rows out of the SQLite file or of the stream.

What is read is plain: a fact is its JSON, a row a mapping. Nothing here folds, and nothing here trusts a fold.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import nats
from nats.js.api import ConsumerConfig, DeliverPolicy

from tsuzuki.backends.nats.options import parse
from tsuzuki.backends.nats.topology import Topology, last_token

AT_ONCE = 500


@dataclass
class Story:
    """A run as its store has it: the row, and the facts with their positions."""

    run_id: str
    row: dict[str, Any]
    facts: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """The requests on the subject of the run, where its store has such."""
    let_in: list[int] = field(default_factory=list)
    """Those that messages of its journal say they have let in."""

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [fact for _, fact in self.facts if fact["kind"] in kinds]


def from_sqlite(file: Path) -> dict[str, Story]:
    """Reads the file with nothing but SQL."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        rows = {row["number"]: dict(row) for row in connection.execute("SELECT * FROM runs")}
        stories = {number: Story(row["id"], {**row, "tags": _list(row["tags"])}) for number, row in rows.items()}
        for run, position, kind, step, key, attempt, body in connection.execute(
            "SELECT run, position, kind, step, key, attempt, body FROM facts ORDER BY run, position"
        ):
            apart = {} if step is None else {"step": step, "key": key}
            stories[run].facts.append((position, {**json.loads(body), **apart, "kind": kind, "attempt": attempt}))
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    return {story.run_id: story for story in stories.values()}


def _list(text: str) -> list[str]:
    found: list[str] = json.loads(text)
    return found


async def from_nats(url: str) -> dict[str, Story]:
    """Reads the stream of the journals message by message; each has facts and the row after them."""
    options = parse(url)
    names = Topology(options)
    client = await nats.connect(list(options.servers))
    stories: dict[str, Story] = {}
    requests: list[tuple[str, int]] = []
    try:
        stream = client.jetstream()
        total = (await stream.stream_info(names.journal)).state.messages
        config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
        reader = await stream.pull_subscribe("", stream=names.journal, config=config)
        read = 0
        while read < total:
            for message in await reader.fetch(min(AT_ONCE, total - read), timeout=20):
                run_id = last_token(message.subject)
                if message.subject == names.request(run_id):
                    requests.append((run_id, message.metadata.sequence.stream))
                else:
                    _told(stories, run_id, message.data)
                read += 1
                await message.ack()
    finally:
        await client.close()
    for run_id, seq in requests:
        if run_id in stories:
            stories[run_id].asked.append(seq)
    return stories


def _told(stories: dict[str, Story], run_id: str, data: bytes) -> None:
    """Adds a message: (mark, position of its last fact, first sequence, row, facts, requests that it lets in)."""
    _, position, _, row, facts, let_in = msgspec.msgpack.decode(data)
    if row is None:  # a tombstone: a submission that was answered with an error, or a run that was removed
        stories.pop(run_id, None)
        return
    plain, result = msgspec.msgpack.decode(row)
    story = stories.setdefault(run_id, Story(run_id, {}))
    story.row = {**json.loads(plain), "result": None if result is None else result.decode()}
    story.let_in += let_in
    first = position - len(facts) + 1
    story.facts += [(first + at, json.loads(fact)) for at, fact in enumerate(facts)]
