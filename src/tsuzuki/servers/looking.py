"""What there is to see of the servers of a store: who leads, who is behind, how much streams hold."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import msgspec

from tsuzuki import settings
from tsuzuki.backends.nats import administration, options, topology
from tsuzuki.backends.nats.faults import DENIED, ApiError, Unclear, fault
from tsuzuki.backends.nats.streams import patiently, present
from tsuzuki.backends.nats.topology import NANO, Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.servers.configuration import Told
from tsuzuki.servers.process import monitor

LOOKS: Final = 20
PAUSE: Final = 0.5
ELECTION_S: Final = 15.0
"""How long servers may take to elect a leader after one was lost."""
SILENT_S: Final = 5.0
"""A server that the leader has not heard of for so long does not answer; it is heard of every second."""


class SeenServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as the others see it; `lag` counts what it has not yet of what the leader has."""

    name: str
    leads: bool = False
    state: str = "up"
    lag: int = 0
    silent: float | None = None
    """For how many seconds the leader has heard nothing of it; None: never, or it is the leader."""


class SeenStream(msgspec.Struct, frozen=True, kw_only=True):
    """A stream: where it is, who leads it, who is behind, and what it holds."""

    name: str
    leader: str
    replicas: int
    servers: tuple[SeenServer, ...]
    messages: int
    bytes: int
    max_bytes: int
    subjects: int = 0

    @property
    def behind(self) -> list[SeenServer]:
        """The servers that have not everything."""
        return [server for server in self.servers if server.state != "up"]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one look has shown; `health` is what the server on this machine tells, where there is one of ours."""

    url: str
    version: str
    prefix: str = ""
    servers: tuple[SeenServer, ...]
    streams: tuple[SeenStream, ...]
    storage: int
    max_storage: int
    health: dict[str, Any] = {}
    varz: dict[str, Any] = {}

    @property
    def settling(self) -> bool:
        """Whether somebody catches up or leaders are chosen, as for moments after each start and large write."""
        servers = [*self.servers, *(server for stream in self.streams for server in stream.servers)]
        led = all(stream.leader for stream in self.streams)
        unheard = any(server.state == "offline" and server.silent is None for server in servers)  # of a new leader
        return not led or unheard or any(server.state == "behind" for server in servers)


async def settled(see: Callable[[], Awaitable[Seen]], pause: float = PAUSE) -> Seen:
    """Looks until nobody catches up any more; who is still behind after ten seconds is unwell."""
    for _ in range(LOOKS):
        if not (seen := await see()).settling:
            return seen
        await asyncio.sleep(pause)
    return await see()


async def look(url: str, told: Told | None) -> Seen:
    """Looks at the servers through the JetStream API, and through the monitor of the one on this machine."""
    chosen = options.parse(url, settings.nats_credentials())
    if told and f"{told.reached}:{told.port}" not in {server.partition("//")[2] for server in chosen.servers}:
        told = None  # the server of this machine is not one of those
    meta = (monitor(told, "jsz").get("meta_cluster") or {}) if told else {}
    connected = _connected(told) if told and meta else None
    quorum = connected is None or 2 * len(connected) > int(meta.get("cluster_size") or 0)
    patient = msgspec.structs.replace(chosen, ready_timeout=ELECTION_S if quorum else chosen.timeout)
    wire = Wire(chosen)
    await wire.connect()
    try:
        names = Topology(chosen).belonging(await patiently(wire, partial(present, wire), patient))
        streams = await asyncio.gather(*(_looked_at(wire, name, patient, connected) for name in names))
        account = await wire.api(administration.account_info())
        version = wire.server
    except (ApiError, Unclear) as error:
        raise fault(error, chosen.url) from error
    finally:
        await wire.close()
    jsz = monitor(told, "jsz") if told else {}
    config = jsz.get("config") or {}
    return Seen(
        url=chosen.url,
        version=version,
        prefix=chosen.prefix,
        servers=tuple(_servers(jsz.get("meta_cluster") or {}, streams, told, connected)),
        streams=tuple(streams),
        storage=int(jsz.get("storage") or account.get("storage") or 0),
        max_storage=int(config.get("max_storage") or (account.get("limits") or {}).get("max_storage") or -1),
        health=monitor(told, "healthz") if told else {},
        varz=monitor(told, "varz") if told else {},
    )


def _connected(told: Told) -> set[str]:
    """Return the servers of the cluster that the one of this machine is connected to, and itself."""
    return {told.called} | {str(route.get("remote_name")) for route in monitor(told, "routez").get("routes") or ()}


async def _looked_at(wire: Wire, name: str, patient: options.Options, connected: set[str] | None) -> SeenStream:
    """Look at a stream. One whose servers are all away answers nothing, and is shown without a leader."""

    async def ask(seconds: float) -> dict[str, Any]:
        return await wire.api(topology.stream_info(name), seconds)

    try:
        return _stream(await patiently(wire, ask, patient), connected)
    except (ApiError, Unclear) as error:
        if isinstance(error, ApiError) and error.error == DENIED:
            raise
        return SeenStream(name=name, leader="", replicas=1, servers=(), messages=0, bytes=0, max_bytes=-1)


def _stream(told: dict[str, Any], connected: set[str] | None) -> SeenStream:
    config, state, cluster = told["config"], told["state"], told.get("cluster") or {}
    leader = str(cluster.get("leader") or "")
    followers = [_peer(peer, connected) for peer in cluster.get("replicas") or ()]
    leads = [SeenServer(name=leader, leads=True)] if leader else []
    return SeenStream(
        name=config["name"],
        leader=leader,
        replicas=int(config.get("num_replicas", 1)),
        servers=tuple(leads + followers),
        messages=int(state["messages"]),
        bytes=int(state["bytes"]),
        max_bytes=int(config.get("max_bytes", -1)),
        subjects=int(state.get("num_subjects", 0)),
    )


def _peer(told: dict[str, Any], connected: set[str] | None) -> SeenServer:
    """Read how a leader sees a server. Whether there is a connection to it decides whether it answers."""
    name, active = str(told["name"]), int(told.get("active") or 0)
    silent = round(active / NANO, 1) if active or told.get("current") else None
    away = told.get("offline") or silent is None or silent > SILENT_S
    if connected is not None:
        away = name not in connected
        silent = silent or 0.0
    state = "offline" if away else "up" if told.get("current") else "behind"
    return SeenServer(name=name, state=state, lag=int(told.get("lag") or 0), silent=silent)


def _servers(
    meta: dict[str, Any], streams: Iterable[SeenStream], told: Told | None, connected: set[str] | None
) -> list[SeenServer]:
    """Return all servers that anybody has named.

    The leader of the group that places streams knows how far the others are; who does not lead only hears the leader.
    """
    seen: dict[str, SeenServer] = {}
    for stream in streams:
        for server in stream.servers:
            if server.name not in seen or server.state != "up":
                seen[server.name] = msgspec.structs.replace(server, leads=False)
    if not meta:
        if not seen and told:  # it holds no stream yet
            return [SeenServer(name=told.called, leads=True)]
        only = len(seen) == 1
        named = {name: told.called if told and only and not told.cluster else name for name in seen}
        return [msgspec.structs.replace(server, name=named[name], leads=only) for name, server in sorted(seen.items())]
    leader = str(meta.get("leader") or "")
    for server in (_peer(peer, connected) for peer in meta.get("replicas") or ()):
        if told and leader == told.called:
            seen[server.name] = server
        elif server.name not in seen:
            state = "up" if server.state == "behind" else server.state
            seen[server.name] = msgspec.structs.replace(server, state=state, silent=None)
    if told and told.called not in seen:
        seen[told.called] = SeenServer(name=told.called)
    if leader and seen.get(leader, SeenServer(name=leader)).state == "up":
        seen[leader] = SeenServer(name=leader, leads=True)
    return [seen[name] for name in sorted(seen)]
