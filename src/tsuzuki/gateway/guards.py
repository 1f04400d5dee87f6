"""What every answer gets and every request is held to, as plain ASGI: headers that tell browsers to be careful."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
)


class Careful:
    """Adds the headers to every answer; answers of the API are not kept by caches."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                named = {name for name, _ in headers}
                headers += [pair for pair in SECURITY if pair[0] not in named]
                if b"cache-control" not in named and not scope["path"].startswith("/static"):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        await self._app(scope, receive, careful)
