"""The OpenAPI document: what FastAPI knows of the routes, the shapes that routes read by themselves, and the key."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from tsuzuki import __version__
from tsuzuki.gateway import bodies, meanings, models, wheel_models, worker_models
from tsuzuki.gateway.examples import ANSWERS
from tsuzuki.gateway.session import session_of

TITLE: Final = "Tsuzuki"
TEXT: Final = """Durable runs over HTTP.

A run that was accepted will be executed, whatever dies meanwhile. Errors are
`application/problem+json` with an `error_id`. Lists are paged by opaque cursors;
streams are server-sent events with a heartbeat at least every three seconds.
"""
READ_BY_ROUTES: Final = (
    bodies.SubmitRun,
    bodies.SubmitBatch,
    bodies.CancelRun,
    bodies.ResumeRun,
    bodies.PatchWorker,
    models.Problem,
)
_PLACE: Final = "#/components/schemas/{model}"


def describe(app: FastAPI, header: str) -> None:
    """Lets an app describe itself, once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, header)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign] # the way FastAPI documents for this


def _document(app: FastAPI, header: str) -> dict[str, Any]:
    document = get_openapi(
        title=TITLE, version=__version__, openapi_version="3.1.0", description=TEXT, routes=_described(app)
    )
    _, shapes = models_json_schema([(kind, "validation") for kind in READ_BY_ROUTES], ref_template=_PLACE)
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {}).update(shapes["$defs"])
    parts["securitySchemes"] = {
        "ApiKey": {"type": "apiKey", "in": "header", "name": header, "description": "Asked for where auth is on."}
    }
    _show(document)
    for path, method in protected(app):
        document["paths"][path][method]["security"] = [{}, {"ApiKey": []}]
    for path, operations in document["paths"].items():
        if path.startswith("/api/"):  # behind the door of applications, every one of them
            for operation in operations.values():
                operation["security"] = [{}, {"ApiKey": []}]
    return document


def _show(document: dict[str, Any]) -> None:
    """Puts words to every field of our own routes, and an example to every answer; applications have their own."""
    shapes = document["components"]["schemas"]
    own = {path: operations for path, operations in document["paths"].items() if not path.startswith("/api/")}
    meanings.describe({name: shapes[name] for name in reachable(own, shapes)})
    for name, kind in (vars(models) | vars(worker_models) | vars(wheel_models)).items():
        if name in shapes and isinstance(extra := getattr(kind, "model_config", {}).get("json_schema_extra"), dict):
            shapes[name] |= extra  # as they were written: FastAPI leaves out what is null in them
    for path, operations in own.items():
        for method, operation in operations.items():
            for said in operation["responses"]["200"]["content"].values():
                name = said["schema"].get("$ref", "").rpartition("/")[2]
                examples = shapes.get(name, {}).get("examples", [None])
                said["example"] = ANSWERS.get(f"{method.upper()} {path}", examples[0])


def reachable(part: Any, shapes: dict[str, Any]) -> set[str]:
    """Gives the names of the shapes that a part of the document leads to."""
    found, ahead = set[str](), _references(part)
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= _references(shapes[name]) - found
    return found


def _references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"].rpartition("/")[2]} if isinstance(part.get("$ref"), str) else set[str]()
        return own.union(*map(_references, part.values()))
    return set[str]().union(*map(_references, part)) if isinstance(part, list) else set()


def _described(app: FastAPI) -> list[BaseRoute]:
    return [*app.routes, *(route for installed in app.state.applications for route in installed.described())]


def protected(app: FastAPI) -> list[tuple[str, str]]:
    """Gives the gateway's own routes that need a session, as paths and methods of the document."""
    return [
        (route.path_format, method.lower())
        for route in api_routes(app)
        for method in route.methods
        if any(call is session_of for call in _calls(route.dependant))
    ]


def api_routes(app: FastAPI) -> list[Any]:
    """Gives the gateway's own routes of the document."""
    return [route for route in app.routes if getattr(route, "include_in_schema", False) and hasattr(route, "dependant")]


def _calls(dependant: Any) -> list[Any]:
    return [part.call for part in dependant.dependencies]
