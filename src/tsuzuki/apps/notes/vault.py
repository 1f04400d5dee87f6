"""Notes written into the vault: whole or not at all, under names of their own, and nobody's file overwritten."""

import contextlib
import os
import stat
import threading
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from tsuzuki.apps.notes.exchange import exchanged
from tsuzuki.apps.notes.markdown import Note, is_own, rendered, with_properties_of
from tsuzuki.apps.notes.names import candidates
from tsuzuki.errors import StoreUnavailable

_LARGEST: Final = 64 * 1024 * 1024
_SYNCING: Final = 3
"""How many threads wait for the disk beside the one that writes: what is asked for together is done at once."""
_EACH: Final = 8
"""For fewer files than this a thread is not worth starting."""
_BEGIN: Final = getattr(os, "posix_fadvise", None)
"""Says that a file will not be read soon, whereupon the system begins to write it: syncs then find little to do."""


class Sheet(NamedTuple):
    """A note on its way into the vault."""

    stem: str
    item_id: str
    metadata: dict[str, Any]
    note: Note
    created: str
    """The day where that of the conversation is not known."""
    session: str = ""
    """Whose file it is until it has its name."""
    own: tuple[str, ...] = ()
    """Where in the vault notes of the item are: one that nobody has edited is written anew."""
    plain: bool = True
    """Whether it may have the plain name; not where that is taken in another case."""
    whole: str = ""
    """The conversation of which it is a piece, or which its pieces were merged into."""
    pieces: int = 0
    """How many pieces that has."""
    again: bool = False
    """Whether it was asked for although the conversation has not changed."""

    @property
    def named_after(self) -> str:
        """Of whose id a suffix is made: the pieces of a conversation have one in common."""
        return self.whole or self.item_id


def written(vault: Path, sheets: Sequence[Sheet], wanted: Callable[[], bool] = lambda: True) -> list[str | Exception]:
    """Writes notes, each under the first name that is free or its own; gives the names, or what prevented one.

    All are handed to the system before the first is waited for, several are waited for at once, and the folder is
    synced once: they share the disk's work. Names come after all syncs: each sync would write the folder again. A note
    without a name on the disk would be lost, so none counts before that. What is not wanted any more by the time that
    it would get its name gets none.
    """
    folder = f"{vault}{os.sep}"  # thousands of notes: paths as texts cost little
    fresh = [f"{folder}.{sheet.session}-{os.getpid()}-{abs(hash(sheet[:2])):x}.part" for sheet in sheets]
    outcomes: list[str | Exception] = []
    files = _synced([_begun(path, sheet) for path, sheet in zip(fresh, sheets, strict=True)])
    for prevented, path, sheet in zip(files, fresh, sheets, strict=True):
        try:
            _check(prevented)
            outcomes.append(_named(path, folder, sheet) if wanted() else InterruptedError())
        except (FileNotFoundError, PermissionError) as error:
            outcomes.append(_away(vault) or error)
        except Exception as error:  # noqa: BLE001 - that of one note; the others are written all the same
            outcomes.append(error)
        finally:
            with contextlib.suppress(OSError):
                os.remove(path)  # noqa: PTH107 - as above
    _sync_folder(vault)
    return outcomes


def _away(vault: Path) -> StoreUnavailable | None:
    """Gives why no note at all can be written, where the vault itself is what prevents it."""
    if not vault.is_dir():
        return StoreUnavailable(f"the folder {vault} is not there any more: put it back, and it goes on")
    if not os.access(vault, os.W_OK | os.X_OK):
        return StoreUnavailable(f"nothing may be written into the folder {vault}: allow it, and it goes on")
    return None


def sweep(vault: Path, session: str) -> None:
    """Removes what a session that was killed had begun to write; nobody else may be working on it."""
    with contextlib.suppress(OSError):  # nothing is lost where one stays: the next who works on it tries again
        for path in vault.glob(f".{session}-*.part"):
            path.unlink()


