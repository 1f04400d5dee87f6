"""The OpenAPI document: what FastAPI knows of the routes, the shapes that routes read by themselves, and the key."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from tsuzuki import __version__
from tsuzuki.gateway import bodies, models
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
    for path, method in protected(app):
        document["paths"][path][method]["security"] = [{}, {"ApiKey": []}]
    for path, operations in document["paths"].items():
        if path.startswith("/api/"):  # behind the door of applications, every one of them
            for operation in operations.values():
                operation["security"] = [{}, {"ApiKey": []}]
    return document


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
