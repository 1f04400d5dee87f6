"""What one can do with dead letters: list them, look at one, try its run again, drop it."""

from typing import Final

from tsuzuki.backends import DeadLetter
from tsuzuki.errors import LetterNotFound
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs

_PAGE: Final = 500
"""So many letters are looked at together where only those of one tenant are asked for."""


class Letters:
    """The dead letters of a store: runs that failed, for those who look after the system."""

    def __init__(self, runs: Runs) -> None:
        self._runs, self._backend = runs, runs.backend

    async def list(self, *, limit: int = 100, before: str | None = None, tenant: str | None = None) -> list[DeadLetter]:
        """Lists them, the newest first; with `before` those older than that one, with `tenant` its own alone."""
        if tenant is None:
            return await self._backend.dead_letters(limit=limit, before=before)
        found: list[DeadLetter] = []
        while page := await self._backend.dead_letters(limit=_PAGE, before=before):
            found += [letter for letter in page if letter.tenant == tenant]
            before = page[-1].id
            if len(found) >= limit or len(page) < _PAGE:
                break
        return found[:limit]

    async def get(self, letter: str) -> DeadLetter:
        """Gives one."""
        found = await self._backend.dead_letter(letter)
        if found is None:
            raise LetterNotFound(f"dead letter not found: {letter!r}; `tsuzuki dlq list` shows them")
        return found

    async def replay(self, letter: str, *, by: str = "") -> Run:
        """Resumes the run of a letter, and drops the letter: what fails again is a new one."""
        found = await self.get(letter)
        run = await self._runs.resume(found.run_id, by=by)
        # A crash here leaves a letter whose run goes on: replaying it again says that there is nothing to resume.
        await self._backend.drop_letter(letter)
        return run

    async def drop(self, letter: str) -> None:
        """Removes one; its run stays."""
        if not await self._backend.drop_letter(letter):
            await self.get(letter)
