"""The API keys of a store: create, list, revoke, and whether one holds.

What was found good is remembered for half a second, so that a busy client costs no look into the store per request,
and a revocation, also by another process, counts within a second.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from tsuzuki import tokens
from tsuzuki.backends import API_KEYS, Backend
from tsuzuki.errors import BadUsage
from tsuzuki.tokens import KeyRecord

REMEMBERED: Final = 0.5
"""For how long (seconds) a key that was found good is not looked up again."""
MOST_REMEMBERED: Final = 1000
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""The first sign is a letter or digit: applications keep the files of a tenant in a folder of its name."""


class Keyring:
    """The keys of one store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._good: OrderedDict[bytes, tuple[float, KeyRecord]] = OrderedDict()

    async def create(self, tenant: str, name: str = "", rights: Iterable[str] = ()) -> tuple[str, KeyRecord]:
        """Makes a key of a tenant; its text is given this once and kept nowhere."""
        rights = tuple(rights)
        if unknown := set(rights) - set(tokens.RIGHTS):
            raise BadUsage(f"there is no right {min(unknown)!r}; there are: {', '.join(tokens.RIGHTS)}")
        if not _TENANT.fullmatch(tenant):
            raise BadUsage(f"a tenant has 1 to 64 letters, digits, _, . and -, a letter or digit first; got {tenant!r}")
        text, record = tokens.make(tenant, name, self._backend.clock.now(), rights)
        await self._backend.put_record(API_KEYS, record.id, msgspec.json.encode(record))
        return text, record

    async def list(self) -> list[KeyRecord]:
        """Lists the keys, the oldest first."""
        records = [msgspec.json.decode(body, type=KeyRecord) for _, body in await self._backend.records(API_KEYS)]
        return sorted(records, key=lambda record: (record.created_at, record.id))

    async def revoke(self, key_id: str) -> KeyRecord | None:
        """Lets a key hold no more; None: there is no such key."""
        record = await self._record(key_id)
        if record is None or record.revoked_at is not None:
            return record
        record = replace(record, revoked_at=self._backend.clock.now())
        await self._backend.put_record(API_KEYS, key_id, msgspec.json.encode(record))
        self._good.clear()
        return record

    async def holder(self, text: str) -> KeyRecord | None:
        """Gives whose key this is, if it holds."""
        key_id, mark, now = tokens.id_of(text), tokens.fast_hash(text), self._backend.clock.monotonic()
        if key_id is None:
            return None
        since, known = self._good.get(mark, (0.0, None))
        if known is not None and now - since < REMEMBERED:
            return known
        record = await self._record(key_id)
        if record is None or not tokens.fits(text, record):
            self._good.pop(mark, None)
            return None
        self._good[mark] = (now, record)
        while len(self._good) > MOST_REMEMBERED:
            self._good.popitem(last=False)
        return record

    async def holds(self, key_id: str) -> bool:
        """Tells whether a key holds, as the store has it now."""
        record = await self._record(key_id)
        return record is not None and record.revoked_at is None

    async def _record(self, key_id: str) -> KeyRecord | None:
        if not re.fullmatch(r"[0-9a-f]{12}", key_id):
            return None
        body = await self._backend.record(API_KEYS, key_id)
        return None if body is None else msgspec.json.decode(body, type=KeyRecord)
