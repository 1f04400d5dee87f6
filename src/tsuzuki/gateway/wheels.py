"""The routes of wheels: upload, list, download, delete, and who did it."""

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import WithJsonSchema
from starlette.responses import Response, StreamingResponse

from tsuzuki.backends.shelf import Wheel, WheelEvent
from tsuzuki.defaults import switch
from tsuzuki.errors import TooLarge
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.forms import Form, form_of
from tsuzuki.gateway.problems import Invalid
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.gateway.wheel_models import NAME, DeletedWheel, WheelEventView, WheelView
from tsuzuki.lifecycle import stamp
from tsuzuki.tokens import WHEELS
from tsuzuki.wheelerrors import WheelTooLarge
from tsuzuki.wheels.registry import Arrived

ActionWord = Annotated[str, WithJsonSchema({"type": "string", "enum": ["upload", "delete"]})]

router: Final = APIRouter(tags=["wheels"])

WheelName = Annotated[str, Path(description="The file name of a wheel.")]
LONGEST: Final = 512
"""How much is kept of a header."""
HEADERS: Final = ("x-forwarded-for", "x-real-ip", "user-agent", "host")
FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["wheel"],
                    "properties": {
                        "wheel": {
                            "type": "string",
                            "format": "binary",
                            "description": "The file, under its own name (`*.whl`).",
                        },
                        "tags": {"type": "string", "description": "Separated by commas; none: for all workers."},
                        "replace": {
                            "type": "string",
                            "enum": ["true", "false"],
                            "default": "true",
                            "description": "Kept in the history; that versions only go up counts more.",
                        },
                    },
                },
                "example": {"wheel": f"(the bytes of {NAME})", "tags": "gpu", "replace": "true"},
            }
        },
    }
}
CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The wheel, byte for byte.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/wheels", summary="List wheels", response_model=list[WheelView], responses=problems())
async def list_wheels(session: InSession) -> Response:
    """Lists the wheels, by name."""
    bucket = session.gateway.wheels.bucket
    return answer([shown(wheel, bucket) for wheel in await session.gateway.wheels.all()])


@router.post(
    "/wheels",
    summary="Upload a wheel",
    response_model=WheelView,
    responses=problems(409, 413),
    openapi_extra=FORM,
)
async def upload(request: Request, session: InSession) -> Response:
    """Takes in a wheel of a higher version than any of its package; workers install it before their next run."""
    session.need(WHEELS)
    gateway = session.gateway
    try:
        async with form_of(request, "wheel", gateway.options.max_wheel_bytes, gateway.data_dir) as form:
            return answer(shown(await _taken(form, request, session), gateway.wheels.bucket))
    except TooLarge as error:
        raise WheelTooLarge from error


async def _taken(form: Form, request: Request, session: Session) -> Wheel:
    if form.filename is None:
        raise Invalid([{"type": "missing", "loc": ("body", "wheel"), "msg": "Field required"}])
    try:
        replace = switch(form.fields.get("replace", "").strip() or "true")
    except ValueError:
        raise Invalid([{"type": "bool_parsing", "loc": ("body", "replace"), "msg": "must be true or false"}]) from None
    return await session.gateway.wheels.upload(
        Arrived(form.filename, form.file, form.size, form.sha256),
        [form.fields.get("tags", "")],
        replace=replace,
        **_who(request, session),
    )


def _who(request: Request, session: Session) -> dict[str, Any]:
    source = {name.replace("-", "_"): request.headers[name][:LONGEST] for name in HEADERS if name in request.headers}
    source |= {"scheme": request.scope["scheme"]} | ({"remote_addr": request.client.host} if request.client else {})
    return {"tenant": session.tenant or "", "api_key": session.key_id, "source": source}


@router.get("/wheels/history", summary="Who brought wheels", response_model=list[WheelEventView], responses=problems())
async def history(
    session: InSession,
    limit: Annotated[int, Query(ge=1, le=500, description="How many at most.")] = 100,
    wheel_name: Annotated[str | None, Query(max_length=256, description="Of this wheel alone.")] = None,
    action: Annotated[ActionWord | None, Query(max_length=32, description="Only what came, or only what went.")] = None,
) -> Response:
    """Tells which wheels came and went, and by whom, the newest first."""
    found = await session.gateway.wheels.history(limit=limit, wheel=wheel_name, action=action)
    return answer([_told(event, session) for event in found])


@router.get(
    "/wheels/{wheel_name:path}",
    summary="Download a wheel",
    response_class=StreamingResponse,
    responses={**problems(404), **CONTENT},
)
async def download(wheel_name: WheelName, session: InSession) -> Response:
    """Gives a wheel byte for byte, with its digest in a header."""
    wheel = await session.gateway.wheels.get(wheel_name)
    content = session.gateway.wheels.read(wheel)
    first = await anext(content, b"")  # what cannot be read at all is told as a problem
    headers = {
        "Content-Length": str(wheel.size),
        "Content-Disposition": f'attachment; filename="{wheel.name}"',
        "ETag": f'"{wheel.sha256}"',
        "X-Wheel-SHA256": wheel.sha256,
    }
    return StreamingResponse(_all(first, content), headers=headers, media_type="application/octet-stream")


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


@router.delete(
    "/wheels/{wheel_name:path}", summary="Delete a wheel", response_model=DeletedWheel, responses=problems(404)
)
async def delete(wheel_name: WheelName, request: Request, session: InSession) -> Response:
    """Deletes a wheel; workers forget it before their next run."""
    session.need(WHEELS)
    wheel = await session.gateway.wheels.delete(wheel_name, **_who(request, session))
    return answer({"name": wheel.name, "deleted": True})


def shown(wheel: Wheel, bucket: str) -> dict[str, Any]:
    """Gives a wheel as clients know it."""
    digest = base64.urlsafe_b64encode(bytes.fromhex(wheel.sha256)).decode()
    return {
        "name": wheel.name,
        "size_bytes": wheel.size,
        "bucket": bucket,
        "digest": f"SHA-256={digest}",
        "sha256_b64": digest,
        "sha256_hex": wheel.sha256,
        "mtime": stamp(wheel.modified),
        "modified": wheel.modified,
        "nuid": wheel.nuid,
        "tags": wheel.tags,
        "package": wheel.package,
        "version": wheel.version,
    }


def _told(event: WheelEvent, session: Session) -> dict[str, Any]:
    """Gives an event; who it was is for those of the same tenant, and those who may upload themselves."""
    open_to = session.may(WHEELS) or event.tenant == session.tenant
    source: Mapping[str, str] = event.source if open_to else {}
    return {
        "event_id": event.id,
        "occurred_at": event.at,
        "action": event.action,
        "wheel_name": event.wheel,
        "tags": event.tags,
        "size_bytes": event.size,
        "sha256_hex": event.sha256,
        "replace": event.replace,
        "actor": {
            "tenant_id": (event.tenant or None) if open_to else None,
            "api_key_id": (event.api_key or None) if open_to else None,
        },
        "source": {
            name: source.get(name)
            for name in ("remote_addr", "x_forwarded_for", "x_real_ip", "user_agent", "host", "scheme")
        },
    }
