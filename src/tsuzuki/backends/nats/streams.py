"""Makes the streams of a store where they are missing, keeps those that are there, and looks them over."""

from typing import Any, Final

from tsuzuki.backends import Check
from tsuzuki.backends.nats import topology
from tsuzuki.backends.nats.faults import NOT_FOUND, ApiError, Unclear, fault
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import StoreUnavailable

OLDEST: Final = (2, 11)
"""The first version of the server that gives several messages at once, and forgets a message after a time."""
_KEPT: Final = ("subjects", "retention", "max_msgs_per_subject", "discard_new_per_subject", "allow_direct")
"""What must be as we would make it; limits are the operator's."""
KILO: Final = 1024


async def prepare(wire: Wire, names: Topology, options: Options) -> int:
    """Makes sure that all streams are there; gives how many replicas they have."""
    version = tuple(int(part) for part in wire.server.split("-")[0].split(".")[:2] if part.isdigit())
    if version and version < OLDEST:
        raise StoreUnavailable(f"{options.url} is nats-server {wire.server}; Tsuzuki needs 2.11 or newer")
    replicas = 1
    try:
        for name, config in names.streams().items():
            found = await _kept(wire, name) or await wire.api(topology.create_stream(name), **config)
            _check(options, name, config, found["config"])
            replicas = max(replicas, int(found["config"].get("num_replicas", 1)))
    except (ApiError, Unclear) as error:
        raise fault(error, options.url) from error
    return replicas


async def _kept(wire: Wire, name: str) -> dict[str, Any] | None:
    try:
        return await wire.api(topology.stream_info(name))
    except ApiError as error:
        if error.error == NOT_FOUND:
            return None
        raise


def _check(options: Options, name: str, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    for setting in _KEPT:
        if setting in wanted and found.get(setting) != wanted[setting]:
            raise StoreUnavailable(
                f"{options.url}: the stream {name} has {setting}={found.get(setting)!r}, not {wanted[setting]!r}; "
                "it is not ours, or was changed: choose another prefix, or set it right"
            )


async def remove(wire: Wire, names: Topology) -> None:
    """Deletes the streams of a store with all that they hold."""
    for name in names.streams():
        try:
            await wire.api(topology.delete_stream(name))
        except ApiError as error:
            if error.error != NOT_FOUND:
                raise


async def examine(wire: Wire, names: Topology, runs: int) -> list[Check]:
    """Looks over the server and the streams."""
    checks = [Check("server", ok=True, text=f"nats-server {wire.server}")]
    for name in names.streams():
        info = await wire.api(topology.stream_info(name))
        state, config, cluster = info["state"], info["config"], info.get("cluster") or {}
        behind = [peer["name"] for peer in cluster.get("replicas") or () if not peer.get("current")]
        full = 0 < config.get("max_bytes", -1) * 9 // 10 < state["bytes"] and config.get("discard") == "new"
        text = f"{state['messages']} messages, {state['bytes'] / KILO**2:.1f} MB, {config['num_replicas']} replicas"
        if behind:
            text += f"; behind: {', '.join(behind)}"
        if full:
            text += "; nearly full: purge old runs, or raise max_bytes"
        checks.append(Check(name, ok=not behind and not full, text=text))
    info = await wire.api(topology.stream_info(names.journal))
    chains = int(info["state"].get("num_subjects", 0))
    agree = chains >= runs
    text = f"{runs} runs are listed, {chains} chains are kept (with those of purged runs, for a day)"
    return [*checks, Check("journals", ok=agree, text=text)]
