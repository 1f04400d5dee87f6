"""What is wrong with the servers of a store, and what to do."""

import shutil
from typing import Final

from tsuzuki.backends import Check, amount
from tsuzuki.backends.nats.streams import OLDEST
from tsuzuki.errors import BadUsage
from tsuzuki.servers import binary
from tsuzuki.servers.configuration import Told
from tsuzuki.servers.looking import Seen, SeenStream
from tsuzuki.servers.place import Place
from tsuzuki.servers.process import last_lines, monitor, running

LITTLE_SPACE: Final = 500 << 20
NEARLY: Final = 0.9
_THREE: Final = 3


def here(place: Place) -> list[Check]:
    """Looks at the server of this machine without asking it: its process, its disk."""
    told = place.told()
    if told is None:
        return []
    pid = running(place)
    free = shutil.disk_usage(place.folder).free
    return [
        _program(),
        Check(
            "process",
            ok=pid is not None,
            text=f"{told.called} is process {pid}"
            if pid
            else f"{told.called} does not run; its log: {last_lines(place)}",
            do="" if pid else f"tsuzuki nats up --dir {place.folder}",
        ),
        Check(
            "disk",
            ok=free > LITTLE_SPACE,
            text=f"{amount(free)} free in {place.folder}",
            do="" if free > LITTLE_SPACE else "free some, or tsuzuki purge --older-than 30d",
        ),
    ]


def _program() -> Check:
    try:
        judgement = binary.judge()
    except BadUsage as error:
        return Check("program", ok=False, text=str(error))
    forged = judgement.kind == "forged"
    do = f"end the server, and reinstall {binary.PACKAGE} from a source that you trust" if forged else ""
    return Check("program", ok=not forged, text=judgement.text, do=do)


def lost(told: Told | None) -> list[Check]:
    """Says, where a cluster does not answer, which of its servers the one of this machine has no connection to."""
    meta = (monitor(told, "jsz").get("meta_cluster") or {}) if told else {}
    if told is None or not meta:
        return []
    heard = {route.get("remote_name") for route in monitor(told, "routez").get("routes") or ()}
    gone = sorted(peer["name"] for peer in meta.get("replicas") or () if peer["name"] not in {told.called, *heard})
    if not gone:
        return []
    size = max(int(meta.get("cluster_size") or 0), len(gone) + 1)
    text = f"{size - len(gone)} of {size} servers run, and {size // 2 + 1} must before anything can be written"
    do = "start them: tsuzuki nats up on their machines"
    return [Check("lost", ok=False, text=f"{', '.join(gone)}: {text}", do=do)]


def examined(seen: Seen) -> list[Check]:
    """Judges what was seen."""
    return [
        _version(seen),
        *_health(seen),
        _servers(seen),
        _leader(seen),
        *(_stream(stream) for stream in seen.streams),
        _copies(seen),
        _room(seen),
        *_durability(seen),
    ]


def _version(seen: Seen) -> Check:
    old = tuple(map(int, seen.version.split(".")[:2])) < OLDEST
    return Check(
        "server", ok=not old, text=f"nats-server {seen.version}", do="upgrade it to 2.11 or newer" if old else ""
    )


def _health(seen: Seen) -> list[Check]:
    if not seen.health:
        return []
    well = seen.health.get("status") == "ok"
    text = "the server of this machine is well" if well else f"it says: {seen.health.get('error')}"
    return [Check("health", ok=well, text=text, do="" if well else "wait a minute; if it stays so, look at its log")]


def _servers(seen: Seen) -> Check:
    gone = [server.name for server in seen.servers if server.state == "offline"]
    behind = [f"{server.name} ({server.lag} writes)" for server in seen.servers if server.state == "behind"]
    count = len(seen.servers)
    if gone:
        one = len(gone) == 1
        text = f"{', '.join(gone)} {'does' if one else 'do'} not answer"
        machine = "its machine" if one else "their machines"
        do = (
            f"tsuzuki nats up on {machine}; where a machine is gone for good, join with another one, then "
            "tsuzuki nats leave --name"
        )
        return Check("servers", ok=False, text=text, do=do)
    if behind:
        text = f"not yet caught up: {', '.join(behind)}"
        return Check("servers", ok=False, text=text, do="wait until they have caught up")
    if count > 1 and count % 2 == 0:
        text = f"{count} servers stand no more losses than {count - 1}"
        return Check("servers", ok=False, text=text, do="tsuzuki nats join with one more, or leave with one")
    return Check("servers", ok=True, text=", ".join(server.name for server in seen.servers) or "no stream names one")


def _leader(seen: Seen) -> Check:
    leads = [server.name for server in seen.servers if server.leads]
    if leads:
        return Check("leader", ok=True, text=leads[0])
    alone = len(seen.servers) <= 1
    do = "start servers until more than half of them run; where all do, wait ten seconds"
    return Check(
        "leader", ok=alone, text="a single server" if alone else "none that is known here", do="" if alone else do
    )


def _stream(stream: SeenStream) -> Check:
    copies = f"{stream.replicas} replicas" if stream.replicas > 1 else "on one server"
    text = f"{stream.messages} messages, {amount(stream.bytes)}, {copies}"
    behind = [server for server in stream.behind if server.state == "behind"]  # who does not answer is told once, above
    todo = []
    if not stream.leader:
        text += "; it has no leader"
        todo.append("start its servers: most of them must run before anything can be written")
    if behind:
        text += "; " + ", ".join(f"{server.name} is behind ({server.lag})" for server in behind)
        todo.append("wait until they have caught up")
    if 0 < stream.max_bytes * NEARLY < stream.bytes and not stream.name.endswith("-log"):
        text += f"; nearly full ({amount(stream.max_bytes)})"
        todo.append("purge old runs, or raise max_bytes")
    return Check(stream.name, ok=not todo, text=text, do="; ".join(todo))


def _copies(seen: Seen) -> Check:
    once = [stream.name for stream in seen.streams if stream.replicas == 1]
    needless = len(seen.servers) >= _THREE and bool(once)
    prefix = f"&prefix={seen.prefix}" if seen.prefix not in ("", "tsuzuki") else ""
    return Check(
        "replicas",
        ok=not needless,
        text=f"{len(once)} streams are on one server only, though there are {len(seen.servers)}"
        if needless
        else "as they can be",
        do=f"open the store once as an admin: tsuzuki list --backend 'nats://HOST:4222?replicas=3{prefix}'"
        if needless
        else "",
    )


def _room(seen: Seen) -> Check:
    if seen.max_storage <= 0:
        return Check("room", ok=True, text=f"{amount(seen.storage)} used, no limit is set")
    full = seen.storage > seen.max_storage * NEARLY
    text = f"{amount(seen.storage)} of {amount(seen.max_storage)} used"
    return Check(
        "room", ok=not full, text=text, do="purge old runs, or give JetStream more (max_file_store)" if full else ""
    )


def _durability(seen: Seen) -> list[Check]:
    """A single server that does not sync every write may lose the last ones to a power cut."""
    config = ((seen.varz.get("jetstream") or {}).get("config")) or {}
    if not config or len(seen.servers) > 1:
        return []
    synced = bool(config.get("sync_always"))
    return [
        Check(
            "durability",
            ok=synced,
            text="every write is synced to the disk" if synced else "a power cut may cost the last writes",
            do=""
            if synced
            else "start it with tsuzuki nats up --sync always, or set sync_interval: always in its jetstream block",
        )
    ]
