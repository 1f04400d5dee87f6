"""What one can do with sessions: import, resume, retry, cancel, look, trace, clean.

Commands and routes call only these.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import Run, Runs, Status, llm
from tsuzuki.apps.abandoned import abandoned
from tsuzuki.apps.notes import addresses, flows, looking, sources
from tsuzuki.apps.notes.batches import refuse_lost
from tsuzuki.apps.notes.beginning import Beginnings, Once
from tsuzuki.apps.notes.extracting import ask_again, completed, cut_from_here_on
from tsuzuki.apps.notes.mending import mended
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.refusals import (
    OF_THE_EXPORT,
    BatchOpen,
    ImportedAlready,
    NothingFailed,
    SessionBusy,
    VaultEmpty,
    VaultGone,
)
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.stages import FAILED_ONLY
from tsuzuki.apps.notes.standing import Standing, broken, status_of
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.apps.notes.uploads import Uploads
from tsuzuki.apps.notes.wanted import Asked, Ended, Started
from tsuzuki.backends import Query
from tsuzuki.errors import BadUsage, Conflict, KeyHeld, RunHeld, RunNotFound

Submit = Callable[..., Awaitable[Run]]
CANCEL_WAIT: Final = 3.0
"""How long a cancel is waited for before the answer says how things stand (seconds)."""
SMALLEST_CHUNK: Final = 1000
STRATEGIES: Final = ("sync", "batch", "auto")


class Desk:
    """The sessions of a tenant."""

    def __init__(
        self, runs: Runs, submit: Submit, *, tenant: str = "", folder: Path | None = None, here: bool = False
    ) -> None:
        self._runs = runs
        self._submit = submit
        self._here = here
        """Whether the caller carries out what it starts itself, in its own process."""
        self.tenant = tenant
        self.sessions = Sessions(tenant, folder)
        self.uploads = Uploads(self.sessions.root)
        self._beginnings = Beginnings(self.sessions)

    # Starting

    async def start(
        self, asked: Asked, *, limit: int = 0, session_dir: Path | None = None, once: Once | None = None
    ) -> Started:
        """Makes a session of an export, and begins to work on it; what cannot be read makes none.

        Of requests with one idempotency key only the first does.
        """
        provider = await asyncio.to_thread(sources.recognized, asked.export, asked.provider)
        options = await self._options(asked)
        async with self._beginnings.turn():
            if (before := await self.started_before(once, limit=limit)) is not None:
                return before
            unfinished = await self._unfinished(asked, provider)
            session = await asyncio.to_thread(
                self.sessions.create, asked.export, provider, asked.vault, options, session_dir
            )
            if once is not None:
                await asyncio.to_thread(self._beginnings.keep, once, session)
            return replace(await self._new(session, limit=limit), unfinished=unfinished)

    async def started_before(self, once: Once | None, *, limit: int = 0) -> Started | None:
        """Gives what the first request with an idempotency key has started; it may have been cut off on the way."""
        session = None if once is None else await asyncio.to_thread(self._beginnings.made, once)
        if session is None:
            return None
        last = await self._last(session.session_id)
        return await self._new(session, limit=limit) if last is None else Started(session.session_id, last)

    async def _unfinished(self, asked: Asked, provider: str) -> str:
        """Gives the session that was to make the same notes and has not made all; refuses while one makes them."""
        alike = await asyncio.to_thread(lambda: [*self._beginnings.alike(asked.export, provider, asked.vault)])
        for session in alike:
            with suppress(BadUsage):  # what is broken is nothing to go on with
                stands = await self.standing(session)
                if stands.active:
                    raise ImportedAlready(stands.session_id)
                if stands.pending_count or not stands.total_count:
                    return stands.session_id
        return ""

    async def _options(self, asked: Asked) -> dict[str, Any]:
        if asked.chunk_size < SMALLEST_CHUNK:
            raise BadUsage(
                f"分割は {SMALLEST_CHUNK} 文字以上にしてください（指定：{asked.chunk_size}） / "
                f"a chunk has at least {SMALLEST_CHUNK} characters, not {asked.chunk_size}"
            )
        at = await reached(llm.Address(asked.llm, asked.base_url, asked.model))
        if asked.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise BadUsage(
                f"strategy は {known} のいずれかです（指定：{asked.strategy!r}） / "
                f"a strategy is one of {known}, not {asked.strategy!r}"
            )
        if asked.strategy == "batch" and not at["batches"]:
            raise BadUsage(
                f"{at['provider']} にバッチはありません。sync か auto を指定してください / "
                f"{at['provider']} has no batches: ask directly (sync), or let it be found out (auto)"
            )
        return {
            **at,
            "strategy": asked.strategy,
            "translate": asked.translate,
            "chunk": asked.chunk,
            "chunk_size": asked.chunk_size,
            "concurrency": asked.concurrency,
            "failure_threshold": asked.failure_threshold,
            "again": asked.again,
        }

    async def resume(
        self,
        session: Session,
        *,
        limit: int = 0,
        only: str = "",
        chunk: bool = False,
        vault: Path | None = None,
        address: dict[str, Any] | None = None,
        item: str = "",
    ) -> Started:
        """Goes on with a session: with its last run where that was cut off, else with a new one.

        With `chunk` long conversations that were passed over so far are cut from here on; `vault` and `address` lead it
        to another folder and another model; with `item` the note of that one is made again. Who is refused has changed
        nothing.
        """
        options = {**session.options, **(address or {})}
        with session.begun():
            last = await self._idle(session, vault)
            owes = await self._owes(session, last)
            others = item or chunk or options != session.options
            others = others or ((limit or only) and not _same(last, limit, only))
            if owes and others:
                raise BatchOpen  # what is paid for is collected as it was asked for, before anything else is
            await asyncio.to_thread(_led, session, options, vault, chunk=chunk)
            await mended(self._runs, session)
            if item:
                item = await asyncio.to_thread(ask_again, session, item)
            session.change(since=session.stage_log.stat().st_size if session.stage_log.exists() else 0)
            if last is not None and (went_on := await self._gone_on(last, limit, only, item, owes=owes)) is not None:
                return Started(session.session_id, went_on, resumed=True)
            return await self._new(session, limit=limit, only=only, item=item)

    async def _idle(self, session: Session, vault: Path | None) -> Run | None:
        """Gives the last run of a session; refuses one that somebody works on, or that cannot go on."""
        last = await self._last(session.session_id)
        if last is not None and not last.status.terminal and not await self._abandoned(last):
            raise SessionBusy
        async with session.held_soon():  # somebody else who works on it, with whatever database, is told of, too
            await asyncio.to_thread(_ready, session, vault)
        if last is None:  # whoever has the journal knows it from there
            refuse_lost(await asyncio.to_thread(looking.batch_groups, session))
        return last

    async def _owes(self, session: Session, last: Run | None) -> bool:
        """Tells whether answers are to be collected that are paid for: by the session's own file, or by the journal."""
        if await asyncio.to_thread(looking.owed_batches, session):
            return True
        return last is not None and await llm.has_open_batches(self._runs, last)

    async def retry(self, session: Session, *, limit: int = 0, item: str = "", **elsewhere: Any) -> Started:
        """Tries exactly those items again that failed, in another vault or with another model where one is named.

        With `item` it is that one, named by its id or title, whatever became of it.
        """
        if item:
            return await self.resume(session, item=item, **elsewhere)
        await asyncio.to_thread(self._failed_in, session)
        return await self.resume(session, limit=limit, only=FAILED_ONLY, **elsewhere)

    @staticmethod
    def _failed_in(session: Session) -> None:
        """Refuses a session in which nothing failed that could be tried again."""
        failed = looking.failures(session.checked().stage_log)
        if not failed:
            raise NothingFailed
        if not any(looking.retryable(record) for record in failed.values()):
            raise NothingFailed(
                "失敗した会話はエクスポートから読み取れません。再試行しても変わりません / what failed cannot be read "
                "from the export: to try it again changes nothing. A new export does."
            )

    async def _new(self, session: Session, *, limit: int = 0, only: str = "", item: str = "") -> Started:
        session_id = session.session_id
        params = {"session_id": session_id, "limit": limit, "only": only, "item": item}
        try:
            run = await self._submit(flows.import_notes, params)
        except KeyHeld:
            raise SessionBusy from None
        return Started(session_id, run)

    async def _gone_on(self, last: Run, limit: int, only: str, item: str, *, owes: bool) -> Run | None:
        """Lets the last run go on where it was cut off and is the run that is asked for; ends it where it is not.

        One whose batch is paid for is: it is collected as it was asked for, and the next resume does the rest.
        """
        if last.status is Status.COMPLETED:
            return None
        if (owes or _same(last, limit, only, item)) and (last.private or not self._here):
            if await self._runs.holders.waiter(last) is not None:
                raise SessionBusy
            try:  # what a command began, and is asked to go on over HTTP, is left to the workers
                return await self._runs.resume(last.id, by="notes", share=not self._here)
            except (KeyHeld, RunHeld):
                raise SessionBusy from None
            except Conflict:
                pass  # no worker can take it, or the engine has another opinion: a new run does the same work
        if not last.status.terminal:
            await self._runs.cancel(last.id, by="notes", reason="another run goes on with its session")
        return None

    async def _last(self, session_id: str) -> Run | None:
        found = await self._runs.list(Query(key=flows.KEY.format(session_id), tenant=self.tenant, limit=50))
        return max(found, key=lambda row: row.number, default=None)

    async def _abandoned(self, row: Run) -> bool:
        """Tells whether a run was left behind; who would carry it out here need not wait for another to claim it.

        Nor for workers, where there are none: whoever has stopped them, and types `resume`, does not mean them.
        """
        if await abandoned(self._runs, row, patient=not self._here):
            return True
        holders = self._runs.holders
        return self._here and not row.private and not await holders.lives(row) and not await holders.takers(row)

    async def cancel(self, session: Session) -> Standing:
        """Cancels the run of a session; what was done stays. Where it waited for a batch, that is ended too."""
        last = await self._last(session.session_id)
        if last is not None and not last.status.terminal:
            _, row = await self._runs.cancel(last.id, by="notes")
            if row.status is Status.CANCELLED:  # nobody executed it, so nobody else asks for the end of its batch
                await llm.end_batches(self._runs, row)
            try:
                async with asyncio.timeout(CANCEL_WAIT):
                    await self._runs.wait(last.id)
            except TimeoutError:
                pass  # it is told how things stand; the run ends soon
        return await self.standing(session)

    # Looking

    async def standing(self, session: Session) -> Standing:
        """Says how a session stands, by its log and by what the engine knows of its last run."""
        await asyncio.to_thread(session.checked)
        about, state = session.about, session.state()
        last = await self._last(about["session_id"])
        active = last is not None and not last.status.terminal and not await self._abandoned(last)
        counts, retryable, reasons, cost = await asyncio.to_thread(looking.counted, session)
        failed = last.error if last is not None and last.status is Status.FAILED else None
        error = state.get("error") or (failed.said if failed else None)
        return Standing(
            session_id=about["session_id"],
            created_at=about["created_at"],
            provider=about["provider"],
            source=about["source"],
            vault="" if self.tenant else str(session.vault.absolute()),
            status=status_of(state, counts, last, active=active, held=_held(session, state, active=active)).value,
            **asdict(counts),
            pending_count=counts.pending_count,
            retryable_count=retryable,
            run_id=None if last is None else last.id,
            run_number=None if last is None else last.number,
            error=error,
            cost=cost,
            active=active,
            owed_batches=await asyncio.to_thread(looking.owed_batches, session),
            export_unreadable=state.get("error_type") in OF_THE_EXPORT,
            skipped_reasons=reasons,
        )

    async def every(self) -> list[Standing]:
        """Says how all sessions stand, the newest first; one that is broken hides no other."""
        found = []
        for session in await asyncio.to_thread(self.sessions.all):
            try:
                found.append(await self.standing(session))
            except BadUsage as error:
                found.append(broken(session, str(error)))
        return found

    async def removable(self, days: float) -> list[Session]:
        """Gives the sessions that are older than so many days, and that nobody works on."""
        before = (datetime.fromtimestamp(CLOCK.now(), UTC) - timedelta(days=days)).isoformat()
        found = []
        for session in self.sessions.all():
            with suppress(BadUsage):  # what is broken says nothing of its age
                last = await self._last(session.session_id)
                busy = last is not None and not last.status.terminal and not await self._abandoned(last)
                if str(session.about["created_at"]) <= before and not busy:
                    found.append(session)
        return found

    async def note(self, session: Session, item_id: str) -> dict[str, Any]:
        """Gives a note as it stands in the vault, or as it was made."""
        told = await asyncio.to_thread(looking.traced, session.checked(), item_id)
        text = await asyncio.to_thread(_text, told["output_path"])
        told = self.shown(told)
        return {"item_id": told["item_id"], "title": told["title"], "path": told["output_path"], "text": text,
                "note": told["note"]}  # fmt: skip

    def shown(self, traced: dict[str, Any]) -> dict[str, Any]:
        """Gives what happened to an item as its caller may see it: who has a key learns no folder of this machine."""
        path = traced["output_path"]
        return {**traced, "output_path": Path(path).name} if self.tenant and path else traced

    async def ended(self, run_id: str) -> Ended | None:
        """Gives what a run that has completed says of its items."""
        try:
            told = await self._runs.result(run_id)
        except RunNotFound:
            return None
        if not isinstance(told, dict):
            return None
        counts = PhaseStatistics(told["success"], told["failed"], told["skipped"], told["total"])
        return Ended(counts, PhaseStatus(told["status"]))


