"""Makes a connection, or says why there can be none: the client alone would try for ever, and tell little.

A server that does not take us says so and hangs up, and whoever is still sending may learn only of the latter. So
whatever is heard on the way counts, the first refusal ends it, and we are connected once the server has answered us.
"""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from nats.aio.client import Client
from nats.errors import AuthorizationError, Error

from tsuzuki.backends.nats.options import Options
from tsuzuki.errors import StoreUnavailable

_REFUSALS: Final = ("authorization", "authentication")
_ANSWER: Final = 1
"""How long an answer of a new connection is waited for before it is asked again (seconds)."""

Told = Callable[[], Awaitable[None]]


class Ears(NamedTuple):
    """Who is told what becomes of a connection."""

    erred: Callable[[Exception], Awaitable[None]]
    lost: Told
    found: Told
    ended: Told


class Refused(Error):
    """The server is not what was asked for, or asks for what we do not have; trying again changes nothing."""


class Dialled(Client):
    """The client, which tells a server nothing before it is the one that was asked for."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._wanted = options

    @property
    def has_jetstream(self) -> bool:
        """Whether the server that we speak to says that it has JetStream itself."""
        return bool(self._server_info.get("jetstream"))

    async def _attempt_reconnect(self) -> None:
        """Try the server that was just lost last: one that cannot be reached costs 2 s."""
        if self._current_server in self._server_pool:
            self._server_pool.remove(self._current_server)
            self._server_pool.append(self._current_server)
        await super()._attempt_reconnect()

    async def _select_next_server(self) -> None:
        """Close the connection to a server that took it and said nothing: the client would only drop it."""
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]  # the client has types only in part
        await super()._select_next_server()

    async def close(self) -> None:
        """Leaves for good: on Python 3.11 a client that is about to connect again may miss that it was told to stop."""
        if self._flush_queue is None:
            return  # it never began to connect, and cannot end what it has not got
        await self._leave()
        task = self._reconnection_task
        while task is not None and task is not asyncio.current_task() and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.1)
        if not self.is_closed:
            await self._leave()

    async def _leave(self) -> None:
        try:
            await super().close()
        except OSError:  # the server hung up on our last words: the client stops there, half closed
            self._status = Client.DISCONNECTED
            await super().close()

    def _connect_command(self) -> bytes:
        """Called when the server has told about itself, before anything of ours is sent, on each connection."""
        self._know_of_tls()
        told, wanted = self._server_info, self._wanted
        if wanted.encrypted and not told.get("tls_required"):
            raise Refused("it does not insist on TLS, which tls:// and tls_ca= ask for")
        if told.get("tls_verify") and not wanted.tls_cert:
            raise Refused(_ASKS_FOR_OURS)
        if told.get("auth_required") and not wanted.identified and not wanted.tls_cert:
            raise Refused("it asks who we are: give creds=, nkey=, token=, or user= and password=")
        try:
            return super()._connect_command()
        except (OSError, Error):
            raise
        except Exception as error:  # noqa: BLE001 - a file in the midst of being replaced would stop the client for good
            raise Error(f"our credentials cannot be read ({type(error).__name__})") from None

    def _know_of_tls(self) -> None:
        """Tells the protocol that the client made for TLS what it is used for.

        asyncio tells its own so. One that does not know wants to stay half open when the server hangs up, and
        asyncio warns at each end of a connection that it cannot.
        """
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None and writer.get_extra_info("sslcontext") is not None:
            writer.transport.get_protocol()._over_ssl = True  # noqa: SLF001 - there is no other way to tell it


async def dial(options: Options, ears: Ears) -> Dialled:
    """Connects, or says why not."""
    client, credentials = Dialled(options), _credentials(options)
    loop = asyncio.get_running_loop()
    refused: asyncio.Future[Exception] = loop.create_future()
    heard: list[Exception] = []

    async def erred(error: Exception) -> None:
        heard.append(error)
        if _is_final(error) and not refused.done():
            refused.set_result(error)
        await ears.erred(error)

    async def ended() -> None:
        if connecting.done() and not leaving:  # before, and while we give up, our error tells it
            await ears.ended()

    leaving = False
    connecting = loop.create_task(_connect(client, options, ears._replace(erred=erred, ended=ended), credentials))
    try:
        either: set[asyncio.Future[Any]] = {connecting, refused}
        await asyncio.wait(either, timeout=options.connect_timeout, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done() and connecting.exception() is None:
            return client
    except BaseException:
        leaving = True
        await _hang_up(client, connecting)
        raise
    leaving = True
    await _hang_up(client, connecting)
    if not connecting.cancelled() and (error := connecting.exception()) is not None:
        heard.append(error if isinstance(error, Exception) else TimeoutError())
    raise _unreachable(options, refused.result() if refused.done() else heard[-1] if heard else TimeoutError())


async def _connect(client: Client, options: Options, ears: Ears, credentials: dict[str, Any]) -> None:
    await client.connect(
        servers=random.sample(options.servers, len(options.servers)),
        name="tsuzuki",
        error_cb=ears.erred,
        disconnected_cb=ears.lost,
        reconnected_cb=ears.found,
        closed_cb=ears.ended,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.25,  # type: ignore[arg-type]  # it sleeps for it, whole or not
        connect_timeout=2,
        ping_interval=1,  # a server that is cut off is noticed after 3 s, sooner than a new leader is elected
        max_outstanding_pings=2,
        dont_randomize=True,  # the servers are shuffled above, and `_attempt_reconnect` keeps their order
        pending_size=0,
        inbox_prefix=options.inbox,
        **credentials,
    )
    while True:  # the client takes a server that hangs up for one that took us: let it answer first
        try:
            await client.flush(_ANSWER)
            return
        except Error:
            if client.is_closed:
                raise


async def _hang_up(client: Client, connecting: "asyncio.Task[None]") -> None:
    connecting.cancel()
    await asyncio.wait({connecting})
    await client.close()


def _credentials(options: Options) -> dict[str, Any]:
    given: dict[str, Any] = {
        "user_credentials": options.creds,
        "nkeys_seed": options.nkey,
        "token": options.token,
        "user": options.user,
        "password": options.password,
    }
    chosen = {name: value for name, value in given.items() if value}
    if options.encrypted:
        chosen["tls"] = options.tls()
    return chosen


def _is_final(error: Exception) -> bool:
    if isinstance(error, Refused | AuthorizationError | ssl.SSLError):
        return True
    return any(word in str(error).lower() for word in _REFUSALS)


_ASKS_FOR_OURS: Final = "it asks for a certificate of ours: give tls_cert= and tls_key="


def _unreachable(options: Options, error: Exception) -> StoreUnavailable:
    url, text = options.url, str(error).removeprefix("nats: ") or type(error).__name__
    if isinstance(error, Refused):
        return StoreUnavailable(f"{url}: {text}")
    if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in text:  # its alert came before its greeting
        return StoreUnavailable(f"{url}: {_ASKS_FOR_OURS}")
    if isinstance(error, ssl.SSLError):
        return StoreUnavailable(
            f"{url}: no trusted connection ({text}); check tls_ca=, tls_cert=, tls_key= and the name of the server"
        )
    if _is_final(error):
        return StoreUnavailable(
            f"{url} refuses us ({text}); check {options.identified}, and that the server knows it and lets it in"
        )
    return StoreUnavailable(f"{url} cannot be reached ({text}); start it, or check the address")
