"""All streams of a store as a folder of files, and back into a server that has none of them."""

import asyncio
import contextlib
import logging
import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from nats.aio.msg import Msg

from tsuzuki.backends import manifest
from tsuzuki.backends.manifest import Manifest, Stream
from tsuzuki.backends.nats import administration, burials, options, snapshots, topology
from tsuzuki.backends.nats.faults import NOT_FOUND, ApiError, Unclear, fault
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.snapshots import Copied
from tsuzuki.backends.nats.streams import present, refuse_half_restored, restoring
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import SystemClock
from tsuzuki.errors import NewerStore, PlaceTaken, StoreError, StoreUnavailable
from tsuzuki.lifecycle import stamp

logger: Final = logging.getLogger("tsuzuki.nats")

SETTLING: Final = 30.0
"""How long a cluster may take until a restored stream has a leader that knows what it holds (seconds)."""
_LOOK: Final = 0.1
_TRIES: Final = 30
"""How often a bucket is copied that others write to all the while."""
_ANSWER: Final = 1.0
"""How long the answer of another restore is waited for (seconds)."""


async def backup(url: str, folder: Path, defaults: dict[str, str]) -> Manifest:
    """Copies every stream of a store into a folder, while others work."""
    async with _connected(url, defaults) as (wire, chosen):
        names = Topology(chosen)
        streams = names.belonging(await present(wire))
        if names.journal not in streams:
            raise StoreUnavailable(f"there is no store at {chosen.url}; check the address and prefix=")
        refuse_half_restored(chosen, (await wire.api(topology.stream_info(names.journal)))["config"])
        # Tickets come first: those of runs that are submitted meanwhile are made up for, but a ticket whose run is not
        # in the journal that was copied would be refused, and become a dead letter.
        copies = {name: await _saved(wire, name, folder) for name in sorted(streams, key=names.work.__ne__)}
        taken = [copies[name] for name in streams]
        journal = taken[0]
        return Manifest(
            kind=manifest.NATS,
            store=chosen.url,
            taken_at=stamp(SystemClock().now()),
            version=int(journal.config.get("metadata", {}).get(topology.LAYOUT_MARK, 1)),
            pieces=tuple([await asyncio.to_thread(manifest.piece, folder, each.file) for each in taken]),
            streams=tuple(taken),
            counts={"messages": sum(_least(each) for each in taken)},
            purged=tuple(await burials.since(wire, names, journal.state)),
        )


def _least(each: Stream) -> int:
    """Gives how many messages a copy has at least: some may have gone while it was made."""
    return min(int(each.state["messages"]), int((each.after or each.state)["messages"]))


async def _saved(wire: Wire, name: str, folder: Path) -> Stream:
    """Copies a stream; a bucket until nobody wrote to it meanwhile.

    A value takes the place of the one before it. If that happens while the bucket is copied, the server takes the old
    one out of the copy too, and may not have the new one in it: the key would be lost.
    """
    file, tries = f"{name}.snapshot", 0
    while True:
        copied = await snapshots.save(wire, name, folder / file)
        if copied.quiet or not _is_bucket(copied.config):
            return Stream(name, file, *copied)
        tries += 1
        if tries >= _TRIES:
            logger.warning("%s never rested while it was copied: keys that were written just then may be missing", name)
            return Stream(name, file, *copied)
        await asyncio.sleep(_LOOK * random.random())  # out of step with those who write now and then


def _is_bucket(config: dict[str, Any]) -> bool:
    """Tells whether a value takes the place of another; a queue refuses it instead, and its tickets are made up for."""
    return config.get("max_msgs_per_subject") == 1 and config.get("discard_new_per_subject") is not True