def _begun(path: str, sheet: Sheet) -> int | Exception:
    """Writes a new file and lets the system begin with it."""
    try:
        descriptor = _open(path)
    except OSError as error:
        return error
    try:
        _write(descriptor, sheet)
    except Exception as error:  # noqa: BLE001 - raised when its turn comes
        os.close(descriptor)
        return error
    if _BEGIN is not None:
        _BEGIN(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return descriptor


def _synced(files: list[int | Exception]) -> list[Exception | None]:
    """Waits until files are on the disk, and closes them; gives what has prevented it."""
    outcomes: list[Exception | None] = [None] * len(files)

    def wait_for(first: int, step: int) -> None:
        for number in range(first, len(files), step):
            outcomes[number] = _sync(files[number])

    waiting = min(len(files) // _EACH, _SYNCING)
    others = [threading.Thread(target=wait_for, args=(number, waiting + 1)) for number in range(1, waiting + 1)]
    for other in others:
        other.start()
    wait_for(0, waiting + 1)
    for other in others:
        other.join()
    return outcomes


def _sync(file: int | Exception) -> Exception | None:
    if isinstance(file, Exception):
        return file
    try:
        os.fsync(file)
    except OSError as error:
        return error
    finally:
        os.close(file)
    return None


def _check(prevented: Exception | None) -> None:
    if prevented is not None:
        raise prevented


def _named(fresh: str, folder: str, sheet: Sheet) -> str:
    beside, slash, _ = sheet.own[0].rpartition("/") if sheet.own else ("", "", "")
    names = islice(candidates(sheet.stem, sheet.named_after), not sheet.plain, None)
    for name in chain(sheet.own, (f"{beside}{slash}{name}" for name in names)):
        if _placed(fresh, folder + name, sheet):
            return name
    raise StoreUnavailable(
        f"{folder} にはノート {sheet.stem!r} に使える名前が残っていません。ファイルをいくつか移してください / "
        f"every name for the note {sheet.stem!r} is taken in {folder}: move some of these files"
    )


def _open(path: str, flag: int = os.O_TRUNC) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | flag | getattr(os, "O_BINARY", 0), 0o666)


def _write(descriptor: int, sheet: Sheet, properties: str = "") -> None:
    left = memoryview(rendered(sheet, sheet.note, created=sheet.created, properties=properties).encode())
    while left:
        left = left[os.write(descriptor, left) :]


def _placed(fresh: str, place: str, sheet: Sheet) -> bool:
    """Puts a note in its place, unless a file is there that is not its own."""
    try:
        os.link(fresh, place)
        return True
    except FileExistsError:
        pass
    except FileNotFoundError:  # somebody has removed the one or the other
        raise
    except OSError:  # a disk that knows no links
        return _created(Path(place), sheet)
    older = _own(place, sheet)
    return older is not None and _replaced(fresh, place, sheet, older)


def _replaced(fresh: str, place: str, sheet: Sheet, older: str) -> bool:
    """Puts a note in place of an older one of its own; where somebody has edited that meanwhile, theirs comes back."""
    note, properties = with_properties_of(older, sheet.note)
    if properties or note.tags != sheet.note.tags:
        _written_out(_open(fresh), sheet._replace(note=note), properties)
    if not exchanged(fresh, place):
        os.replace(fresh, place)  # noqa: PTH105 - as above
    elif _own(fresh, sheet) is None:
        exchanged(fresh, place)
        return False
    return True


def _created(place: Path, sheet: Sheet) -> bool:
    """Writes a note where it is to be, unless a file is there that is not its own."""
    properties = ""
    try:
        descriptor = _open(str(place), os.O_EXCL)
    except FileExistsError:
        older = _own(str(place), sheet)
        if older is None:
            return False
        note, properties = with_properties_of(older, sheet.note)
        sheet, descriptor = sheet._replace(note=note), _open(str(place))
    try:
        _written_out(descriptor, sheet, properties)
    except BaseException:  # half a note would be taken for somebody's
        place.unlink(missing_ok=True)
        raise
    return True


def _written_out(descriptor: int, sheet: Sheet, properties: str) -> None:
    try:
        _write(descriptor, sheet, properties)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _own(place: str, sheet: Sheet) -> str | None:
    """Return the text of a file that is the sheet's own note, as it was written; None where it is not."""
    text = text_of(place)
    return text if text is not None and is_own(text, sheet.item_id, paid=bool(sheet.note.model)) else None


def text_of(place: str) -> str | None:
    """Return the text of a file, with plain line ends; None where it is not a file of text."""
    try:
        about = os.lstat(place)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
            return None
        with open(place, "rb", buffering=0) as file:  # noqa: PTH123 - many conversations have the same title
            text = file.readall().decode()
        return text.replace("\r\n", "\n") if "\r" in text else text
    except (OSError, UnicodeDecodeError):
        return None


def _sync_folder(vault: Path) -> None:
    with contextlib.suppress(OSError):  # some systems cannot sync a folder
        descriptor = os.open(vault, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
