"""The one place that says an error over HTTP: `application/problem+json` with an error id, and never our insides."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from tsuzuki.backends.address import is_nats
from tsuzuki.codec import short
from tsuzuki.errors import (
    BadListQuery,
    BadParams,
    BadRequest,
    BadWorkersRequest,
    ItemNotFound,
    KeyHeld,
    KeyRefused,
    KeyRequired,
    LetterNotFound,
    RightMissing,
    RunNotFound,
    StoreError,
    StoreUnavailable,
    TooBusy,
    TsuzukiError,
    WorkerNotFound,
)
from tsuzuki.gateway.headers import with_security

logger: Final = logging.getLogger("tsuzuki.gateway")

MEDIA_TYPE: Final = "application/problem+json"
INTERNAL: Final = "ERR-TSUZUKI-0001"
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods of requests that change nothing."""

SHORT: Final[Mapping[type[TsuzukiError], str]] = {
    ItemNotFound: "item not found",
    LetterNotFound: "dead letter not found",
    RunNotFound: "run not found",
    WorkerNotFound: "worker not found",
    KeyRequired: "api key required",
    KeyRefused: "invalid api key",
    BadListQuery: "invalid list query",
    BadWorkersRequest: "invalid workers request",
    TooBusy: "too many open streams",
}
"""The `detail` that existing clients read, word for word; of a bad request, and of an item, more follows."""
AWAY: Final = "try again soon; the log of the gateway says why"
"""What is said of a store where nothing better is known that is not about our insides."""
MOST_TOLD: Final = 5
"""So many fields are told of in a sentence; `errors` has all of them."""

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

    def __init__(self, errors: Iterable[Mapping[str, Any]], detail: str = "") -> None:
        found = tuple(dict(error) for error in errors)
        super().__init__(detail or f"invalid request: {fields_told(found)}", found)


def fields_told(problems: Sequence[Mapping[str, Any]]) -> str:
    """Says in one sentence what is wrong with which fields."""
    told = [f"{_place(problem)}: {problem['msg']}" for problem in problems[:MOST_TOLD]]
    return "; ".join([*told, *(["…"] if len(problems) > MOST_TOLD else [])])


def _place(problem: Mapping[str, Any]) -> str:
    place = problem.get("loc", ())
    return ".".join(map(str, place[1:] if len(place) > 1 else place)) or "request"


def no_word(kind: type[BadRequest], name: str, text: str, words: Iterable[str]) -> BadRequest:
    """Says that a parameter of a query has none of the words that it may have."""
    return no_query(kind, name, f"{short(text)} is none of {', '.join(words)}", "enum")


def no_query(kind: type[BadRequest], name: str, why: str, sort: str = "value_error") -> BadRequest:
    """Says what is wrong with a parameter of a query, after the words that existing clients look for."""
    found = {"type": sort, "loc": ("query", name), "msg": why}
    return kind(f"{SHORT.get(kind, 'invalid request')}: {fields_told([found])}", [found])


def invalid_fields(error: ValidationError, place: tuple[str | int, ...] = ("body",)) -> Invalid:
    """Says what pydantic found wrong with a body, or with what is at a place in it, as FastAPI names it."""
    return Invalid({**found, "loc": (*place, *found["loc"])} for found in error.errors())


def misplaced(error: BadParams, place: tuple[str | int, ...]) -> Invalid:
    """Says which params do not fit their flow, by their place in the body."""
    problems = error.problems or ({"type": "value_error", "loc": (), "msg": str(error)},)
    found = ({**one, "loc": (*place, *cast("list[str | int]", one["loc"]))} for one in problems)
    said = str(error)
    return Invalid(found, said if said.startswith("invalid request") else f"invalid request: {said}")


def problem(
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
    return problem(error.http_status, _detail(error, nats=nats), error.error_id, headers=headers, **more)


def _detail(error: TsuzukiError, *, nats: bool) -> str:
    said = str(error)
    for kind, text in SHORT.items():
        if isinstance(error, kind) and not isinstance(error, RightMissing):
            return said if isinstance(error, BadRequest | ItemNotFound) and said.startswith(text) else text
    if isinstance(error, StoreError):  # its message may name files and hosts: those are in the log
        return f"{'nats' if nats else 'store'} unavailable: {error.advice or AWAY}"
    return said


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
    path, found = request.scope["path"], [dict(one) for one in error.errors()]
    kind: type[BadRequest] = BadRequest
    if path.rstrip("/") == "/runs" and request.method == "GET":
        kind = BadListQuery
    elif path.startswith("/workers"):
        kind = BadWorkersRequest
    return kind(f"{SHORT.get(kind, 'invalid request')}: {fields_told(found)}", found)


NO_PATH, NO_METHOD = 404, 405
PROTOCOL: Final = {NO_PATH: "ERR-TSUZUKI-0106", NO_METHOD: "ERR-TSUZUKI-0107"}
"""What has an id of its own among the errors that the web framework tells of."""


def refused_by_protocol(request: Request, error: HTTPException) -> Response:
    """Says an error of the web framework: nothing there, a method that is not taken, and what applications raise."""
    status, said, headers = error.status_code, str(error.detail).lower(), dict(error.headers or {})
    error_id = PROTOCOL.get(status, BadRequest.error_id) if status < TsuzukiError.http_status else INTERNAL
    if status == NO_METHOD:
        headers["Allow"] = ", ".join(sorted(_allowed(request))) or "GET, HEAD"
        said = f"{said}: {request.method}; this path takes {headers['Allow']}"
    elif status == NO_PATH and said == "not found":
        said = "not found: there is nothing at this path; /openapi.json has every route"
    return problem(status, said, error_id, headers=headers)


def _allowed(request: Request) -> set[str]:
    """Gives the methods of a path: those of the routes that name it, or else of those that have a place for it."""
    routes = [route for route in request.app.router.routes if route.matches(request.scope)[0] is not Match.NONE]
    exact = [route for route in routes if getattr(route, "path", "") == request.scope["path"]]
    return {method for route in exact or routes for method in getattr(route, "methods", None) or ()}


def _asked(request: Request) -> dict[str, str]:
    """Return what a log line says of the request that failed."""
    return {"http_method": request.method, "http_path": request.scope["path"]}


def install(app: FastAPI) -> None:
    """Lets an app answer every error as a problem."""

    def nats(request: Request) -> bool:
        return is_nats(request.app.state.gateway.runs.backend.url)

    @app.exception_handler(TsuzukiError)
    async def ours(request: Request, error: TsuzukiError) -> Response:
        refused = isinstance(error, TooBusy)  # as many as come: a line for each would fill the disk
        if not refused and (isinstance(error, StoreError) or error.http_status >= TsuzukiError.http_status):
            about = {"err_id": error.error_id, "details": _asked(request)}
            logger.error("%s %s: %s", request.method, request.scope["path"], error, exc_info=error, extra=about)
        if isinstance(error, StoreUnavailable) and request.method not in READING:
            request.app.state.gateway.writes_refused = True
        return answer_of(error, nats=nats(request))

    @app.exception_handler(RequestValidationError)
    async def fields(request: Request, error: RequestValidationError) -> Response:
        return answer_of(refused_fields(request, error))

    @app.exception_handler(HTTPException)
    async def protocol(request: Request, error: HTTPException) -> Response:
        return refused_by_protocol(request, error)

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        about = {"err_id": INTERNAL, "details": _asked(request)}
        logger.error("%s %s", request.method, request.scope["path"], exc_info=error, extra=about)
        told = problem(500, "internal server error", INTERNAL)
        told.raw_headers = with_security(told.raw_headers)  # this is answered outside of everything else of ours
        return told