async def restore(folder: Path, url: str, defaults: dict[str, str]) -> Manifest:
    """Makes the streams of a backup on a server that has none of the store's; all of them, or none."""
    made = manifest.read(folder, manifest.NATS)
    if made.version > topology.LAYOUT:
        raise NewerStore(
            f"{folder} was made by a newer Tsuzuki (its layout is {made.version}, this one knows {topology.LAYOUT}); "
            "upgrade tsuzuki"
        )
    if made.version < topology.LAYOUT:
        raise StoreError(
            f"{folder} was made by an earlier Tsuzuki (its layout is {made.version}, not {topology.LAYOUT}); "
            "restore it with that one"
        )
    await asyncio.to_thread(manifest.refuse_flawed, folder, made)
    async with _connected(url, defaults) as (wire, chosen):
        names = Topology(chosen)
        _refuse_other_names(made, names, chosen)
        mark = uuid.uuid4().hex
        async with _alone(names, chosen, mark):
            await _make_room(wire, names, made, chosen)
            messages = await _load_all(wire, made, folder, chosen, mark)
    return replace(made, counts={"messages": messages})


@contextlib.asynccontextmanager
async def _alone(names: Topology, chosen: Options, mark: str) -> AsyncIterator[None]:
    """Refuses where another restore is at work, and answers others that this one is, until it has ended.

    It listens before it asks, and of two that ask at the same time the one with the lower mark goes on. It does so on
    a connection of its own: on the one that brings a stream, servers hear nothing else until they have stored it.
    """
    voice, begun, gives_way = Wire(chosen), False, False

    async def answer(asked: Msg) -> None:
        nonlocal gives_way
        other = asked.data.decode()
        if other != mark and (begun or mark < other):
            await voice.tell(asked.reply, b"+OK")
        elif other != mark:
            gives_way = True

    await voice.connect()
    try:
        await voice.subscribe(names.restoring, answer)
        with contextlib.suppress(Unclear):  # nobody answers
            await voice.ask(names.restoring, mark.encode(), timeout=_ANSWER)
            gives_way = True
        if gives_way:
            raise _other_restore(chosen)
        begun = True
        yield
    finally:
        await voice.close()


def _other_restore(chosen: Options) -> PlaceTaken:
    return PlaceTaken(
        f"another restore into {chosen.url} is under way; wait until it has ended, then look at its store"
    )


async def _make_room(wire: Wire, names: Topology, made: Manifest, chosen: Options) -> None:
    """Makes sure that nothing is there; what a restore left that was cut off is removed, and a store never used."""
    there = set(await present(wire))
    taken = set(names.belonging(there)) | (there & {each.name for each in made.streams})
    if not taken:
        return
    cut = names.journal in there and await _restored_by(wire, names)
    if not cut and not await _unused(wire, names, taken):
        raise PlaceTaken(
            f"{chosen.url} is not empty: it has {', '.join(sorted(taken))}; restore into servers that have none of "
            "them (tsuzuki nats up --dir NEW starts one)"
        )
    if cut:
        logger.warning("%s is only half restored, by a restore that was cut off: it is begun anew", chosen.url)
    await _remove(wire, [*sorted(taken - {names.journal}), names.journal])


async def _unused(wire: Wire, names: Topology, streams: set[str]) -> bool:
    """Tells whether a store was only looked at so far, which makes one: it never held anything, and nobody works."""
    if names.state in streams:
        told = await wire.api(topology.stream_info(names.state), subjects_filter=names.all_workers)
        if told["state"].get("subjects"):
            return False
    infos = [await wire.api(topology.stream_info(name)) for name in sorted(streams - {names.state})]
    return all(info["state"]["last_seq"] == 0 for info in infos)


async def _restored_by(wire: Wire, names: Topology) -> str:
    """Tells which restore the journal comes from, as long as that one has not ended."""
    return restoring((await wire.api(topology.stream_info(names.journal)))["config"])


def _refuse_other_names(made: Manifest, names: Topology, chosen: Options) -> None:
    if not any(each.name == names.journal for each in made.streams):
        raise StoreError(
            f"the backup is of {made.store}, whose streams have other names than those of {chosen.url}; "
            "give the address with the prefix= that it was made with"
        )


