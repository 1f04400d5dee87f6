"""Answers kept for equal questions, in `llm_cache.db`; off unless it is asked for (`TSUZUKI_LLM_CACHE`).

The key is the provider, its address, the model and the whole question. Errors are never kept.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec

from tsuzuki import settings
from tsuzuki.backends.statements import parse
from tsuzuki.clock import Clock, SystemClock
from tsuzuki.llm.database import Database
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import Question, Reply, digest
from tsuzuki.llm.sharing import Sharing

FILE: Final = "llm_cache.db"
SQL: Final = parse(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Stats:
    """What a cache holds."""

    answers: int
    bytes: int
    hits: int


class Cache:
    """The kept answers; `async with` it."""

    def __init__(self, path: Path | None = None, *, clock: Clock | None = None) -> None:
        self.path = path or settings.data_dir() / FILE
        self._clock: Clock = clock or SystemClock()
        self._database = Database(self.path, Path(__file__).with_name("migrations"), self._clock)

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the file."""
        await self._database.close()

    async def get(self, key: str) -> Reply | None:
        """Gives a kept answer that is not too old."""
        oldest = self._clock.now() - float(settings.value("TSUZUKI_LLM_CACHE_TTL_SEC"))

        def work(db: sqlite3.Connection) -> bytes | None:
            row = db.execute(SQL["get"], (key, oldest)).fetchone()
            if row is not None:
                db.execute(SQL["used"], (self._clock.now(), key))
            return None if row is None else row[0]

        found = await self._database.write(work)
        if found is None:
            return None
        return msgspec.structs.replace(msgspec.json.decode(found, type=Reply), cached=True, cost=0.0)

    async def put(self, key: str, reply: Reply) -> None:
        """Keeps an answer; the ones that were used longest ago make room."""
        if reply.error or reply.cached:
            return
        kept = msgspec.json.encode(reply)
        now, most = self._clock.now(), int(settings.value("TSUZUKI_LLM_CACHE_MAX_BYTES"))
        oldest = now - float(settings.value("TSUZUKI_LLM_CACHE_TTL_SEC"))

        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL["put"], (key, kept, len(kept), now, now))
            db.execute(SQL["expire"], (oldest,))
            while db.execute(SQL["size"]).fetchone()[0] > most:
                db.execute(SQL["evict"])

        await self._database.write(work)

    async def stats(self) -> Stats:
        """Tells what there is."""
        return Stats(*await self._database.write(lambda db: db.execute(SQL["stats"]).fetchone()))

    async def clear(self) -> int:
        """Forgets everything, and tells how much that was."""
        return await self._database.write(lambda db: db.execute(SQL["clear"]).rowcount)


shared_cache: Final[Sharing[Cache]] = Sharing(FILE, Cache)
"""The cache of this process."""


def key_of(provider: Provider, question: Question) -> str:
    """Gives the key of a question: who is asked, where, which model, and everything it says."""
    model = question.model or provider.model
    return digest([provider.name, provider.base_url, model, question])


def wanted() -> bool:
    """Tells whether answers are kept."""
    return bool(settings.value("TSUZUKI_LLM_CACHE"))
