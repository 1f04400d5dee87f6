"""Applications in the gateway: their routes stand behind its door, their pages beside its own.

It knows no application by name. One that cannot be used is told of in the log and left out; the rest goes on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsuzuki.application import Application, applications, told
from tsuzuki.errors import TooLarge
from tsuzuki.gateway.answers import announced, answer, problems, too_large
from tsuzuki.gateway.models import ApplicationView
from tsuzuki.gateway.options import BODY_WAIT
from tsuzuki.gateway.pages import Files
from tsuzuki.gateway.session import InSession, session_of

logger: Final = logging.getLogger("tsuzuki.gateway")

router: Final = APIRouter(tags=["applications"])


@dataclass(frozen=True, slots=True)
class Installed:
    """An application with the routes it gave."""

    application: Application
    routes: Mapping[str, APIRouter]
    """Its routes by the name under `/api` that they belong to."""

    def mounts(self) -> list[BaseRoute]:
        """Gives what is mounted for it: routes behind the door, pages in the open as those of the gateway are."""
        found: list[BaseRoute] = []
        for name, routes in self.routes.items():
            door = Door(routes, f"/api/{name}")
            found += [Route(f"/api/{name}", door), Route(f"/api/{name}/{{rest:path}}", door)]
        if self.application.pages is not None:
            found.append(Mount(f"/apps/{self.application.name}", Files(directory=self.application.pages.folder)))
        return found

    def described(self) -> list[BaseRoute]:
        """Gives its routes as OpenAPI tells of them; nothing is served by these."""
        paper = APIRouter()
        for name, routes in self.routes.items():
            told = problems(400, 404, 409, 413)
            paper.include_router(routes, prefix=f"/api/{name}", tags=[self.application.name], responses=told)
        return list(paper.routes)

    def shown(self) -> dict[str, Any]:
        """Gives what the dashboard has to know."""
        name, title, pages = self.application.name, self.application.title, self.application.pages
        english = title.get("en") or name
        return {
            "name": name,
            "title": {"en": english, "ja": title.get("ja") or english},
            "module": f"/apps/{name}/{pages.module}" if pages else None,
        }


class Door:
    """Lets nobody through to an application without a session, nor a body that is too large or never ends."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on whose sender may come in; before that no code of the application sees it."""
        request = Request(scope)
        session = await session_of(request)
        most = session.gateway.options.max_request_bytes
        if announced(request) > most:
            raise TooLarge(too_large(most))
        inside = {**scope, "root_path": scope.get("root_path", "") + self._prefix}
        answering = self._app(inside, _bounded(receive, most), send)
        if not session.key_id:
            await answering
            return
        async with session.gateway.streams.permits.held(session.key_id) as revoked:
            await _unless(revoked, answering)


async def _unless(revoked: asyncio.Event, answering: Awaitable[None]) -> None:
    """Lets an application answer, unless the key that it answers to is revoked meanwhile: streams take long."""
    ways: list[asyncio.Future[Any]] = [
        asyncio.ensure_future(answering),
        asyncio.create_task(revoked.wait(), name="gateway-application-revoked"),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        [answered, _] = await asyncio.gather(*ways, return_exceptions=True)
    if isinstance(answered, Exception):
        raise answered


def _bounded(receive: Receive, most: int) -> Receive:
    """Gives the parts of a body until they are too many or take too long, in the only words that FastAPI passes on."""
    taken, ended = 0, False
    patience = asyncio.get_running_loop().time() + BODY_WAIT

    async def bounded() -> Message:
        nonlocal taken, ended
        if ended:
            return await receive()  # what comes now is only that the client has left
        try:
            async with asyncio.timeout_at(patience):
                message = await receive()
        except TimeoutError:
            raise HTTPException(400, "the body did not arrive in time") from None
        taken += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if taken > most:
            raise HTTPException(413, too_large(most))
        return message

    return bounded


def install(app: FastAPI) -> None:
    """Puts in what the installed packages offer."""
    app.state.applications = []
    for name, found in applications():
        try:
            if isinstance(found, Exception):
                raise found  # noqa: TRY301 - told of below, as what goes wrong a line later is
            given = {**({name: found.routes} if found.routes else {}), **found.paths}
            installed = Installed(found, {at: routes() for at, routes in given.items()})
            _check_free(installed, app.state.applications)
            mounts, _ = installed.mounts(), installed.described()
        except Exception as error:  # a package of somebody else: it must not stop the gateway
            logger.exception("%s", told(name, error))  # noqa: TRY401 - a sentence for people, who did not write it
            continue
        app.router.routes.extend(mounts)
        app.state.applications.append(installed)


def _check_free(asking: Installed, others: list[Installed]) -> None:
    """Refuses a name under `/api` that another application has: who came first keeps it."""
    for other in others:
        if shared := sorted(asking.routes.keys() & {other.application.name, *other.routes}):
            raise ValueError(f"/api/{shared[0]} belongs to the application {other.application.name}")


@router.get("/apps", summary="List applications", response_model=list[ApplicationView], responses=problems())
async def list_applications(request: Request, session: InSession) -> Response:
    """Lists the installed applications; `module` is what the dashboard imports for the pages of one."""
    del session
    return answer([installed.shown() for installed in request.app.state.applications])
