"""The store as a folder of files, taken while others work, and back to a place where nothing is.

In the folder a store lies as it does anywhere: the file, and beside it what belongs to it.
"""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Final

from tsuzuki import privacy, wholefile
from tsuzuki.backends import disk, manifest
from tsuzuki.backends.manifest import Manifest
from tsuzuki.backends.sqlite import wheels
from tsuzuki.backends.sqlite.blobs import PART, Blobs
from tsuzuki.backends.sqlite.faults import fault, file_fault
from tsuzuki.backends.sqlite.file import connect, copy_all, inspect
from tsuzuki.backends.sqlite.migrations import NEWEST, version
from tsuzuki.backends.sqlite.queries import SQL
from tsuzuki.backends.sqlite.rows import text
from tsuzuki.backends.sqlite.writer import transact
from tsuzuki.errors import NewerStore, NotAStore, PlaceTaken, StoreUnavailable

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None

AT_ONCE: Final = 16
"""How many files are copied at the same time."""
_WRITING: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY})
"""What only whoever writes is told."""
FILE: Final = "tsuzuki.db"
"""What the file is called in a backup, whatever it was called before."""


def backup(path: Path, folder: Path, taken_at: str) -> Manifest:
    """Copies a store into a folder while others work; blocks."""
    path = path.expanduser().resolve()
    if not path.exists():
        raise StoreUnavailable(f"there is no store at {path}; check the address")
    inspect(path)
    with _faults(path, folder):
        counts, schema = _copied(path, folder / FILE)
        for beside in _beside(path):
            _copy_tree(beside, folder / f"{FILE}{beside.name.removeprefix(path.name)}")
        lacking = [*_drop_purged(path, folder / FILE), *_drop_deleted(path, folder / FILE)]
        _drop_strangers(folder / FILE)
        return Manifest(
            kind=manifest.SQLITE,
            store=f"sqlite:{path}",
            taken_at=taken_at,
            version=schema,
            pieces=tuple(manifest.piece(folder, name) for name in _names(folder)),
            counts=counts,
            lacking=tuple(lacking),
        )


def _copied(path: Path, target: Path) -> tuple[dict[str, int], int]:
    """Copies the file in one read transaction, which holds up nobody; gives what it has and its schema."""
    with contextlib.closing(connect(path)) as source, contextlib.closing(sqlite3.connect(target)) as copy:
        copy_all(source, copy)
        runs, _, facts = copy.execute(SQL["totals"]).fetchall()[0]
        found = [row[0] for row in copy.execute("PRAGMA quick_check(1)").fetchall()]
        if found != ["ok"]:
            raise NotAStore(f"{path} is damaged ({found[0]}), and so would be its backup; tsuzuki doctor tells more")
        return {"runs": runs, "facts": facts}, version(copy)


def _drop_purged(path: Path, copy: Path) -> list[str]:
    """Removes from the copy the runs that were purged while their large values were being copied.

    Gives those whose large values the store itself has lost.
    """
    with contextlib.closing(connect(path)) as live, contextlib.closing(_opened(copy)) as copied:
        blobs = Blobs(copy)
        lacking = sorted({run for run, blob in copied.execute(SQL["references"]) if not blobs.has(run, blob)})
        known = {row[0] for row in live.execute(SQL["known_runs"], (text(lacking),)).fetchall()}
        purged = [(run,) for run in lacking if run not in known]
        if purged:
            transact(copied, lambda: copied.executemany(SQL["forget_run"], purged))
        return [f"large values of run {run}" for run in lacking if run in known]


def _drop_deleted(path: Path, copy: Path) -> list[str]:
    """Removes from the copy the wheels that were deleted while wheels were being copied; gives those that are lost."""
    folder = wheels.folder_of(copy)
    with contextlib.closing(connect(path)) as live, contextlib.closing(_opened(copy)) as copied:
        present = wheels.recorded(live)
        lacking = {
            name: each for name, each in wheels.recorded(copied).items() if not wheels.file_of(folder, each).exists()
        }
        deleted = [(wheels.KIND, name) for name, each in lacking.items() if present.get(name) != each]
        if deleted:
            transact(copied, lambda: copied.executemany(SQL["drop_record"], deleted))
        return [f"the wheel {name}" for name, each in lacking.items() if present.get(name) == each]


def _drop_strangers(copy: Path) -> None:
    """Removes large values of runs that came after the file was copied, or have been purged."""
    folder = Blobs(copy).folder
    with contextlib.closing(_opened(copy)) as copied:
        present = [each.name for each in folder.glob("*")]
        known = {row[0] for row in copied.execute(SQL["known_runs"], (text(present),)).fetchall()}
    for name in present:
        if name not in known:
            shutil.rmtree(folder / name)


