"""Which subjects each role may write to and listen to, so that no process has rights that it does not need.

docs/nats.md shows these lists, and the tests give them to a server: there is no other copy.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from tsuzuki.backends.nats import administration, topology
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.errors import BadUsage

ANY: Final = "*"
ALL: Final = ">"
ANYONE: Final = "RUN"


class Permissions(msgspec.Struct, frozen=True):
    """What a user may write to and listen to; `respond` lets it answer whoever asked it, once."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    respond: bool = False

    def __or__(self, other: "Permissions") -> "Permissions":
        """Gives the rights of both: those of a process that has two roles."""
        return Permissions(
            tuple(sorted({*self.publish, *other.publish})),
            tuple(sorted({*self.subscribe, *other.subscribe})),
            self.respond or other.respond,
        )

    def config(self) -> dict[str, Any]:
        """Writes them as the configuration of a server has them."""
        told: dict[str, Any] = {"publish": {"allow": list(self.publish)}, "subscribe": {"allow": list(self.subscribe)}}
        return {**told, "allow_responses": True} if self.respond else told


def viewer(names: Topology, inbox: str) -> Permissions:
    """Sees runs, journals, logs, workers and dead letters, but no API keys; changes nothing."""
    followed = (names.journal, names.state)
    reads = [
        *(topology.stream_info(stream) for stream in names.streams()),
        *(topology.direct_get(stream) for stream in names.streams() if stream != names.auth),
        *(topology.leader_get(stream) for stream in (*followed, names.blobs, names.objects, names.history)),
        *(topology.create_consumer(stream, ANY) for stream in followed),
        *(topology.next_messages(stream, ANY) for stream in followed),
        *(topology.delete_consumer(stream, ANY) for stream in followed),
    ]
    return _sorted(reads, [f"{inbox}.{ALL}", _any(names.lines(ANYONE)), names.all_requests])


def gateway(names: Topology, inbox: str) -> Permissions:
    """Sees everything, submits runs, asks for their cancelling and resuming, purges them, and takes in wheels.

    It reads API keys, and makes none.
    """
    writes = [
        topology.direct_get(names.auth),
        topology.leader_get(names.auth),
        names.number,
        names.all_chains,
        names.all_requests,
        names.all_tickets,
        names.all_blob_pieces,
        names.all_blob_records,
        names.all_hidden,
        names.all_reserve,
        names.all_documents,
        names.all_wheels,
        names.all_wheel_pieces,
        names.all_events,
        topology.purge_stream(names.objects),
        topology.delete_message(names.letters),
        _any(names.key("", "")),
        _any(names.once("", "")),
        *(topology.purge_stream(stream) for stream in (names.journal, names.state, names.log, names.blobs, names.work)),
    ]
    return viewer(names, inbox) | _sorted(writes)


def worker(names: Topology, inbox: str) -> Permissions:
    """Sees what a viewer sees, takes tickets, claims runs, writes their outcomes; submits neither runs nor wheels."""
    writes = [
        names.all_chains,
        names.all_tickets,
        topology.create_consumer(names.work, ANY),
        topology.consumer_info(names.work, ANY),
        topology.next_messages(names.work, ANY),
        topology.acknowledgements(names.work),
        topology.delete_message(names.work),
        _any(names.lines(ANYONE)),
        names.all_blob_pieces,
        names.all_blob_records,
        names.all_letters,
        names.all_workers,
        names.all_progress,
        names.all_documents,
        names.all_reserve,
        names.probe,
        _any(names.limit("rate", "")),
        _any(names.limit("places", "")),
        *(topology.purge_stream(stream) for stream in (names.state, names.log, names.blobs, names.work)),
    ]
    return viewer(names, inbox) | _sorted(writes, [names.all_wheels])


def admin(names: Topology, inbox: str) -> Permissions:
    """Has all rights on the store, makes, copies and deletes its streams among them; beyond it, it may name streams."""
    makes = [
        request(stream)
        for stream in names.streams()
        for request in (
            administration.create_stream,
            administration.update_stream,
            administration.delete_stream,
            topology.purge_stream,
            administration.snapshot_stream,
            administration.snapshot_received,
            administration.restore_stream,
            administration.restore_pieces,
        )
    ]
    everything = [subject for config in names.streams().values() for subject in config["subjects"]]
    return (
        gateway(names, inbox)
        | worker(names, inbox)
        | _sorted([*makes, *everything])
        | _sorted(
            [administration.account_info(), administration.stream_names(), names.restoring],
            [names.restoring],
            respond=True,
        )
    )


ROLES: Final[dict[str, Callable[[Topology, str], Permissions]]] = {
    "viewer": viewer,
    "gateway": gateway,
    "worker": worker,
    "admin": admin,
}


def permissions(role: str, names: Topology, inbox: str = "_INBOX") -> Permissions:
    """Gives the rights of a role, or of several joined by `+`."""
    parts = role.split("+")
    unknown = [part for part in parts if part not in ROLES]
    if unknown:
        raise BadUsage(f"there is no role {unknown[0]!r}; there are: {', '.join(ROLES)}")
    given = [ROLES[part](names, inbox) for part in parts]
    joined = given[0]
    for more in given[1:]:
        joined |= more
    return joined


def _any(subject: str) -> str:
    """Gives the subjects that differ in the last word."""
    return f"{subject.rpartition('.')[0]}.{ANY}"


def _sorted(publish: Iterable[str], subscribe: Iterable[str] = (), *, respond: bool = False) -> Permissions:
    return Permissions(tuple(sorted(publish)), tuple(sorted(subscribe)), respond)
