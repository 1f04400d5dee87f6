"""`/api/notes/…`: sessions, how they stand, what failed and why, notes to look at, resume, retry and cancel."""

import asyncio
from collections.abc import Iterator
from typing import IO, Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, File, Header, Query, UploadFile
from fastapi import Path as Named
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki import Run, settings
from tsuzuki.apps.notes import addresses, looking
from tsuzuki.apps.notes.beginning import Once
from tsuzuki.apps.notes.chunking import SIZE
from tsuzuki.apps.notes.desk import SMALLEST_CHUNK, Desk, reached
from tsuzuki.apps.notes.named import path_of, vault_of
from tsuzuki.apps.notes.sessions import Session
from tsuzuki.apps.notes.standing import Standing
from tsuzuki.apps.notes.wanted import Asked, Started
from tsuzuki.errors import BadUsage
from tsuzuki.visits import Visit, visit

_PROBLEM: Final[dict[str, Any]] = {"application/problem+json": {}}
router: Final = APIRouter(responses={404: {"description": "There is no such session", "content": _PROBLEM}})
PIECE: Final = 1 << 20
Limit = Annotated[int, Field(ge=1, le=2**31)]


async def desk(visit: Annotated[Visit, Depends(visit)]) -> Desk:
    """Gives the desk of the caller's tenant; what it starts is carried out by workers."""

    async def submit(flow: Any, params: dict[str, Any]) -> Run:
        return await visit.submit(flow, params, tag=settings.value("TSUZUKI_NOTES_TAG"))

    return Desk(visit.runs, submit, tenant=visit.tenant, folder=visit.data_dir)


AtDesk = Annotated[Desk, Depends(desk)]
_MOMENT: Final = r"^20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|1[0-9]|2[0-8])_([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]$"
"""What the document says of session ids; whether one is a moment is looked at where it is used."""
SessionId = Annotated[
    str, Named(description="A moment such as 20260126_100000.", json_schema_extra={"pattern": _MOMENT})
]
ItemName = Annotated[str, Query(min_length=1, description="Its id, the beginning of its id, or its title.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=256,
        description="The session that the first request with this key has made is given instead of a second one.",
    ),
]
Piece = Annotated[UploadFile, File(description="Some bytes of the export, in a form.")]


class Shape(BaseModel):
    """What a request brings; what is said of each field here is told over HTTP too. A misspelt option is refused:
    who asks for `chunck` would wait a night for notes that are not there. So is a limit that is `true` or `"3"`."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid", strict=True)


class NewImport(Shape):
    """An import, of an upload or of a path; `export` and `vault` are paths on the machine of the gateway."""

    export: str = Field(default="", max_length=4096)
    """The absolute path of the export; empty where it was uploaded. Not with API keys."""
    upload: str = Field(default="", max_length=64)
    """The id of the upload that is the export; empty where a path is named."""
    vault: str = Field(default="", max_length=4096)
    """The absolute path of the folder into which the notes go; empty: they stay with the session, to be downloaded.
    Not with API keys."""
    provider: str = "auto"
    """Whose export it is: `chatgpt`, `claude`, `jsonl` or `markdown`; `auto` finds out."""
    llm: str = ""
    """Who makes the notes; empty: as it is set for the gateway."""
    model: str = ""
    """Which model is asked; empty: as it is set for the gateway."""
    strategy: Literal["sync", "batch", "auto"] = "sync"
    """How the model is asked: `sync` directly, `batch` in the provider's batches (cheaper, within a day), `auto` in
    batches where there are some."""
    translate: str = ""
    """The language into which summaries are translated, such as `ja`; empty: none."""
    chunk: bool = False
    """Whether long conversations are cut into pieces; otherwise they are passed over."""
    chunk_size: int = Field(default=SIZE, ge=SMALLEST_CHUNK, le=2**31)
    """A conversation with more characters is long."""
    concurrency: int = Field(default=0, ge=0, le=256)
    """How many conversations are asked about at once; 0: as it is set."""
    failure_threshold: float | None = Field(default=None, ge=0, le=100)
    """The share of failures, in percent, above which the import stops; null: it never does."""
    again: bool = False
    """Whether notes are also made of conversations that have not changed, or whose notes were deleted."""
    limit: Limit | None = None
    """How many notes are made at most; null: all."""


class Elsewhere(Shape):
    """How to go on: with a limit, at most so many notes are made; from here on elsewhere, where that is named."""

    limit: Limit | None = None
    """How many notes are made at most; null: all."""
    vault: str = Field(default="", max_length=4096)
    """The absolute path of another folder into which notes go from here on; empty: as before. Not with API keys."""
    llm: str = ""
    """Who makes the notes from here on; empty: as before."""
    model: str = ""
    """Which model is asked from here on; empty: as before, or as it is set for the `llm` that is named."""


class TryAgain(Elsewhere):
    """How to try again: what failed, or one item."""

    item: str = Field(default="", max_length=1000)
    """The item whose note is made again, by its id, the beginning of its id, or its title; empty: all that failed."""


class GoOn(Elsewhere):
    """How to go on: as to try again, and with long conversations cut that were passed over."""

    chunk: bool = False
    """Whether long conversations are cut from here on."""


@router.get("/limits", summary="What an import may name and bring")
def limits(desk: AtDesk) -> dict[str, Any]:
    """Tells whether `export` and `vault`, paths on the gateway's machine, are taken, and how large an upload may be."""
    return {"paths": not desk.tenant, "max_upload_bytes": int(settings.value("TSUZUKI_NOTES_MAX_UPLOAD_BYTES"))}


