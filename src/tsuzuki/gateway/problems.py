"""The one place that says an error over HTTP: `application/problem+json` with an error id, and never our insides."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tsuzuki.errors import (
    BadListQuery,
    BadParams,
    BadRequest,
    BadWorkersRequest,
    KeyHeld,
    KeyRefused,
    KeyRequired,
    LetterNotFound,
    RightMissing,
    RunNotFound,
    StoreError,
    TooBusy,
    TooLarge,
    TsuzukiError,
    WorkerNotFound,
)

logger: Final = logging.getLogger("tsuzuki.gateway")

MEDIA_TYPE: Final = "application/problem+json"
INTERNAL: Final = "ERR-TSUZUKI-0001"

SHORT: Final[Mapping[type[TsuzukiError], str]] = {
    LetterNotFound: "dead letter not found",
    RunNotFound: "run not found",
    WorkerNotFound: "worker not found",
    KeyRequired: "api key required",
    KeyRefused: "invalid api key",
    BadListQuery: "invalid list query",
    BadWorkersRequest: "invalid workers request",
    TooBusy: "too many open streams",
}
"""The `detail` that existing clients read, word for word."""

TITLES: Final = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable content",
    500: "Internal server error",
    503: "Unavailable",
}


class Invalid(BadRequest):
    """Fields of a request that do not fit, each told by its place."""

    def __init__(self, errors: Iterable[Mapping[str, Any]], detail: str = "invalid request") -> None:
        super().__init__(detail)
        self.problems = tuple(dict(error) for error in errors)


def invalid_body(error: ValidationError) -> Invalid:
    """Says what pydantic found wrong with a body, as FastAPI names it."""
    return Invalid({**found, "loc": ("body", *found["loc"])} for found in error.errors())


def misplaced(error: BadParams, place: tuple[str | int, ...]) -> Invalid:
    """Says which params do not fit their flow, by their place in the body."""
    found = ({**one, "loc": (*place, *cast("list[str | int]", one["loc"]))} for one in error.problems)
    return Invalid(found, str(error))


def answer(
    status: int, detail: str, error_id: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Makes the answer that tells of a problem."""
    body = {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "error_id": error_id,
        **more,
    }
    return Response(msgspec.json.encode(body), status, dict(headers or {}), MEDIA_TYPE)


def answer_of(error: TsuzukiError, *, nats: bool = False) -> Response:
    """Makes the answer that tells of one of our errors."""
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if problems := getattr(error, "problems", ()):
        more["errors"] = [_shown(problem) for problem in problems]
    if isinstance(error, KeyHeld):
        more["run_id"] = error.run_id
    if isinstance(error, StoreError | TooBusy):
        headers["Retry-After"] = "1"
    if isinstance(error, KeyRequired):
        headers["WWW-Authenticate"] = "ApiKey"
    return answer(error.http_status, _detail(error, nats=nats), error.error_id, headers=headers, **more)


def _detail(error: TsuzukiError, *, nats: bool) -> str:
    for kind, text in SHORT.items():
        if isinstance(error, kind) and not isinstance(error, RightMissing):
            return text
    if isinstance(error, StoreError):  # its message may name files and hosts: those are in the log
        return "nats unavailable" if nats else "store unavailable"
    return str(error)


def _shown(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what FastAPI calls a validation error; the input itself is not sent back."""
    place = [part if isinstance(part, int) else str(part) for part in problem.get("loc", ())]
    shown: dict[str, Any] = {
        "type": str(problem.get("type", "value_error")),
        "loc": place,
        "msg": str(problem.get("msg", "")),
    }
    return shown | {name: problem[name] for name in ("line", "column") if name in problem}


def refused_fields(request: Request, error: RequestValidationError) -> TsuzukiError:
    """Says which of our errors a request is whose fields do not fit: lists and workers have their own."""
    path, found = request.url.path, error.errors()
    kind: type[BadRequest] = BadRequest
    if path.rstrip("/") == "/runs" and request.method == "GET":
        kind = BadListQuery
    elif path.startswith("/workers"):
        kind = BadWorkersRequest
    refused = Invalid(found, SHORT.get(kind, "invalid request"))
    refused.error_id = kind.error_id  # type: ignore[misc] # one class for all routes; the route decides the id
    return refused


def install(app: FastAPI) -> None:
    """Lets an app answer every error as a problem."""

    def nats(request: Request) -> bool:
        return bool(request.app.state.gateway.runs.backend.url.startswith(("nats", "tls")))

    @app.exception_handler(TsuzukiError)
    async def ours(request: Request, error: TsuzukiError) -> Response:
        refused = isinstance(error, TooBusy)  # as many as come: a line for each would fill the disk
        if not refused and (isinstance(error, StoreError) or error.http_status >= TsuzukiError.http_status):
            logger.error("%s %s: %s", request.method, request.url.path, error, extra={"err_id": error.error_id})
        return answer_of(error, nats=nats(request))

    @app.exception_handler(RequestValidationError)
    async def fields(request: Request, error: RequestValidationError) -> Response:
        return answer_of(refused_fields(request, error))

    @app.exception_handler(HTTPException)
    async def protocol(request: Request, error: HTTPException) -> Response:
        del request
        error_id = TooLarge.error_id if error.status_code < TsuzukiError.http_status else INTERNAL
        return answer(error.status_code, str(error.detail).lower(), error_id, headers=error.headers)

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        logger.error("%s %s", request.method, request.url.path, exc_info=error, extra={"err_id": INTERNAL})
        return answer(500, "internal server error", INTERNAL)
