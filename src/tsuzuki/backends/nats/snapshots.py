"""A stream as one file, and back: the server's own copy, with its sequences, times and headers.

Consumers are not carried: they are made again by whoever needs them, and a queue is dealt out from its beginning.
"""

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from nats.aio.msg import Msg

from tsuzuki.backends.nats import administration, topology
from tsuzuki.backends.nats.faults import Unclear, refusal
from tsuzuki.backends.nats.wire import Wire

CHUNK: Final = 256 * 1024
"""How many bytes go into a message."""
SILENCE: Final = 60.0
"""How long the next piece is waited for (seconds): the server checks every message before it sends the first."""
_SAME: Final = ("messages", "bytes", "last_seq", "num_subjects", "num_deleted")
_GOOD: Final = ("", "100", "200", "204")


class Copied(NamedTuple):
    """What the server told of a stream when it was copied: at the beginning, and after the last byte.

    It goes on meanwhile: the copy of a stream that others use is of a moment between the two.
    """

    config: dict[str, Any]
    state: dict[str, Any]
    after: dict[str, Any]

    @property
    def quiet(self) -> bool:
        """Whether nothing happened meanwhile, so that it is known what the copy holds."""
        return all(self.state.get(name, 0) == self.after.get(name, 0) for name in (*_SAME, "first_seq"))


async def save(wire: Wire, stream: str, target: Path) -> Copied:
    """Writes a stream, as it is at one moment, to a file."""
    inbox, pieces = wire.inbox(), asyncio.Queue[Msg]()
    listening = await wire.subscribe(inbox, pieces.put)
    try:
        request = {"deliver_subject": inbox, "chunk_size": CHUNK, "no_consumers": True, "jsck": True}
        told = await wire.api(administration.snapshot_stream(stream), SILENCE, **request)
        with target.open("wb") as file:
            while data := await _piece(wire, stream, pieces):
                file.write(data)
    finally:
        await wire.unsubscribe(listening)
    after = await wire.api(topology.stream_info(stream), SILENCE)
    return Copied(told["config"], told["state"], after["state"])


async def _piece(wire: Wire, stream: str, pieces: "asyncio.Queue[Msg]") -> bytes:
    """Gives the next piece; nothing after the last one."""
    try:
        async with asyncio.timeout(SILENCE):
            message = await pieces.get()
    except TimeoutError:
        raise Unclear(f"the copy of {stream} stopped: nothing came for {SILENCE:g} s") from None
    if not message.data:
        headers = message.headers or {}
        if headers.get("Status", "") not in _GOOD:
            raise Unclear(f"the copy of {stream} was cut off ({headers.get('Description') or headers.get('Status')})")
    elif message.reply:
        await wire.tell(message.reply, b"")  # it sends so much ahead, and no more
    return message.data


async def load(wire: Wire, source: Path, copied: Copied) -> None:
    """Makes a stream of a file; the server refuses one that is there."""
    stream = copied.config["name"]
    told = await wire.api(
        administration.restore_stream(stream), SILENCE, True, config=copied.config, state=copied.state
    )
    with source.open("rb") as file:
        while data := file.read(CHUNK):
            _accepted((await wire.ask(told["deliver_subject"], data, timeout=SILENCE, again=True)).data)
    _accepted((await wire.ask(told["deliver_subject"], b"", timeout=SILENCE, again=True)).data)


def _accepted(answer: bytes) -> None:
    error = msgspec.json.decode(answer).get("error") if answer else None
    if error:
        raise refusal(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))


def differences(copied: Copied, found: dict[str, Any]) -> list[str]:
    """Compares what a stream holds with what was copied; what may expire by itself may be less."""
    if not copied.quiet:
        least, most, last = copied.state.get("last_seq", 0), copied.after.get("last_seq", 0), found.get("last_seq", 0)
        return [] if least <= last <= most else [f"last_seq is {last}, not from {least} to {most}"]
    expires = bool(copied.config.get("max_age") or copied.config.get("allow_msg_ttl"))
    names = ("last_seq",) if expires else _SAME
    if copied.state.get("messages") and not expires:  # of a stream that is empty, the first is told in two ways
        names = (*names, "first_seq")
    wrong = [name for name in names if found.get(name, 0) != copied.state.get(name, 0)]
    if expires and found.get("messages", 0) > copied.state.get("messages", 0):
        wrong.append("messages")
    return [f"{name} is {found.get(name, 0)}, not {copied.state.get(name, 0)}" for name in wrong]
