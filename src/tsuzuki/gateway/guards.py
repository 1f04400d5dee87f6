"""What every request is held to and every answer gets, as plain ASGI.

A page from elsewhere that is open in somebody's browser can send requests to this machine. It can send no JSON and no
key without being allowed to, but a request that changes something needs neither: so its `Origin` has to be ours, and
where nobody is asked for a key also its `Host`, which tells of names that were pointed at this machine.
"""

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsuzuki.errors import KeyRefused
from tsuzuki.gateway.headers import with_security
from tsuzuki.gateway.problems import READING, problem
from tsuzuki.listening import is_loopback


def refusal(scope: Scope, *, only_local: bool) -> str | None:
    """Says why a request is refused before anything looks at it, if it is."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if only_local and not is_loopback(_name(host)):
        return (
            "this gateway asks for no key, and answers only to names of this machine (localhost, 127.0.0.1): set "
            "TSUZUKI_HTTP_AUTH=api_key, or start it with --allow-unauthenticated"
        )
    if origin is not None and scope["method"] not in READING and origin.partition("://")[2].lower() != host.lower():
        return "a page from elsewhere may not change anything here"
    return None


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class Careful:
    """Refuses what a page from elsewhere sends, and adds headers to every answer; caches keep no answer of the API."""

    def __init__(self, app: ASGIApp, *, only_local: bool = False) -> None:
        self._app = app
        self._only_local = only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_security(message["headers"])
            await send(message)

        if (why := refusal(scope, only_local=self._only_local)) is not None:
            await problem(403, why, KeyRefused.error_id)(scope, receive, careful)
            return
        await self._app(scope, receive, careful)
