"""Imports that are asked for twice: at the same moment, by a request that is sent again, or anew after a crash."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tsuzuki import privacy, wholefile
from tsuzuki.apps.notes.keeping import size_of
from tsuzuki.apps.notes.refusals import KeyReused, SessionNotFound
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.errors import BadUsage

_AGAIN: Final = 0.02
"""How often it is looked whose turn it is (seconds)."""


@dataclass(frozen=True, slots=True)
class Once:
    """A request that may be sent again: its idempotency key, and what it says."""

    key: str
    body: bytes


class Beginnings:
    """What is known of imports that were begun by a tenant."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions, self._root = sessions, sessions.root

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Lets one import begin at a time, so that each sees the one before it; a dead process holds nobody up."""
        privacy.make_folder(self._root)
        descriptor = os.open(self._root.with_name("notes.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _taken(descriptor):  # noqa: ASYNC110 - the lock of a file tells nobody that it is free
                await asyncio.sleep(_AGAIN)
            yield
        finally:
            os.close(descriptor)

    def alike(self, export: Path, provider: str, vault: Path | None) -> Iterator[Session]:
        """Gives the sessions of the same export into the same vault, the newest first."""
        if vault is None:  # each has its own
            return
        of = (provider, str(vault.resolve()), size_of(export, provider))  # whatever it is called: people copy exports
        for session in self._sessions.all():
            with suppress(BadUsage):  # one that is broken is like no other
                about = session.about
                size = about.get("input", {}).get("bytes")
                if of == (about.get("provider"), about.get("vault"), size):
                    yield session

    def made(self, once: Once) -> Session | None:
        """Gives the session that a request has made before; refuses where its key was another request's."""
        try:
            kept = msgspec.json.decode(self._place(once).read_bytes(), type=dict[str, str])
            session = self._sessions.find(kept["session_id"])
        except (FileNotFoundError, msgspec.MsgspecError, KeyError, SessionNotFound):  # never made, or removed since
            return None
        if kept.get("body") != _digest(once.body):
            raise KeyReused(once.key, session.session_id)
        return session

    def keep(self, once: Once, session: Session) -> None:
        """Remembers the session that a request has made."""
        privacy.make_folder(self._root / "once")
        kept = {"session_id": session.session_id, "body": _digest(once.body)}
        wholefile.write(self._place(once), msgspec.json.encode(kept), mode=0o600)

    def _place(self, once: Once) -> Path:
        return self._root / "once" / _digest(once.key.encode())


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
