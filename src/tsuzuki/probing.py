"""Whether a store takes writes: tried with one as large as a run may want to make, and taken back."""

from typing import Final

from tsuzuki.backends import Backend
from tsuzuki.errors import StoreError, StoreUnavailable

KIND: Final = "probe"
SIZE: Final = 262_144
"""A disk without room for so many bytes is full (bytes)."""


async def try_writing(backend: Backend, name: str) -> None:
    """Writes something and removes it again; raises `StoreUnavailable` where the store does not take it."""
    try:
        await backend.put_record(KIND, name, bytes(SIZE))
        await backend.drop_record(KIND, name)
    except StoreUnavailable:
        raise
    except StoreError:
        return  # it answers, though not to this