@router.get("/sessions", summary="List sessions")
async def list_sessions(desk: AtDesk) -> list[Standing]:
    """Lists sessions, the newest first."""
    return await desk.every()


@router.post("/sessions", summary="Import an export", status_code=202)
async def start(asked: NewImport, desk: AtDesk, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    """Makes a session and answers at once; workers make the notes. Sent again with its key it makes no other."""
    once = None if idempotency_key is None else Once(idempotency_key, asked.model_dump_json().encode())
    if (before := await desk.started_before(once, limit=asked.limit or 0)) is not None:
        return _told(before)
    _refuse_paths(desk, asked.export, asked.vault)
    if bool(asked.export) == bool(asked.upload):
        raise BadUsage(
            "`export`（パス）か `upload`（アップロードの ID）のどちらか一方を指定してください / "
            "an import is of one thing: say `export`, a path, or `upload`, the id of an upload"
        )
    options = asked.model_dump(exclude={"export", "upload", "vault", "limit"})
    vault = await asyncio.to_thread(vault_of, asked.vault) if asked.vault.strip() else None
    export = path_of(asked.export) if asked.export else await asyncio.to_thread(desk.uploads.file, asked.upload)
    wanted = Asked(export=export, vault=vault, **options)
    started = await desk.start(wanted, limit=asked.limit or 0, once=once)
    if asked.upload:  # the session keeps it
        await asyncio.to_thread(desk.uploads.drop, asked.upload)
    return _told(started)


def _refuse_paths(desk: Desk, *paths: str) -> None:
    """Refuses paths of a caller with a key: they reach whatever this machine can read."""
    if desk.tenant and any(paths):
        raise BadUsage(
            "API キーを使う場合、パスは指定できません。エクスポートはアップロードし、ノートはダウンロードして"
            "ください / with API keys no paths are taken: upload the export, and download the notes"
        )


class NewUpload(Shape):
    """An upload to be."""

    name: str = Field(min_length=1, max_length=200)
    """The name of the file, such as `export.zip`."""


@router.post("/uploads", summary="Begin to upload an export", status_code=201)
def begin_upload(asked: NewUpload, desk: AtDesk) -> dict[str, Any]:
    """Makes room for an export; its pieces follow, and an import names it. A day without a piece ends it."""
    return {"upload_id": desk.uploads.begin(asked.name), "received": 0}


@router.post("/uploads/{upload_id}", summary="Send a piece of an export")
async def add_piece(
    upload_id: str, piece: Piece, desk: AtDesk, offset: Annotated[int, Query(ge=0, le=2**53)] = 0
) -> dict[str, Any]:
    """Takes a piece, a file of a form; `offset` says where it begins. 409 where one before it is missing."""
    sent = await piece.read()
    return {"upload_id": upload_id, "received": await asyncio.to_thread(desk.uploads.add, upload_id, offset, sent)}


@router.get("/uploads/{upload_id}", summary="How far an upload is")
def look_at_upload(upload_id: str, desk: AtDesk) -> dict[str, Any]:
    """Tells how many bytes are there: where to go on after an interruption."""
    return {"upload_id": upload_id, "received": desk.uploads.file(upload_id).stat().st_size}


@router.delete("/uploads/{upload_id}", summary="Remove an upload", status_code=204)
def remove_upload(upload_id: str, desk: AtDesk) -> None:
    """Removes what was sent: one that is refused as an export, or that nobody goes on with."""
    desk.uploads.drop(upload_id)


@router.get("/sessions/{session_id}", summary="How a session stands")
async def look(session_id: SessionId, desk: AtDesk) -> Standing:
    """Tells how a session stands."""
    return await desk.standing(await asyncio.to_thread(desk.sessions.find, session_id))


@router.get("/sessions/{session_id}/failed", summary="What failed, and why")
def failed(session_id: SessionId, desk: AtDesk) -> list[looking.Failed]:
    """Lists the conversations that have failed and were not done since."""
    return looking.failed_items(desk.sessions.find(session_id).checked())


@router.get("/sessions/{session_id}/items", summary="The items of a session")
def items(
    session_id: SessionId,
    desk: AtDesk,
    *,
    state: Annotated[str, Query(pattern="^(|success|failed|skipped|pending)$")] = "",
    reason: Annotated[str, Query(max_length=1000)] = "",
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    q: Annotated[str, Query(max_length=200)] = "",
) -> dict[str, Any]:
    """Lists items with what became of each; `state`, `reason` (such as `too_large`) and `q`, a part of the title or the
    beginning of the id, choose some."""
    session = desk.sessions.find(session_id).checked()
    found = [
        each
        for each in looking.items(session)
        if state in ("", each["state"]) and reason in ("", each["reason"]) and looking.fits(each, q)
    ]
    return {"total": len(found), "items": _with_stages(session, found[offset : offset + limit])}


def _with_stages(session: Session, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Says of items that failed in which stage they did."""
    failed = looking.failures(session.stage_log) if any(each["state"] == "failed" for each in found) else {}
    return [
        {**each, "stage": str(failed[each["item_id"]].get("stage", ""))} if each["item_id"] in failed else each
        for each in found
    ]


@router.get("/sessions/{session_id}/trace", summary="All that happened to one item")
def trace(session_id: SessionId, item: ItemName, desk: AtDesk) -> dict[str, Any]:
    """Tells the records, failures and note of an item, by its id, the beginning of its id, or its title."""
    return desk.shown(looking.traced(desk.sessions.find(session_id).checked(), item))


@router.get("/sessions/{session_id}/note", summary="A note")
async def note(session_id: SessionId, item: ItemName, desk: AtDesk) -> dict[str, Any]:
    """Gives the note of an item as it stands in the vault."""
    return await desk.note(await asyncio.to_thread(desk.sessions.find, session_id), item)


@router.get("/sessions/{session_id}/notes.zip", summary="All notes", response_class=StreamingResponse)
def download(session_id: SessionId, desk: AtDesk) -> StreamingResponse:
    """Gives the notes of a session as a ZIP."""
    session = desk.sessions.find(session_id).checked()
    name = quote(f"{looking.stem_of(str(session.about['source']))}-notes.zip")
    said = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingResponse(_pieces(looking.packed(session)), media_type="application/zip", headers=said)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


@router.post("/sessions/{session_id}/resume", summary="Go on with a session", status_code=202)
async def resume(session_id: SessionId, desk: AtDesk, asked: GoOn | None = None) -> dict[str, Any]:
    """Goes on: what is done is passed over, what failed is tried again."""
    session = await asyncio.to_thread(desk.sessions.find, session_id)
    asked = asked or GoOn()
    elsewhere = await _elsewhere(desk, session, asked)
    return _told(await desk.resume(session, limit=asked.limit or 0, chunk=asked.chunk, **elsewhere))


@router.post("/sessions/{session_id}/retry", summary="Try again what failed", status_code=202)
async def retry(session_id: SessionId, desk: AtDesk, asked: TryAgain | None = None) -> dict[str, Any]:
    """Tries exactly those conversations again that failed; or makes the note of one again, where `item` names it."""
    session = await asyncio.to_thread(desk.sessions.find, session_id)
    asked = asked or TryAgain()
    elsewhere = await _elsewhere(desk, session, asked)
    return _told(await desk.retry(session, limit=asked.limit or 0, item=asked.item, **elsewhere))


async def _elsewhere(desk: Desk, session: Session, asked: Elsewhere) -> dict[str, Any]:
    """Gives the vault and the model to which a session is led from here on, where some are named."""
    _refuse_paths(desk, asked.vault)
    vault = await asyncio.to_thread(vault_of, asked.vault) if asked.vault.strip() else None
    at = addresses.from_here_on(session.options, asked.llm, "", asked.model) if asked.llm or asked.model else None
    return {"vault": vault, "address": None if at is None else await reached(at)}


@router.post("/sessions/{session_id}/cancel", summary="Cancel the work on a session")
async def cancel(session_id: SessionId, desk: AtDesk) -> Standing:
    """Cancels; what was done stays, and `resume` goes on."""
    return await desk.cancel(await asyncio.to_thread(desk.sessions.find, session_id))


def _told(started: Started) -> dict[str, Any]:
    return {"session_id": started.session_id, "run_id": started.run.id, "resumed": started.resumed}
