"""The routes that are open to all: health, the page, and what it needs."""

from html import escape
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tsuzuki import __version__, settings
from tsuzuki.gateway.answers import answer, problems
from tsuzuki.gateway.models import Health
from tsuzuki.gateway.session import Gateway

router: Final = APIRouter(tags=["health"])

FOLDER: Final = Path(__file__).parent / "static"

KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""The types that a browser insists on; what the machine's own tables say of them differs."""


class Files(StaticFiles):
    """A folder of files, served as they are; a browser asks each time whether one has changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Answers with a file, or with 404."""
        response = await super().get_response(path, scope)
        if (kind := KINDS.get(Path(path).suffix.lower())) and "content-type" in response.headers:
            response.headers["content-type"] = kind
        response.headers["cache-control"] = "no-cache"
        return response


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Is the gateway alive?", response_model=Health)
async def health() -> Response:
    """Says that the gateway lives; whether its store does is told by `/health/ready`."""
    return answer({"status": "ok", "version": __version__})


@router.head("/health/ready", include_in_schema=False)
@router.get("/health/ready", summary="Can the gateway do its work?", response_model=Health, responses=problems())
async def ready(request: Request) -> Response:
    """Looks into the store, and tells the truth: 503 while it cannot be reached, or does not take writes."""
    gateway: Gateway = request.app.state.gateway
    await gateway.overview.alive()  # this asks the store itself, on NATS too; counts are remembered there
    if gateway.writes_refused:  # a disk may be full; nothing is written as long as all is well
        await gateway.overview.try_writing()
        gateway.writes_refused = False
    return answer({"status": "ok", "version": __version__})


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index(request: Request) -> Response:
    """Gives the page, told its language and the header of keys by attributes: there is no inline script."""
    options = request.app.state.gateway.options
    language = settings.dashboard_language(options.dashboard_lang)
    return HTMLResponse(_page(language, options.api_key_header))


def _page(language: str, header: str) -> str:
    told = f'lang="{escape(language or "en")}" data-language="{escape(language)}" data-key-header="{escape(header)}"'
    return (FOLDER / "index.html").read_text(encoding="utf-8").replace('lang="en"', told, 1)


def install(app: FastAPI) -> None:
    """Serves the files of the page, compressed where that is taken."""
    app.mount("/static", GZipMiddleware(Files(directory=FOLDER), minimum_size=500), name="static")
