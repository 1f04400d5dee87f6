"""Tokens: in the environment, or in a file that only its owner can read; never in the database, never shown."""

import json
import threading
from pathlib import Path
from typing import Final
from uuid import uuid4

from tsuzuki import privacy, settings, wholefile
from tsuzuki.apps.commits.records import Connection
from tsuzuki.errors import BadUsage, StoreUnavailable

FILE: Final = "commits-tokens.json"
KEPT, SET, NONE = "file", "environment", "none"
"""Where the token of a connection is."""
_TURN: Final = threading.Lock()
"""Who keeps a token writes all of them: two at once would lose one."""


def check_token(token: str | None) -> None:
    """Refuses what no server gives out and no request can carry: it was mistyped or pasted with something else."""
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise BadUsage(
            "トークンに空白や使えない文字が含まれています。コピーし直してください / "
            "the token has blanks or signs in it that no token has: copy it again"
        )


class Tokens:
    """The tokens beside a ledger."""

    def __init__(self, folder: Path, *, tenant: str) -> None:
        self._file = folder / FILE
        self._tenant = tenant

    def source_of(self, token: str | None, address: str) -> str:
        """Says where the token of a new connection is: in the file, in the environment, or nowhere."""
        return KEPT if token else SET if self._environment(address) else NONE

    def of(self, connection: Connection) -> str | None:
        """Gives the token of a connection, where it has one."""
        if connection.token_from == KEPT:
            return self.kept(connection)
        return self._environment(connection.address) if connection.token_from == SET else None

    def kept(self, connection: Connection) -> str | None:
        """Gives the token that is kept in the file."""
        return self._read().get(str(connection.connection_id))

    def missing(self, connection: Connection) -> bool:
        """Tells whether a connection had a token that is nowhere to be found now."""
        return connection.token_from != NONE and self.of(connection) is None

    def keep(self, connection: Connection, token: str | None) -> None:
        """Keeps the token of a connection, or forgets it; a file that cannot be read is left as it is."""
        with _TURN:
            try:
                kept = self._all()
                kept.pop(str(connection.connection_id), None)
                if token:
                    kept[str(connection.connection_id)] = token
                elif not self._file.exists():
                    return
                self._write(kept)
            except OSError as error:
                raise StoreUnavailable(f"the token cannot be kept in {FILE}: {error.strerror}") from error
            except ValueError:  # its words may tell a token
                raise StoreUnavailable(f"{FILE} is broken, and other tokens are in it: mend or remove it") from None

    def _environment(self, address: str) -> str | None:
        """Gives the operator's token: to the operator's server, and to nobody who has a tenant."""
        if self._tenant or address.rstrip("/") != str(settings.value("TSUZUKI_GITLAB_URL")).rstrip("/"):
            return None
        settings.refuse_mixed_origins("TSUZUKI_GITLAB_URL", "TSUZUKI_GITLAB_TOKEN")
        token: str | None = settings.value("TSUZUKI_GITLAB_TOKEN")
        return token

    def _read(self) -> dict[str, str]:
        try:
            return self._all()
        except (OSError, ValueError):
            return {}

    def _all(self) -> dict[str, str]:
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        if not isinstance(kept, dict):
            raise ValueError("it is no object")  # noqa: TRY004 - as everything that is wrong with its text
        return {str(name): str(token) for name, token in kept.items()}

    def _write(self, kept: dict[str, str]) -> None:
        """Replaces the file as a whole; it is readable for its owner alone before a byte is in it."""
        privacy.make_folder(self._file.parent)
        aside = self._file.with_name(f"{FILE}.{uuid4().hex}.part")  # other processes may keep tokens too
        wholefile.write(self._file, json.dumps(kept).encode(), mode=0o600, aside=aside)
