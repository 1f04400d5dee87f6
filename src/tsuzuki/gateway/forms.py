"""Forms with a large file: parsed as they come, the file written to disk in pieces, never held whole."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from tsuzuki.errors import BadRequest, StoreUnavailable, TooLarge
from tsuzuki.gateway.answers import announced
from tsuzuki.gateway.options import BODY_WAIT
from tsuzuki.privacy import make_folder

PIECE: Final = 1 << 20
AROUND: Final = 65_536
"""So much more than its file may a form be; all its other fields together are smaller."""


class Form:
    """The fields of a form, one of them a file."""

    def __init__(self, wanted: str, file: IO[bytes], most: int) -> None:
        self.file = file
        self.filename: str | None = None
        """What the file is called; None: there was none."""
        self.size = 0
        self.fields: dict[str, str] = {}
        self.over = False
        self._wanted, self._most, self._small = wanted, most, 0
        self._digest = hashlib.sha256()
        self._waiting = bytearray()
        self._header = self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._name = ""
        self._text = bytearray()

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return self._digest.hexdigest()

    def parser(self, boundary: bytes) -> MultipartParser:
        """Gives what parses the body into this form."""
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": self._on_field,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": self._on_end,
                "on_end": self._finish,
            },
        )

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._text.clear()
        if self._name == self._wanted and self.filename is None and b"filename" in options:
            self.filename = options[b"filename"].decode("utf-8", "replace")
            self._name = ""

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._name:
            self._small += end - start
            if self._small > AROUND:
                raise TooLarge(f"request too large: fields beside the file have at most {AROUND} bytes")
            self._text += data[start:end]
            return
        self.size += end - start
        if self.size > self._most:
            raise TooLarge
        self._digest.update(memoryview(data)[start:end])
        self._waiting += data[start:end]

    def _on_end(self) -> None:
        if self._name:
            self.fields[self._name] = self._text.decode("utf-8", "replace")

    def _finish(self) -> None:
        self.over = True

    async def write(self, least: int = PIECE) -> None:
        """Writes what has gathered to the file, where it is enough."""
        if len(self._waiting) >= least:
            piece, self._waiting = self._waiting, bytearray()
            try:
                await asyncio.to_thread(self.file.write, piece)
            except OSError as error:
                raise StoreUnavailable(f"there is no room for an upload in the data directory: {error}") from error


@asynccontextmanager
async def form_of(request: Request, wanted: str, most: int, folder: Path) -> AsyncIterator[Form]:
    """Reads a form with a file of at most so many bytes, which is in the folder, without a name, until the end.

    Raises `TooLarge` as soon as that is known; a client that falls silent is not waited for.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if announced(request) > most + AROUND:
        raise TooLarge
    await asyncio.to_thread(make_folder, folder)
    with await asyncio.to_thread(_unnamed, folder) as file:
        form = Form(wanted, file, most)
        if kind == b"multipart/form-data" and options.get(b"boundary"):
            try:
                await _fill(form, form.parser(options[b"boundary"]), request)
            except (FormParserError, UnicodeError, KeyError, LookupError, ValueError) as error:
                raise BadRequest(f"invalid request: the form cannot be read: {error}") from None
        yield form


def _unnamed(folder: Path) -> IO[bytes]:
    """Gives a file that is gone with whoever has it open; not in /tmp, which often is memory."""
    return tempfile.TemporaryFile(dir=folder)


async def _fill(form: Form, parser: MultipartParser, request: Request) -> None:
    stream = aiter(request.stream())
    try:
        while True:
            async with asyncio.timeout(BODY_WAIT):
                piece = await anext(stream, None)
            if piece is None:
                break
            parser.write(piece)
            await form.write()
    except TimeoutError:
        raise BadRequest("invalid request: the body did not arrive in time") from None
    except ClientDisconnect:
        raise BadRequest("invalid request: the client left before its request was complete") from None
    if not form.over:
        raise BadRequest("invalid request: the form cannot be read: its end is missing")
    await form.write(1)
