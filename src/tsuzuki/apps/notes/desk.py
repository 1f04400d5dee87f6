"""What one can do with sessions: import, resume, retry, cancel, look, trace, clean.

Commands and routes call only these.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from tsuzuki import Run, Runs, Status, llm
from tsuzuki.apps.abandoned import abandoned
from tsuzuki.apps.notes import flows, looking, sources
from tsuzuki.apps.notes.chunking import SIZE
from tsuzuki.apps.notes.extracting import completed, cut_from_here_on, items_of
from tsuzuki.apps.notes.mending import mended
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.refusals import BatchOpen, NothingFailed, SessionBusy
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.sources.conversation import Unreadable
from tsuzuki.apps.notes.stages import FAILED_ONLY
from tsuzuki.apps.notes.times import CLOCK
from tsuzuki.apps.notes.uploads import Uploads
from tsuzuki.backends import Query
from tsuzuki.errors import BadUsage, Conflict, KeyHeld, RunHeld, RunNotFound

Submit = Callable[..., Awaitable[Run]]
CANCEL_WAIT: Final = 3.0
"""How long a cancel is waited for before the answer says how things stand (seconds)."""
SMALLEST_CHUNK: Final = 1000
STRATEGIES: Final = ("sync", "batch", "auto")


@dataclass(frozen=True, slots=True)
class Asked:
    """What an import is asked for."""

    export: Path
    vault: Path | None
    """Where the notes go; None: into the session itself."""
    provider: str = ""
    llm: str = ""
    base_url: str = ""
    model: str = ""
    translate: str = ""
    chunk: bool = False
    chunk_size: int = SIZE
    concurrency: int = 0
    strategy: str = "sync"
    """How a model is asked: sync (directly), batch (the provider's batches), auto (batch where there are some)."""
    failure_threshold: float | None = None
    """The share of failures, in percent, above which the import stops."""


@dataclass(frozen=True, slots=True)
class Started:
    """A session that is being worked on."""

    session_id: str
    run: Run
    resumed: bool = False


@dataclass(slots=True)
class Preview:
    """What an import would do."""

    provider: str
    items: int = 0
    chunks: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """How a session stands."""

    __pydantic_config__: ClassVar[dict[str, Any]] = looking.DESCRIBED

    session_id: str
    """The id of the session: the moment when it was made."""
    created_at: str
    """When it was made (UTC, ISO 8601)."""
    provider: str
    """Whose export it is: `chatgpt`, `claude`, `jsonl` or `markdown`."""
    source: str
    """The name of the export."""
    vault: str
    """The path of the folder into which the notes go."""
    status: str
    """How it stands: `PENDING`, `IN_PROGRESS`, `COMPLETED`, `PARTIAL`, `FAILED` or `CRASHED`."""
    success_count: int
    """How many items are done."""
    error_count: int
    """How many have failed and were not done since."""
    skipped_count: int
    """How many are passed over: empty, or too long."""
    total_count: int
    """How many items the export has."""
    pending_count: int
    """How many nobody has come to yet."""
    retryable_count: int
    """How many of those that failed can be tried again; the others cannot be read from the export."""
    run_id: str | None
    """The id of its last run; null where none is known."""
    run_number: int | None
    """The number of that run; null where none is known."""
    error: str | None
    """What the work on it failed of; null where it did not fail."""
    cost: float | None
    """What its notes have cost (US dollars); null where no price is known."""
    active: bool
    """Whether its last run has not ended."""


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

    # Starting

    async def start(self, asked: Asked, *, limit: int = 0, session_dir: Path | None = None) -> Started:
        """Makes a session of an export, and begins to work on it; what cannot be read makes none."""
        provider = await asyncio.to_thread(sources.recognized, asked.export, asked.provider)
        options = await self._options(asked)
        session = await asyncio.to_thread(
            self.sessions.create, asked.export, provider, asked.vault, options, session_dir
        )
        return await self._new(session, limit=limit)

    async def _options(self, asked: Asked) -> dict[str, Any]:
        if asked.chunk_size < SMALLEST_CHUNK:
            raise BadUsage(f"a chunk has at least {SMALLEST_CHUNK} characters, not {asked.chunk_size}")
        at = await reached(llm.Address(asked.llm, asked.base_url, asked.model))
        if asked.strategy not in STRATEGIES:
            raise BadUsage(f"a strategy is one of {', '.join(STRATEGIES)}, not {asked.strategy!r}")
        if asked.strategy == "batch" and not at["batches"]:
            raise BadUsage(f"{at['provider']} has no batches: ask directly (sync), or let it be found out (auto)")
        return {
            **at,
            "strategy": asked.strategy,
            "translate": asked.translate,
            "chunk": asked.chunk,
            "chunk_size": asked.chunk_size,
            "concurrency": asked.concurrency,
            "failure_threshold": asked.failure_threshold,
        }

    @staticmethod
    def preview(asked: Asked) -> Preview:
        """Says what an import would do; nothing is changed."""
        told = Preview(sources.recognized(asked.export, asked.provider))
        for found in sources.conversations(asked.export, told.provider):
            if isinstance(found, Unreadable):
                told.unreadable += 1
                continue
            for item in items_of(found, told.provider, chunk=asked.chunk, size=asked.chunk_size):
                reason = item.metadata.get("skipped_reason")
                if reason:
                    told.skipped[reason] = told.skipped.get(reason, 0) + 1
                else:
                    told.items += 1
                    told.chunks += item.is_chunk
                    told.characters += len(item.content or "")
        return told

    async def resume(self, session: Session, *, limit: int = 0, only: str = "", chunk: bool = False) -> Started:
        """Goes on with a session: with its last run where that was cut off, else with a new one.

        With `chunk` long conversations that were passed over so far are cut from here on.
        """
        with session.held():  # somebody else who works on it, with whatever database, is told of at once
            await asyncio.to_thread(_ready, session)
        last = await self._last(session.session_id)
        if last is not None and not last.status.terminal and not await self._abandoned(last):
            raise SessionBusy
        if chunk and last is not None and await llm.has_open_batches(self._runs, last):
            raise BatchOpen  # with other pieces it would be another batch
        if chunk:
            await asyncio.to_thread(cut_from_here_on, session)
        await mended(self._runs, session)
        session.change(since=session.stage_log.stat().st_size if session.stage_log.exists() else 0)
        if last is not None and (went_on := await self._gone_on(last, limit, only)) is not None:
            return Started(session.session_id, went_on, resumed=True)
        return await self._new(session, limit=limit, only=only)

    async def ask_elsewhere(self, session: Session, address: dict[str, Any]) -> None:
        """Has another model asked from here on; not while a batch of the one before is to be collected."""
        options = {**session.options, **address}
        if options == session.options:
            return
        last = await self._last(session.session_id)
        if last is not None and await llm.has_open_batches(self._runs, last):
            raise BatchOpen
        session.change(options=options)

    async def retry(self, session: Session, *, limit: int = 0) -> Started:
        """Tries exactly those items again that failed."""
        await asyncio.to_thread(self.failed_in, session)
        return await self.resume(session, limit=limit, only=FAILED_ONLY)

    @staticmethod
    def failed_in(session: Session) -> None:
        """Refuses a session in which nothing failed that could be tried again."""
        failed = looking.failures(session.stage_log)
        if not failed:
            raise NothingFailed
        if not any(looking.retryable(record) for record in failed.values()):
            raise NothingFailed(
                "失敗した会話はエクスポートから読み取れません。再試行しても変わりません / what failed cannot be read "
                "from the export: to try it again changes nothing. A new export does."
            )

    async def _new(self, session: Session, *, limit: int = 0, only: str = "") -> Started:
        session_id = session.session_id
        try:
            run = await self._submit(flows.import_notes, {"session_id": session_id, "limit": limit, "only": only})
        except KeyHeld:
            raise SessionBusy from None
        return Started(session_id, run)

    async def _gone_on(self, last: Run, limit: int, only: str) -> Run | None:
        """Lets the last run go on where it was cut off and is the run that is asked for; ends it where it is not."""
        if last.status is Status.COMPLETED:
            return None
        params = msgspec.json.decode(bytes(last.params))
        same = (params.get("limit", 0), params.get("only", "")) == (limit, only)
        if not same and await llm.has_open_batches(self._runs, last):
            if limit or only:
                raise BatchOpen
            same = True  # its batch is paid for: it is collected as it was asked for, and the next resume does the rest
        if same and (last.private or not self._here):
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
        """Tells whether a run was left behind; who would carry it out here need not wait for another to claim it."""
        return await abandoned(self._runs, row, patient=not self._here)

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
        about, state = session.about, session.state()
        last = await self._last(about["session_id"])
        active = last is not None and not last.status.terminal and not await self._abandoned(last)
        counts, retryable, cost = await asyncio.to_thread(looking.counted, session)
        error = state.get("error")
        if error is None and last is not None and last.error is not None and last.status is Status.FAILED:
            error = last.error.said
        return Standing(
            session_id=about["session_id"],
            created_at=about["created_at"],
            provider=about["provider"],
            source=about["source"],
            vault=str(session.vault.absolute()),
            status=_status(state, counts, last, active=active).value,
            **asdict(counts),
            pending_count=counts.pending_count,
            retryable_count=retryable,
            run_id=None if last is None else last.id,
            run_number=None if last is None else last.number,
            error=error,
            cost=cost,
            active=active,
        )

    async def every(self) -> list[Standing]:
        """Says how all sessions stand, the newest first; one that is broken hides no other."""
        found = []
        for session in await asyncio.to_thread(self.sessions.all):
            try:
                found.append(await self.standing(session))
            except BadUsage as broken:
                found.append(_broken(session, str(broken)))
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
        told = await asyncio.to_thread(looking.traced, session, item_id)
        text = await asyncio.to_thread(_text, told["output_path"])
        return {"item_id": told["item_id"], "title": told["title"], "path": told["output_path"], "text": text,
                "note": told["note"]}  # fmt: skip

    async def ended(self, run_id: str) -> PhaseStatistics | None:
        """Gives what a run that has completed says of its items."""
        try:
            told = await self._runs.result(run_id)
        except RunNotFound:
            return None
        if not isinstance(told, dict):
            return None
        return PhaseStatistics(told["success"], told["failed"], told["skipped"], told["total"])


async def reached(address: llm.Address) -> dict[str, Any]:
    """Gives who is asked, once it is known that they answer: nobody wants to find out in the morning."""
    provider = llm.opened(address, watched=True)
    try:
        if provider.name != "offline":
            await provider.health()
        return {"provider": provider.name, "base_url": provider.base_url, "model": provider.model,
                "local": provider.capability.local, "batches": provider.capability.batch is not None}  # fmt: skip
    finally:
        await provider.close()


def _broken(session: Session, error: str) -> Standing:
    """Gives what can be said of a session whose files make no sense."""
    name, nothing = session.folder.name, PhaseStatistics()
    return Standing(
        session_id=name, created_at="", provider="", source=name, vault="", status=PhaseStatus.CRASHED.value,
        **asdict(nothing), pending_count=0, retryable_count=0, run_id=None, run_number=None, error=error, cost=None,
        active=False,
    )  # fmt: skip


def _ready(session: Session) -> None:
    """Refuses a session that has neither been extracted nor anything to extract from."""
    if completed(session) is None:
        session.input  # noqa: B018 - it raises where there is none


def _status(state: dict[str, Any], counts: PhaseStatistics, last: Run | None, *, active: bool) -> PhaseStatus:
    """Says how a phase stands: what the engine knows of its run counts most, then what is written down."""
    written = PhaseStatus(state["status"])
    if active:
        return PhaseStatus.IN_PROGRESS if last is not None and last.started_at else PhaseStatus.PENDING
    if last is not None and last.status is Status.FAILED:
        return PhaseStatus.CRASHED
    if written is PhaseStatus.IN_PROGRESS:  # whoever worked on it was killed
        return PhaseStatus.PARTIAL
    if written in (PhaseStatus.PENDING, PhaseStatus.CRASHED):
        return written
    return counts.status


def _text(path: str | None) -> str:
    try:
        return Path(path).read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError):
        return ""
