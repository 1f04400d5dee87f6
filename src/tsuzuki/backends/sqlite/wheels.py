"""Wheels beside the file: each in a file of its own, written aside and synced before the record that refers to it."""

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from tsuzuki import privacy, settings, wholefile
from tsuzuki.backends import disk
from tsuzuki.backends.shelf import Admit, Wheel, WheelEvent, key_since
from tsuzuki.backends.sqlite.blobs import ABANDONED, PART
from tsuzuki.backends.sqlite.faults import file_fault
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import Columns
from tsuzuki.backends.sqlite.writer import Transaction
from tsuzuki.errors import Conflict
from tsuzuki.wheelerrors import WheelNotFound

Answer = TypeVar("Answer")

KIND: Final = "wheel"
EVENT: Final = "wheel-event"
"""The kinds of the records that tell of wheels, and of what happened to them."""
PIECE: Final = 1 << 20
_MILLISECOND: Final = 0.001

_wheel: Final = msgspec.json.Decoder(Wheel).decode
_event: Final = msgspec.json.Decoder(WheelEvent).decode


class SqliteWheels:
    """The wheels of a store in a file."""

    def __init__(self, store: Path, rows: Callable[..., list[Columns]], write: Callable[..., Awaitable[Any]]) -> None:
        self.folder = folder_of(store)
        self._rows, self._write = rows, write

    @property
    def bucket(self) -> str:
        return settings.wheel_bucket()

    async def put(self, wheel: Wheel, pieces: AsyncIterable[bytes], admit: Admit, event: WheelEvent) -> Wheel:
        wheel = replace(wheel, nuid=uuid.uuid4().hex)
        path = self._path(wheel)
        part = self.folder / f"{PART}{wheel.nuid}"

        def keep(transaction: Transaction) -> tuple[Wheel, Wheel | None]:
            before = {kept.name: kept for kept in _wheels(transaction)}
            admit(list(before.values()))
            placed = replace(wheel, modified=transaction.now)
            transaction.execute(SQL["put_record"], (KIND, wheel.name, msgspec.json.encode(placed)))
            _tell(transaction, event, placed)
            return placed, before.get(wheel.name)

        try:
            await self._write_aside(part, path, pieces)
        finally:
            part.unlink(missing_ok=True)
        # A crash here, or whoever does not wait for the answer, leaves a file without a record, which `sweep` finds.
        try:
            placed, replaced = await self._write(keep)
        except Conflict:  # nothing else says for certain that there is no record of it
            path.unlink(missing_ok=True)
            raise
        if replaced is not None:
            self._path(replaced).unlink(missing_ok=True)
        kept: Wheel = placed
        return kept

    async def _write_aside(self, part: Path, path: Path, pieces: AsyncIterable[bytes]) -> None:
        await _on_disk(path, _make, self.folder)
        with await _on_disk(path, partial(part.open, "wb")) as file:
            async for piece in pieces:
                await _on_disk(path, file.write, piece)
            await _on_disk(path, wholefile.sync, file)
        await _on_disk(path, wholefile.name, part, path)

    async def all(self) -> list[Wheel]:
        return [_wheel(body) for _, body in self._rows("records", KIND)]

    async def get(self, name: str) -> Wheel | None:
        rows = self._rows("record", KIND, name)
        return _wheel(rows[0][0]) if rows else None

    async def read(self, wheel: Wheel) -> AsyncIterator[bytes]:
        path = self._path(wheel)
        try:
            with await asyncio.to_thread(path.open, "rb") as file:
                while piece := await asyncio.to_thread(file.read, PIECE):
                    yield piece
        except FileNotFoundError:
            raise WheelNotFound from None
        except OSError as error:
            raise file_fault(error, path) from error

    async def remove(self, name: str, event: WheelEvent) -> Wheel | None:
        def remove(transaction: Transaction) -> Wheel | None:
            found = {wheel.name: wheel for wheel in _wheels(transaction)}.get(name)
            if found is not None:
                transaction.execute(SQL["drop_record"], (KIND, name))
                _tell(transaction, event, found)
            return found

        gone: Wheel | None = await self._write(remove)
        if gone is not None:  # a crash before this line leaves a file without a record
            self._path(gone).unlink(missing_ok=True)
        return gone

    async def events(
        self, *, since: float, limit: int, wheel: str | None = None, action: str | None = None
    ) -> list[WheelEvent]:
        found = (_event(body) for _, body in reversed(self._rows("records_from", EVENT, key_since(since))))
        return [e for e in found if wheel in (None, e.wheel) and action in (None, e.action)][:limit]

    async def forget_events(self, before: float) -> None:
        values = (EVENT, key_since(before))
        await self._write(lambda transaction: transaction.execute(SQL["drop_records_before"], values))

    async def news(self) -> str:
        rows = self._rows("last_record", EVENT)
        return rows[0][0] if rows else ""

    def _path(self, wheel: Wheel) -> Path:
        return file_of(self.folder, wheel)


async def _on_disk(path: Path, do: Callable[..., Answer], *values: Any) -> Answer:
    """Does something with a file beside the loop; what goes wrong is the store's fault, not the uploader's."""
    try:
        return await asyncio.to_thread(do, *values)
    except OSError as error:
        raise file_fault(error, path) from error


def folder_of(store: Path) -> Path:
    """Gives the folder of the wheels of a store."""
    return store.with_name(f"{store.name}-wheels")


def file_of(folder: Path, wheel: Wheel) -> Path:
    """Gives the file of a wheel in the folder of a store."""
    return folder / f"{wheel.nuid}.whl"


def recorded(connection: sqlite3.Connection) -> dict[str, Wheel]:
    """Gives the wheels that a store has by name, whoever has opened it."""
    return {name: _wheel(body) for name, body in connection.execute(SQL["records"], (KIND,)).fetchall()}


def sweep(folder: Path, known: Callable[[], list[bytes]], now: float) -> int:
    """Removes files that no record refers to and no upload is writing; gives how many."""
    files = [path for path in folder.glob("*") if disk.age(path, now) > ABANDONED]
    nuids = {_wheel(body).nuid for body in known()}
    unknown = [path for path in files if path.name.startswith(PART) or path.stem not in nuids]
    for path in unknown:
        path.unlink(missing_ok=True)
    return len(unknown)


def _wheels(transaction: Transaction) -> list[Wheel]:
    return [_wheel(body) for _, body in transaction.execute(SQL["records"], (KIND,)).fetchall()]


def _tell(transaction: Transaction, event: WheelEvent, wheel: Wheel) -> None:
    """Writes an event; each is later than the one before, so that the last one tells whether there was news."""
    last = transaction.execute(SQL["last_record"], (EVENT,)).fetchall()
    after = int(last[0][0].partition("_")[0]) * _MILLISECOND + 1.5 * _MILLISECOND if last else 0.0
    told = event.of(wheel, max(transaction.now, after))
    transaction.execute(SQL["put_record"], (EVENT, told.key, msgspec.json.encode(told)))


def _make(folder: Path) -> None:
    if not folder.is_dir():
        privacy.make_folder(folder)
        wholefile.sync_folder(folder.parent)