def _held(session: Session, state: dict[str, Any], *, active: bool) -> bool:
    """Tells whether somebody works on a session whom this store knows nothing of."""
    return not active and state["status"] == PhaseStatus.IN_PROGRESS.value and session.worked_on


async def reached(address: llm.Address) -> dict[str, Any]:
    """Gives who is asked, once it is known that they answer: nobody wants to find out in the morning."""
    provider = addresses.opened(address)
    try:
        if provider.name != "offline":
            await provider.health()
        return {"provider": provider.name, "base_url": provider.base_url, "model": provider.model,
                "local": provider.capability.local, "batches": provider.capability.batch is not None}  # fmt: skip
    finally:
        await provider.close()


def _same(last: Run | None, limit: int, only: str, item: str = "") -> bool:
    """Tells whether a run was asked for the same."""
    params = {} if last is None else msgspec.json.decode(bytes(last.params))
    return last is not None and (
        params.get("limit", 0), params.get("only", ""), params.get("item", "")
    ) == (limit, only, item)  # fmt: skip


def _ready(session: Session, vault: Path | None) -> None:
    """Refuses a session that has neither been extracted nor anything to extract from, or whose notes are gone."""
    if completed(session) is None and not session.may_be_mended:
        session.input  # noqa: B018 - it raises where there is none
    if vault is not None:  # another one takes its place
        return
    if session.lost_its_vault:
        raise VaultGone(session.vault)
    if session.found_its_vault_empty:
        raise VaultEmpty(session.vault)


def _led(session: Session, options: dict[str, Any], vault: Path | None, *, chunk: bool) -> None:
    """Leads a session to where it is to go from here on."""
    if session.may_be_mended:
        session.know_input_again()
    if vault is not None:
        session.lead_to(vault)
    if options != session.options:
        session.change(options=options)
    if chunk:
        cut_from_here_on(session)


def _text(path: str | None) -> str:
    try:
        return Path(path).read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError):
        return ""
