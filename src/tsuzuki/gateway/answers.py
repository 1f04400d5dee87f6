"""How routes read bodies and write answers: JSON by msgspec, bodies up to a limit and within a time."""

import asyncio
from typing import Any, Final, TypeVar, cast

import msgspec
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tsuzuki.errors import BadRequest, TooLarge
from tsuzuki.gateway.models import Problem
from tsuzuki.gateway.options import BODY_WAIT
from tsuzuki.gateway.problems import MEDIA_TYPE, TITLES, Invalid, invalid_fields

Body = TypeVar("Body", bound=BaseModel)


def answer(value: Any, status: int = 200) -> Response:
    """Answers with JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def raw(data: bytes) -> Response:
    """Answers with JSON that is encoded already."""
    return Response(data, media_type="application/json")


def announced(request: Request) -> int:
    """Gives how many bytes a request says that its body has; 0 where it does not say it."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isdecimal() else 0


def too_large(most: int) -> str:
    """Says that a body has more bytes than are taken."""
    return f"request too large: at most {most} bytes are taken"


async def body_of(request: Request, most: int) -> bytes:
    """Reads a body; a large one is refused as soon as that is known, one that never ends is not waited for."""
    if announced(request) > most:
        raise TooLarge(too_large(most))
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_WAIT):
            async for piece in request.stream():
                data += piece
                if len(data) > most:
                    raise TooLarge(too_large(most))
    except TimeoutError:
        raise BadRequest("invalid request: the body did not arrive in time") from None
    except ClientDisconnect:
        raise BadRequest("invalid request: the client left before its request was complete") from None
    return bytes(data)


async def read(request: Request, kind: type[Body], most: int, *, optional: bool = False) -> Body:
    """Reads a JSON body of a shape; with `optional` an empty one is that of an empty object."""
    data = await body_of(request, most)
    if optional and not data.strip():
        data = b"{}"
    try:
        data.decode()
        return kind.model_validate_json(data)
    except UnicodeDecodeError:
        raise Invalid([{"type": "json_invalid", "loc": ("body",), "msg": "the body is not UTF-8"}]) from None
    except ValidationError as error:
        raise invalid_fields(error) from None


def takes(kind: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Says in OpenAPI what a body looks like that the route reads by itself."""
    said: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}
    if isinstance(extra := kind.model_config.get("json_schema_extra"), dict) and (given := extra.get("examples")):
        said["example"] = cast("list[Any]", given)[0]
    return {"requestBody": {"required": required, "content": {"application/json": said}}}


_WHEN: Final = {
    401: "No API key was sent, and keys are asked for.",
    403: "The API key is malformed, unknown, wrong or revoked.",
    404: "It is not there, or belongs to another tenant.",
    409: "It would break a rule; nothing was changed.",
    413: "The request is too large.",
    422: "The request makes no sense.",
    503: "The store cannot be reached just now, or too many streams are open.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Says in OpenAPI which problems a route tells of, beside those that all of them may."""
    return {
        status: {
            "description": _WHEN.get(status, TITLES[status]),
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}},
        }
        for status in sorted({401, 403, 422, 503, *statuses})
    }