def restore(folder: Path, path: Path) -> Manifest:
    """Puts a store where nothing is; blocks. All of it, or nothing."""
    path = path.expanduser().resolve()
    made = manifest.read(folder, manifest.SQLITE)
    if made.version > NEWEST:
        raise NewerStore(
            f"{folder} was made by a newer Tsuzuki (its schema is {made.version}, this one knows {NEWEST}); "
            "upgrade tsuzuki"
        )
    manifest.refuse_flawed(folder, made)
    try:
        privacy.make_folder(path.parent)
        with _alone(path):
            _refuse_taken(path)
            with _undone(path), _faults(path, path):
                _clear_parts(path)
                _put(folder, path, made)
    except OSError as error:
        raise file_fault(error, path) from error
    return made


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keeps other restores out of the folder: each would take the parts of the other for those of one cut off."""
    if fcntl is None:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaceTaken(f"another restore into {path.parent} is under way; wait until it has ended") from None
        yield
    finally:
        os.close(folder)


def _refuse_taken(path: Path) -> None:
    # A log that an old file has left behind would be merged into the new one.
    logs = [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")]
    taken = [each for each in (path, *logs) if each.exists()] + list(_beside(path))
    if taken:
        raise PlaceTaken(f"{taken[0]} is there already; restore to another place, or move it away first")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _clear_parts(path: Path) -> None:
    """Removes what a restore has not brought to its end, this one or one that was cut off."""
    for each in path.parent.glob(f"{path.name}.part*"):
        disk.remove(each)


def _put(folder: Path, path: Path, made: Manifest) -> None:
    """Copies everything under names that no store has, and then gives it its own."""
    part = _part(path)
    targets = {each.name: path.parent / f"{part.name}{each.name.removeprefix(FILE)}" for each in made.pieces}
    privacy.make_file(part)
    for beside in sorted(
        {path.parent / target.relative_to(path.parent).parts[0] for target in targets.values()} - {part}
    ):
        privacy.make_folder(beside)
    _copy_all([(folder / name, target) for name, target in targets.items()])
    with contextlib.closing(_opened(part)) as connection:
        transact(connection, lambda: connection.execute(SQL["disown_workers"]))
    for beside in list(_beside(part)):
        beside.replace(path.parent / f"{path.name}{beside.name.removeprefix(part.name)}")
    wholefile.sync_folder(path.parent)
    wholefile.name(part, path)  # the file comes last: before this line there is no store


@contextlib.contextmanager
def _undone(path: Path) -> Iterator[None]:
    """Removes what was put there if it does not become whole; nothing was there before."""
    try:
        yield
    except BaseException:
        for beside in _beside(path):
            shutil.rmtree(beside, ignore_errors=True)
        _clear_parts(path)
        raise


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _beside(path: Path) -> Iterator[Path]:
    """Gives the folders that belong to a store."""
    yield from sorted(each for each in path.parent.glob(f"{path.name}-*") if each.is_dir())


def _names(folder: Path) -> list[str]:
    found = (each for each in folder.glob(f"{FILE}*") for each in (each, *each.rglob("*")) if each.is_file())
    return sorted(each.relative_to(folder).as_posix() for each in found)


def _copy_tree(source: Path, target: Path) -> None:
    files = [each for each in sorted(source.rglob("*")) if each.is_file() and not _unfinished(each)]
    _copy_all([(each, target / each.relative_to(source)) for each in files], gone=True)


def _unfinished(path: Path) -> bool:
    """Tells whether somebody is just writing a file, or was when he died."""
    return path.name.startswith(PART) or path.suffix == ".part"


def _copy_all(pairs: list[tuple[Path, Path]], *, gone: bool = False) -> None:
    """Copies files, several at once: a disk syncs many files in the time that it needs for one."""
    for folder in sorted({target.parent for _, target in pairs}):
        folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tsuzuki-copy") as copying:
        for _ in copying.map(lambda pair: _copy(*pair, gone=gone), pairs):
            pass


def _copy(source: Path, target: Path, *, gone: bool) -> None:
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:  # removed meanwhile
        if not gone:
            raise
        return
    wholefile.sync_file(target)


@contextlib.contextmanager
def _faults(source: Path, target: Path) -> Iterator[None]:
    """Says of which of the two an error is: what cannot be written is the target."""
    try:
        yield
    except sqlite3.Error as error:
        writing = getattr(error, "sqlite_errorcode", 0) & 0xFF in _WRITING
        raise fault(error, target if writing else source) from error
