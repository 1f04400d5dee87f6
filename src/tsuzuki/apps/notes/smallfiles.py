"""The small files of a session: read, written whole or not at all, and looked at before anybody relies on them."""

import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from tsuzuki import wholefile
from tsuzuki.apps.notes.refusals import InTheWay, SessionNotFound, both
from tsuzuki.apps.notes.room import PASSING
from tsuzuki.errors import BadUsage


def look_at(path: Path, how: int) -> None:
    """Refuses what cannot be opened as a file; where there is nothing, one can be made."""
    try:
        descriptor = os.open(path, how | os.O_NONBLOCK)  # who opens a pipe otherwise waits for its other end
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in PASSING:
            return  # that is the disk's, which says so to whoever writes
        raise InTheWay(path, error) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InTheWay(path)
    finally:
        os.close(descriptor)


def read(path: Path) -> dict[str, Any]:
    """Gives what a file says."""
    try:
        found: dict[str, Any] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        raise SessionNotFound(str(path.parent)) from None
    except OSError as error:
        if error.errno in PASSING:
            raise
        raise InTheWay(path, error) from None
    except msgspec.MsgspecError as error:
        raise broken(path, str(error)) from None
    return found


def broken(path: Path, why: str) -> BadUsage:
    """Says that a file makes no sense."""
    return BadUsage(
        both(
            f"{path} は壊れています（{why}）。コピーから戻すか、直してください",
            f"{path} is broken ({why}): put it back from a copy, or mend it",
        )
    )


def write(path: Path, plain: dict[str, Any]) -> None:
    """Writes a file whole or not at all; two processes that do so at once are not in each other's way."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    wholefile.write(path, msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n", aside=aside)
