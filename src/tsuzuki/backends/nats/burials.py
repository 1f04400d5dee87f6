"""Runs that are purged while the streams of a store are copied: found by their tombstones, and buried in the copy too.

The server removes messages in the middle of a copy, and streams are copied one after the other: of such a run, the
copy may hold a part of its chain, and not its large values.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tsuzuki.backends.nats import blobs, frames, topology
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire

AT_ONCE: Final = 100
"""How many messages of the journal are read at once."""


async def since(wire: Wire, names: Topology, state: dict[str, Any]) -> list[str]:
    """Names the runs that were purged since the journal told that it held this."""
    now = (await wire.api(topology.stream_info(names.journal)))["state"]
    if now["last_seq"] - state["last_seq"] == now["messages"] - state["messages"]:  # nothing was taken out
        return []
    found: set[str] = set()
    seq = state["last_seq"]
    while seq < now["last_seq"]:
        request = {"seq": seq + 1, "next_by_subj": names.all_chains, "batch": AT_ONCE}
        answers = await wire.many(topology.direct_get(names.journal), msgspec.json.encode(request))
        if not answers:
            break
        for answer in answers:
            headers = answer.headers or {}
            seq = int(headers["Nats-Sequence"])
            if frames.decode(answer.data).row is None:
                found.add(topology.last_token(headers["Nats-Subject"]))
    return sorted(found)


async def repeat(wire: Wire, names: Topology, runs: Iterable[str]) -> None:
    """Removes runs from the streams of a store that nobody uses yet."""
    for run in runs:
        for stream, subject in (
            (names.journal, names.chain(run)),
            (names.journal, names.request(run)),
            (names.log, names.lines(run)),
        ):
            await wire.api(topology.purge_stream(stream), filter=subject)
        await blobs.remove(wire, names, run)