async def _load_all(wire: Wire, made: Manifest, folder: Path, chosen: Options, mark: str) -> int:
    """Makes all streams, the journal first, which says until the end that they are not all there; counts messages."""
    begun: list[str] = []
    names, messages, whole = Topology(chosen), 0, {}
    try:
        for each in made.streams:
            begun.append(each.name)
            config = {**each.config, "num_replicas": chosen.replicas}
            if each.name == names.journal:
                whole, config = config, _marked(config, mark)
            copied = Copied(config, each.state, each.after or each.state)
            await snapshots.load(wire, folder / each.file, copied)
            messages += await _settled(wire, each.name, copied)
        await burials.repeat(wire, names, made.purged)
        await _complete(wire, names, mark, whole, chosen)
    except BaseException as error:
        # Cut off in the middle, the server may keep a part of a stream: what is not whole is not left behind.
        ours = await asyncio.shield(_undo(wire, names, mark, begun))
        if not ours and isinstance(error, ApiError):
            raise _other_restore(chosen) from error
        raise
    return messages


async def _complete(wire: Wire, names: Topology, mark: str, journal: dict[str, Any], chosen: Options) -> None:
    """Says that all streams are there, unless this one stood still and another restore has taken it for cut off."""
    if await _restored_by(wire, names) != mark:
        raise _other_restore(chosen)
    await wire.api(administration.update_stream(names.journal), SETTLING, **journal)


def _marked(config: dict[str, Any], mark: str) -> dict[str, Any]:
    said = {topology.LAYOUT_MARK: topology.RESTORING, topology.RESTORING_MARK: mark}
    return {**config, "metadata": {**(config.get("metadata") or {}), **said}}


async def _undo(wire: Wire, names: Topology, mark: str, begun: list[str]) -> bool:
    """Removes what a restore has made; tells whether the store is not that of another one meanwhile."""
    try:
        if await _restored_by(wire, names) != mark:
            return False
    except ApiError:  # not even the journal is there
        pass
    except Unclear as error:
        logger.warning("%s may be left half restored; restore again: %s", names.journal, error)
        return True
    await _remove(wire, begun[::-1])
    return True


async def _remove(wire: Wire, streams: list[str]) -> None:
    """Deletes streams; the journal comes last, so that whatever is left is known to be no store."""
    for name in streams:
        try:
            await wire.api(administration.delete_stream(name))
        except ApiError as error:
            if error.error != NOT_FOUND:
                logger.warning("a part of the stream %s is left behind; delete it: %s", name, error)
        except Unclear as error:
            logger.warning("a part of the stream %s may be left behind; delete it: %s", name, error)


async def _settled(wire: Wire, name: str, copied: Copied) -> int:
    """Waits until the stream tells what it holds, and makes sure that this is what was copied; counts its messages."""
    until = SystemClock().monotonic() + SETTLING
    while True:
        found: dict[str, Any] = {}
        try:
            found = (await wire.api(topology.stream_info(name)))["state"]
            wrong = snapshots.differences(copied, found)
        except Unclear as error:
            wrong = [str(error)]
        if not wrong:
            return int(found["messages"])
        if SystemClock().monotonic() > until:
            raise StoreError(
                f"the stream {name} is not what was backed up: {'; '.join(wrong)}; what was restored is removed again. "
                "Is somebody still at work in this store? End its workers and gateways, and restore again"
            )
        await asyncio.sleep(_LOOK)


@contextlib.asynccontextmanager
async def _connected(url: str, defaults: dict[str, str]) -> AsyncIterator[tuple[Wire, Options]]:
    chosen = options.parse(url, defaults)
    wire = Wire(chosen)
    await wire.connect()
    try:
        yield wire, chosen
    except (ApiError, Unclear) as error:
        raise fault(error, chosen.url) from error
    finally:
        await wire.close()
