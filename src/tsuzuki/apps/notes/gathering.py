"""What items put out and what is recorded of them, written together for all that end in one turn of the loop."""

import asyncio
from typing import Any

import msgspec

from tsuzuki.apps.notes.outputs import Kept
from tsuzuki.apps.notes.stagelog import Lines


class Gathering:
    """Writes for a stage whose items end on the loop; one write for each file, the outputs before the lines."""

    def __init__(self, kept: Kept, log: Lines) -> None:
        self._kept, self._log = kept, log
        self._outputs: list[tuple[str, bytes]] = []
        self._records: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def write(self, item_id: str, plain: dict[str, Any], record: dict[str, Any]) -> None:
        """Writes the output of an item and its line; both are in their files when this returns."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._written)
        done: asyncio.Future[None] = loop.create_future()
        self._outputs.append((item_id, msgspec.json.encode({"item_id": item_id, **plain})))
        self._records.append(msgspec.json.encode(record))
        self._waiting.append(done)
        await done

    def _written(self) -> None:
        outputs, records, waiting = self._outputs, self._records, self._waiting
        self._outputs, self._records, self._waiting = [], [], []
        error: OSError | None = None
        try:
            self._kept.put_all(outputs)
            self._log.extend(records)
        except OSError as raised:
            error = raised
        for done in waiting:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
