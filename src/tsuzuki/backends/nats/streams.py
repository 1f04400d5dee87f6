"""Makes the streams of a store where they are missing, keeps those that are there, and looks them over."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tsuzuki.backends import Check, amount
from tsuzuki.backends.nats import administration, objects, topology
from tsuzuki.backends.nats.faults import DENIED, FULL, NOT_FOUND, WITHOUT_JETSTREAM, ApiError, Unclear, fault
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.errors import NewerStore, StoreUnavailable

logger: Final = logging.getLogger("tsuzuki.nats")

OLDEST: Final = (2, 11)
"""The first version of the server that gives several messages at once, and forgets a message after a time."""
SMALLEST: Final = 1 << 20
"""How large a message every server must take (bytes): values up to 256 KB go into the journal, the result of a run
twice with its end, and what cannot be written down would be done again and again."""
_KEPT: Final = ("retention", "max_msgs_per_subject", "discard_new_per_subject", "allow_direct")
"""What must be as we would make it; limits are the operator's."""
_SEVERAL: Final = 2
_AGAIN: Final = 0.1
"""How long to wait before servers that have not found each other yet are asked again (seconds)."""
_TRY: Final = 0.5
"""How long the first answer is waited for: what was asked before servers have a leader is never answered (seconds)."""
_LONGEST_TRY: Final = 1.0
_TELL: Final = 3.0
"""After so many seconds people are told what is waited for."""


async def prepare(wire: Wire, names: Topology, options: Options) -> tuple[int, bool]:
    """Makes sure that all streams are there; gives how many replicas they have, and whether requests are kept."""
    if tuple(map(int, wire.server.split(".")[:2])) < OLDEST:
        raise StoreUnavailable(f"{options.url} is nats-server {wire.server}; Tsuzuki needs 2.11 or newer")
    if wire.largest < SMALLEST:
        raise StoreUnavailable(
            f"{options.url}: its max_payload is {wire.largest:,} bytes; raise it to {SMALLEST:,} or more"
        )
    wanted = names.streams()
    # The journal says whether the others may be made: in a store that is not for us nothing is.
    found = await _all_made(wire, options, {names.journal: wanted[names.journal]})
    refuse_half_restored(options, found[names.journal]["config"])
    _refuse_other_layouts(options, found[names.journal]["config"])
    found |= await _all_made(wire, options, {name: wanted[name] for name in wanted if name != names.journal})
    kept = {name: told["config"] for name, told in found.items()}
    wide = kept[names.work].get("subjects") == [names.all_work]
    if wide:
        kept[names.work] = {**kept[names.work], "subjects": wanted[names.work]["subjects"]}
    requests = await _widened(wire, names, kept, wanted[names.journal]["subjects"])
    for name, config in kept.items():
        _check(options, name, wanted[name], config)
    if wide:
        await _narrow(wire, names, kept[names.work])
    await _raise_replicas(wire, options, kept)
    replicas = max(int(config.get("num_replicas", 1)) for config in kept.values())
    # In a cluster somebody may raise it while we work: then only the leader surely has the last write.
    in_cluster = any((told.get("cluster") or {}).get("name") for told in found.values())
    return max(replicas, _SEVERAL if in_cluster else 1), requests


async def _raise_replicas(wire: Wire, options: Options, kept: dict[str, dict[str, Any]]) -> None:
    """Let more servers keep the streams of a store that was made with fewer replicas; never fewer.

    Only an admin may do that, and only if the cluster has enough servers. Otherwise the store is used as it is.
    """
    for name, config in kept.items():
        if int(config.get("num_replicas", 1)) >= options.replicas:
            continue
        raised = {**config, "num_replicas": options.replicas}
        try:
            await wire.api(administration.update_stream(name), **raised)
        except (ApiError, Unclear) as error:
            logger.warning(
                "%s: the stream %s cannot have %s replicas now: %s", options.url, name, options.replicas, error
            )
            return
        kept[name] = raised


