"""The controller of a cluster: somebody who stays, and takes out a server that leaves.

Only the system account may do that, and its password does not leave the folder of the server that the controller
stands beside. It is asked over HTTP: `GET /servers`, `POST /leave {"server": NAME}`, by commands and never by web
pages: what a browser sends for a page has an Origin, a foreign Host or another content type, and is refused.
"""

import asyncio
import base64
import contextlib
import hmac
import http.client
import ipaddress
import json
import platform
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tsuzuki.backends.nats import administration, options
from tsuzuki.backends.nats.faults import ApiError, Unclear, fault
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import BadUsage, Conflict, StoreUnavailable, TsuzukiError
from tsuzuki.servers.configuration import SYSTEM_USER, Identity, Told
from tsuzuki.servers.place import Place
from tsuzuki.servers.process import monitor

LARGEST: Final = 64 * 1024
"""A question has no more bytes."""
PATIENCE: Final = 30.0
READ_TIMEOUT_S = 10.0
"""How long a question may take to arrive as a whole."""
_OK: Final = 200
_LEAST: Final = 2
"""So many servers must be left: with one, a cluster cannot agree on anything."""


class Controller:
    """Answers for the cluster of the server in a folder."""

    def __init__(self, place: Place, identity: Identity) -> None:
        self._place, self._told = place, place.expected()
        self._key = _basic(identity) if identity.user else ""
        place.system_password()  # a server that is alone has none, and nothing to be left

    def serve(self, host: str, port: int, tell: Callable[[str], None]) -> None:
        """Answers until it is told to stop."""
        answering = type("Answering", (_Answering,), {"controller": self, "listens_on": host})
        with ThreadingHTTPServer((host, port), answering) as server:
            tell(f"the controller of {self._told.cluster} answers on http://{host}:{server.server_address[1]}")
            server.serve_forever()

    def knows(self, authorization: str) -> bool:
        """Tells whether somebody may ask."""
        return not self._key or hmac.compare_digest(authorization.encode(), self._key.encode())

    def servers(self) -> dict[str, Any]:
        """Names the servers of the cluster, and who leads."""
        meta = monitor(self._told, "jsz").get("meta_cluster") or {}
        peers = {str(peer["name"]) for peer in meta.get("replicas") or ()} | {self._told.called}
        return {"cluster": self._told.cluster, "leader": meta.get("leader"), "servers": sorted(peers)}

    def leave(self, server: str) -> dict[str, Any]:
        """Takes a server out of the cluster for good: its streams go to the others."""
        present = self.servers()["servers"]
        if server not in present:
            raise BadUsage(f"there is no server {server!r} in the cluster; there are: {', '.join(present)}")
        if server == self._told.called:
            raise BadUsage(f"{server} is the server that this controller stands beside; ask a controller elsewhere")
        needed = max(_replicas(self._told), _LEAST)
        if len(present) - 1 < needed:
            raise Conflict(
                f"{server} cannot leave: {len(present) - 1} servers would be left, and {needed} are needed; "
                "join another one first"
            )
        asyncio.run(_removed(self._told, self._place.system_password(), server))
        return {"left": server, "servers": [name for name in present if name != server]}


def _replicas(told: Told) -> int:
    """Tells how many replicas the streams of the cluster have at the most."""
    accounts = monitor(told, "jsz?streams=1&config=1").get("account_details") or []
    streams = [stream for account in accounts for stream in account.get("stream_detail") or ()]
    return max((int((stream.get("config") or {}).get("num_replicas", 1)) for stream in streams), default=1)


async def _removed(told: Told, password: str, server: str) -> None:
    chosen = options.parse(told.url, user=SYSTEM_USER, password=password)
    wire = Wire(chosen)
    await wire.connect()
    try:
        await wire.api(administration.remove_server(), PATIENCE, peer=server)
    except (ApiError, Unclear) as error:
        raise fault(error, chosen.url) from error
    finally:
        await wire.close()


class _Answering(BaseHTTPRequestHandler):
    """One question and its answer."""

    controller: Controller
    listens_on = ""

    def setup(self) -> None:
        """Begin to read; a connection that has not sent its question in time is cut."""
        super().setup()
        self._deadline = threading.Timer(READ_TIMEOUT_S, self._cut)
        self._deadline.daemon = True
        self._deadline.start()

    def finish(self) -> None:
        """End the connection."""
        self._deadline.cancel()
        with contextlib.suppress(OSError):
            super().finish()

    def _cut(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Tells of the cluster."""
        self._deadline.cancel()
        if self.path == "/healthz":
            self._answer(_OK, {"status": "ok"})
        elif self._allowed():
            self._tried(self.controller.servers if self.path == "/servers" else self._unknown)

    def do_POST(self) -> None:
        """Takes a server out."""
        if not self._allowed():
            return
        if self.headers.get_content_type() != "application/json":
            self._answer(415, {"error": "the body must be application/json"})
            return
        size = self.headers.get("Content-Length") or "0"
        if self.path != "/leave" or not size.isdecimal() or int(size) > LARGEST:
            self._tried(self._unknown)
            return
        body = self.rfile.read(int(size))
        self._deadline.cancel()
        self._tried(lambda: self.controller.leave(_name_in(body)))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the standard library gave it
        """Says nothing: the answers tell it."""

    def _allowed(self) -> bool:
        if "Origin" in self.headers or not _is_own(self.headers.get("Host") or "", self.listens_on):
            self._answer(
                403, {"error": "web pages may not ask; use tsuzuki nats leave, and the address of the machine"}
            )
            return False
        if self.controller.knows(self.headers.get("Authorization") or ""):
            return True
        self._answer(401, {"error": "say who you are: TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD"})
        return False

    def _unknown(self) -> dict[str, Any]:
        raise BadUsage("there is GET /servers, and POST /leave with {'server': NAME}")

    def _tried(self, work: Callable[[], dict[str, Any]]) -> None:
        try:
            self._answer(_OK, work())
        except TsuzukiError as error:
            self._answer(error.http_status, {"error": str(error), "error_id": error.error_id})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _is_own(host: str, listens_on: str) -> bool:
    """Tell whether a Host header names this machine by an address or its own name.

    Another name may have been bound to our address by whoever owns the name.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", listens_on.lower()) or name.partition(".")[0] == platform.node().lower().partition(".")[0]:
        return bool(name)
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


class _Question(msgspec.Struct):
    server: str


def _name_in(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Question).server
    except msgspec.MsgspecError as error:
        raise BadUsage(f"the body must be {{'server': NAME}} ({error})") from None


class Unreachable(StoreUnavailable):
    """The controller cannot be reached."""


def _basic(identity: Identity) -> str:
    return "Basic " + base64.b64encode(f"{identity.user}:{identity.password}".encode()).decode()


def ask_to_leave(url: str, server: str, identity: Identity) -> dict[str, Any]:
    """Asks a controller to take a server out of its cluster."""
    there = urlsplit(url)
    if there.scheme != "http" or not there.hostname:
        raise BadUsage(f"{url!r} is no address of a controller; use http://HOST:PORT")
    headers = {"Content-Type": "application/json"}
    if identity.user:
        headers["Authorization"] = _basic(identity)
    connection = http.client.HTTPConnection(there.hostname, there.port or 80, timeout=PATIENCE)
    try:
        connection.request("POST", "/leave", json.dumps({"server": server}), headers)
        answer = connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(
            f"the controller at {url} does not answer ({error}); start it, or check the address"
        ) from error
    finally:
        connection.close()
    if answer.status != _OK:
        raise Conflict(f"the controller refuses: {told.get('error', answer.status)}")
    return told
