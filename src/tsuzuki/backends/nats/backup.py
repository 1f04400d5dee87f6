"""All streams of a store as a folder of files, and back into a server that has none of them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from tsuzuki.backends import manifest
from tsuzuki.backends.manifest import Manifest, Stream
from tsuzuki.backends.nats import administration, options, snapshots, topology
from tsuzuki.backends.nats.faults import NOT_FOUND, ApiError, Unclear, fault
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.snapshots import Copied
from tsuzuki.backends.nats.topology import Topology
from tsuzuki.backends.nats.wire import Wire
from tsuzuki.clock import SystemClock
from tsuzuki.errors import NewerStore, PlaceTaken, StoreError, StoreUnavailable
from tsuzuki.lifecycle import stamp

logger: Final = logging.getLogger("tsuzuki.nats")

SETTLING: Final = 30.0
"""How long a cluster may take until a restored stream has a leader that knows what it holds (seconds)."""
_LOOK: Final = 0.1


async def backup(url: str, folder: Path, defaults: dict[str, str]) -> Manifest:
    """Copies every stream of a store into a folder, while others work."""
    async with _connected(url, defaults) as (wire, chosen):
        names = Topology(chosen)
        streams = names.belonging(await _present(wire))
        if names.journal not in streams:
            raise StoreUnavailable(f"there is no store at {chosen.url}; check the address and prefix=")
        manifest.begin(folder)
        taken = [await _saved(wire, name, folder) for name in streams]
        journal = taken[0]
        made = Manifest(
            kind=manifest.NATS,
            store=chosen.url,
            taken_at=stamp(SystemClock().now()),
            version=int(journal.config.get("metadata", {}).get(topology.LAYOUT_MARK, 1)),
            pieces=tuple([await asyncio.to_thread(manifest.piece, folder, each.file) for each in taken]),
            streams=tuple(taken),
            counts={"messages": sum(int(each.state["messages"]) for each in taken)},
        )
        manifest.write(folder, made)
        return made


async def _saved(wire: Wire, name: str, folder: Path) -> Stream:
    file = f"{name}.snapshot"
    copied = await snapshots.save(wire, name, folder / file)
    return Stream(name, file, *copied)


async def restore(folder: Path, url: str, defaults: dict[str, str]) -> Manifest:
    """Makes the streams of a backup on a server that has none of the store's; all of them, or none."""
    made = manifest.read(folder, manifest.NATS)
    if made.version > topology.LAYOUT:
        raise NewerStore(
            f"{folder} was made by a newer Tsuzuki (its layout is {made.version}, this one knows {topology.LAYOUT}); "
            "upgrade tsuzuki"
        )
    await asyncio.to_thread(manifest.refuse_flawed, folder, made)
    async with _connected(url, defaults) as (wire, chosen):
        names = Topology(chosen)
        _refuse_other_names(made, names, chosen)
        present = set(await _present(wire))
        taken = set(names.belonging(present)) | (present & {each.name for each in made.streams})
        if taken:
            raise PlaceTaken(
                f"{chosen.url} is not empty: it has {', '.join(sorted(taken))}; restore into servers that have none of "
                "them (tsuzuki nats up --dir NEW starts one)"
            )
        await _load_all(wire, made, folder, chosen)
    return made


def _refuse_other_names(made: Manifest, names: Topology, chosen: Options) -> None:
    if not any(each.name == names.journal for each in made.streams):
        raise StoreError(
            f"the backup is of {made.store}, whose streams have other names than those of {chosen.url}; "
            "give the address with the prefix= that it was made with"
        )


async def _load_all(wire: Wire, made: Manifest, folder: Path, chosen: Options) -> None:
    begun: list[str] = []
    try:
        for each in made.streams:
            begun.append(each.name)
            config = {**each.config, "num_replicas": chosen.replicas}
            copied = Copied(config, each.state, each.after or each.state)
            await snapshots.load(wire, folder / each.file, copied)
            await _settled(wire, each.name, copied)
    except BaseException:
        # Cut off in the middle, the server may keep a part of a stream: what is not whole is not left behind.
        await asyncio.shield(_undo(wire, begun))
        raise


async def _undo(wire: Wire, begun: list[str]) -> None:
    for name in begun:
        try:
            await wire.api(topology.delete_stream(name))
        except ApiError as error:
            if error.error != NOT_FOUND:
                logger.warning("a part of the stream %s is left behind; delete it: %s", name, error)
        except Unclear as error:
            logger.warning("a part of the stream %s may be left behind; delete it: %s", name, error)


async def _settled(wire: Wire, name: str, copied: Copied) -> None:
    """Waits until the stream tells what it holds, and makes sure that this is what was copied."""
    until = SystemClock().monotonic() + SETTLING
    while True:
        try:
            wrong = snapshots.differences(copied, (await wire.api(topology.stream_info(name)))["state"])
        except Unclear as error:
            wrong = [str(error)]
        if not wrong:
            return
        if SystemClock().monotonic() > until:
            raise StoreError(
                f"the stream {name} is not what was backed up: {'; '.join(wrong)}; what was restored is removed again. "
                "Is somebody still at work in this store? End its workers and gateways, and restore again"
            )
        await asyncio.sleep(_LOOK)


async def _present(wire: Wire) -> list[str]:
    """Names all streams of the server."""
    found: list[str] = []
    while True:
        told: dict[str, Any] = await wire.api(administration.stream_names(), None, offset=len(found))
        some = told.get("streams") or []
        found += some
        if not some or len(found) >= int(told.get("total", 0)):
            return found


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
