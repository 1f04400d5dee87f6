"""A process beside the run that makes notes offline and writes them: the interpreter of the run has no time for that.

It reads calls from its input, answers them on its output, and ends when nobody can call any more: a run that was killed
leaves none behind, and what it still asked for is dropped: by then another run may have written it, and somebody may
have edited that. What does not succeed here is answered with nothing, and tried again by who has called.
"""

import gc
import os
import signal
import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from tsuzuki.apps.notes import extractive
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.vault import Sheet, written

READY: Final = b""
"""What is said first, once everything is imported."""
CALLER: Final = os.getppid()
_LENGTH: Final = struct.Struct(">I")


class Make(msgspec.Struct, tag=True):
    """Asks for notes, of titles with texts."""

    conversations: list[tuple[str, str]]


class Write(msgspec.Struct, tag=True):
    """Asks for notes to be written into a vault."""

    vault: str
    sheets: list[Sheet]


Call = Make | Write
encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Call).decode
notes: Final = msgspec.msgpack.Decoder(list[Note]).decode
names: Final = msgspec.msgpack.Decoder(list[str | None]).decode


def put(pipe: BinaryIO, message: bytes) -> None:
    """Writes a message: its length, and itself."""
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:  # a pipe takes what it has room for
        left = left[pipe.write(left) :]


def take(pipe: BinaryIO) -> bytes:
    """Reads a message; raises EOFError where none comes any more."""
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return _exactly(pipe, length)


def _exactly(pipe: BinaryIO, length: int) -> bytes:
    parts: list[bytes] = []
    while length:
        part = pipe.read(length)
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def answered(call: bytes) -> bytes:
    """Does what is asked for."""
    asked = _decode(call)
    if isinstance(asked, Make):
        return encode([extractive.note(title, text) for title, text in asked.conversations])
    outcomes = written(Path(asked.vault), asked.sheets, lambda: os.getppid() == CALLER)
    return encode([None if isinstance(outcome, Exception) else outcome for outcome in outcomes])


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answers calls until there are none."""
    put(answers, READY)
    while True:
        try:
            call = take(calls)
        except EOFError:
            return
        put(answers, answered(call))


def main() -> None:
    """Serves whoever has started this process."""
    gc.freeze()
    gc.set_threshold(100_000)  # notes come and go, and refer to nothing that refers to them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the run, which then calls no more
    try:
        serve(open(0, "rb", buffering=0), open(1, "wb", buffering=0))  # noqa: SIM115 - as long as it lives
    except BrokenPipeError:
        sys.exit(1)
