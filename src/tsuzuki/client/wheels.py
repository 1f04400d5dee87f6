"""The requests about wheels, as values, and how a download becomes a file."""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final, Self, TypeAlias
from urllib.parse import quote

from tsuzuki.client import shapes
from tsuzuki.client.calls import Call, given
from tsuzuki.errors import StoreError

Content: TypeAlias = bytes | IO[bytes] | PathLike[str]
"""The content of a wheel: bytes, an open file, or where it is; only bytes are ever in memory as a whole."""
PATIENCE: Final = 600.0
"""How long the gateway may look at a wheel and store it (seconds)."""
DIGEST: Final = "X-Wheel-SHA256"


def list_wheels() -> Call[list[shapes.WheelView]]:
    """Lists wheels."""
    return Call("GET", "/wheels")


def list_wheel_history(
    limit: int | None = None, wheel_name: str | None = None, action: str | None = None
) -> Call[list[shapes.WheelEvent]]:
    """Lists what happened to wheels."""
    return Call("GET", "/wheels/history", given(limit=limit, wheel_name=wheel_name, action=action))


def upload_wheel(
    filename: str, content: bytes | IO[bytes], replace: bool = True, tags: Sequence[str] | None = None
) -> Call[shapes.WheelView]:
    """Uploads a wheel."""
    form = {"replace": str(replace).lower(), "tags": ",".join(tags or ())}
    file = (filename, content, "application/octet-stream")
    return Call("POST", "/wheels", files={"wheel": file}, form=form, timeout=PATIENCE)


def delete_wheel(wheel_name: str) -> Call[shapes.DeletedWheel]:
    """Deletes a wheel."""
    return Call("DELETE", path_of(wheel_name))


def path_of(wheel_name: str) -> str:
    """Gives the path of a wheel."""
    return f"/wheels/{quote(wheel_name, safe='')}"


def opened(content: Content) -> AbstractContextManager[Any]:
    """Opens what is to be uploaded."""
    return Path(content).open("rb") if isinstance(content, PathLike) else nullcontext(content)


class Saving:
    """A download on its way into a file: written aside, and named once its digest is right."""

    def __init__(self, target: Path, digest: str) -> None:
        self._target, self._told = target, digest
        self._part = target.with_name(f"{target.name}.part")
        self._digest = hashlib.sha256()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        return self

    def write(self, piece: bytes) -> None:
        """Takes a piece."""
        if self._file is not None:
            self._digest.update(piece)
            self._file.write(piece)

    def __exit__(self, kind: object, *raised: object) -> None:
        if self._file is not None:
            self._file.close()
        if kind is None and self._digest.hexdigest() == self._told:
            self._part.replace(self._target)
            return
        self._part.unlink(missing_ok=True)
        if kind is None:
            raise StoreError(f"what was downloaded is not {self._target.name}: its digest differs; try again")