async def _widened(wire: Wire, names: Topology, kept: dict[str, dict[str, Any]], subjects: list[str]) -> bool:
    """Lets requests into a journal of old, which has chains alone; tells whether it takes them.

    What else it takes was let in by a later version, and stays.
    """
    chains, *others = subjects
    taken = kept[names.journal].get("subjects") or []
    missing = [subject for subject in others if subject not in taken]
    if chains not in taken or not missing:
        return not missing
    kept[names.journal] = {**kept[names.journal], "subjects": [*taken, *missing]}
    try:
        await wire.api(administration.update_stream(names.journal), **kept[names.journal])
    except (ApiError, Unclear) as error:
        logger.debug("the stream %s takes no requests until an admin opens the store: %s", names.journal, error)
        return False
    return True


async def _all_made(wire: Wire, options: Options, wanted: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    try:
        async with asyncio.TaskGroup() as making:
            found = {name: making.create_task(_made(wire, options, name, wanted[name])) for name in wanted}
    except ExceptionGroup as errors:
        error = errors.exceptions[0]
        raise (fault(error, options.url) if isinstance(error, ApiError | Unclear) else error) from error
    return {name: task.result() for name, task in found.items()}


async def _made(wire: Wire, options: Options, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Gives what the server says of a stream, which is made where it is missing."""

    async def make(timeout: float) -> dict[str, Any]:
        return await _kept(wire, name, timeout) or await wire.api(administration.create_stream(name), timeout, **config)

    try:
        told: dict[str, Any] = await patiently(wire, make, options)
    except ApiError as error:
        if error.error == DENIED and name.lower() in error.text:  # the client tells of it in small letters
            raise StoreUnavailable(
                f"{options.url}: the stream {name} is missing, or this user may not {error.text}; "
                "open the store once with the rights of an admin, and give this user those of its role (docs/nats.md)"
            ) from error
        if error.error in FULL:
            raise StoreUnavailable(
                f"{options.url}: there is no room for the stream {name} ({error}); give JetStream more of its "
                "disk, free some of that, or ask for less with max_bytes= and max_log_bytes= in the address"
            ) from error
        raise
    return told


async def _narrow(wire: Wire, names: Topology, config: dict[str, Any]) -> None:
    """Lets only tickets into a work queue of old, which took whatever began like one and would never give it."""
    try:
        await wire.api(administration.update_stream(names.work), **config)
    except (ApiError, Unclear) as error:
        logger.debug("the stream %s is kept as it is, until an admin opens the store: %s", names.work, error)


async def patiently(wire: Wire, ask: Callable[[float], Awaitable[Any]], options: Options) -> Any:
    """Asks servers that may still be looking for each other, in short tries: a question may have been lost."""
    doubt, patience, now = Unclear("no answer"), _TRY, asyncio.get_running_loop().time
    began = now()
    while (left := began + options.ready_timeout - now()) > 0:
        try:
            return await ask(min(patience, left))
        except Unclear as error:
            doubt = error
        if not wire.has_jetstream:  # in a cluster others may have it, but they would have answered
            raise ApiError(503, WITHOUT_JETSTREAM, str(doubt))
        if now() - began >= _TELL:
            _tell_once(options.url, options.ready_timeout)
        patience = min(patience * 2, _LONGEST_TRY)
        await asyncio.sleep(_AGAIN)
    raise doubt


@functools.cache
def _tell_once(url: str, seconds: float) -> None:
    logger.warning("%s has no leader yet that answers; waiting for it, %g s at most", url, seconds)


async def _kept(wire: Wire, name: str, timeout: float) -> dict[str, Any] | None:
    try:
        return await wire.api(topology.stream_info(name), timeout)
    except ApiError as error:
        if error.error == NOT_FOUND:
            return None
        raise


def _check(options: Options, name: str, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuses a stream that lacks what we need; subjects beyond ours are those of a later version."""
    lacking = [subject for subject in wanted["subjects"] if subject not in (found.get("subjects") or ())]
    if lacking:
        raise StoreUnavailable(
            f"{options.url}: the stream {name} has subjects={found.get('subjects')!r}, and lacks {lacking!r}; "
            "it is not ours, or was changed: choose another prefix, or set it right"
        )
    for setting in _KEPT:
        if setting in wanted and found.get(setting) != wanted[setting]:
            raise StoreUnavailable(
                f"{options.url}: the stream {name} has {setting}={found.get(setting)!r}, not {wanted[setting]!r}; "
                "it is not ours, or was changed: choose another prefix, or set it right"
            )


def restoring(config: dict[str, Any]) -> str:
    """Tells by which restore a store was begun that has not become whole; empty: it is."""
    return str((config.get("metadata") or {}).get(topology.RESTORING_MARK, ""))


def refuse_half_restored(options: Options, journal: dict[str, Any]) -> None:
    """Refuses a store that a restore is just making, or was cut off in: what it lacks would seem never to have been."""
    if restoring(journal):
        raise StoreUnavailable(
            f"{options.url} is only half restored: a restore is at work, or was cut off; "
            "in that case restore again, which begins anew"
        )


def _refuse_other_layouts(options: Options, journal: dict[str, Any]) -> None:
    """Refuses a store that is laid out otherwise; one that says nothing of it is of the first layout."""
    layout = str((journal.get("metadata") or {}).get(topology.LAYOUT_MARK, "1"))
    if not layout.isdecimal() or int(layout) > topology.LAYOUT:
        raise NewerStore(
            f"{options.url} was made by a newer Tsuzuki (its layout is {layout}, this one knows {topology.LAYOUT}); "
            "upgrade tsuzuki here, or choose another prefix"
        )
    if int(layout) < topology.LAYOUT:
        raise StoreUnavailable(
            f"{options.url} was made by an earlier Tsuzuki (its layout is {layout}, this one's {topology.LAYOUT}), "
            "which kept large values where this one does not look; let its runs end there, and choose another prefix"
        )


async def present(wire: Wire, timeout: float | None = None) -> list[str]:
    """Names all streams of the server, those of others too; it tells so many at once and no more."""
    found: list[str] = []
    while True:
        told = await wire.api(administration.stream_names(), timeout, offset=len(found))
        some: list[str] = told.get("streams") or []
        found += some
        if not some or len(found) >= int(told.get("total", 0)):
            return found


async def remove(wire: Wire, names: Topology) -> None:
    """Deletes the streams of a store with all that they hold."""
    for name in names.streams():
        try:
            await wire.api(administration.delete_stream(name))
        except ApiError as error:
            if error.error != NOT_FOUND:
                raise


async def chains(wire: Wire, names: Topology) -> int:
    """Counts the chains that the journal has: all but what lies on its other subjects, which are few."""
    told = await wire.api(topology.stream_info(names.journal))
    of_chains = names.streams()[names.journal]["subjects"][0]
    others = [subject for subject in told["config"]["subjects"] if subject != of_chains]
    counted = [len(await objects.subjects(wire, names.journal, other)) for other in others]
    return int(told["state"].get("num_subjects", 0)) - sum(counted)


async def examine(wire: Wire, names: Topology, runs: int) -> list[Check]:
    """Looks over the server and the streams."""
    checks = [Check("server", ok=True, text=f"nats-server {wire.server}")]
    for name in names.streams():
        info = await wire.api(topology.stream_info(name))
        state, config, cluster = info["state"], info["config"], info.get("cluster") or {}
        behind = [peer["name"] for peer in cluster.get("replicas") or () if not peer.get("current")]
        full = 0 < config.get("max_bytes", -1) * 9 // 10 < state["bytes"] and config.get("discard") == "new"
        text = f"{state['messages']} messages, {amount(state['bytes'])}, {config['num_replicas']} replicas"
        todo = []
        if cluster and not cluster.get("leader"):
            text += "; it has no leader"
            todo.append("start its servers: most of them must run before anything can be written")
        if behind:
            text += f"; behind: {', '.join(behind)}"
            todo.append(f"wait until they have caught up, or start them; tsuzuki nats status shows {name}")
        if full:
            text += "; nearly full"
            todo.append("purge old runs, or raise max_bytes")
        checks.append(Check(name, ok=not todo, text=text, do="; ".join(todo)))
    kept = await chains(wire, names)
    agree = kept >= runs
    text = f"{runs} runs are listed, {kept} chains are kept (with those of purged runs, for a day)"
    do = "" if agree else "delete the folder of projections (docs/nats.md); it is built anew"
    return [*checks, Check("journals", ok=agree, text=text, do=do)]
