"""What a run has already done, in 16 bytes a step or item: a million keys without a million strings.

Keys are held as 64-bit hashes in an open-addressing table. Two different keys of a run of a million items
share a hash with a probability of about 3 in 100 million; a recorded value is compared with its real key
when it is fetched, so that even then no wrong value is handed out.
"""

from array import array
from typing import Final

_MASK: Final = (1 << 64) - 1
_SMALLEST: Final = 64
_LARGE: Final = 1 << 16
"""Smaller tables grow fourfold: then they are cheap, and what is in them is moved less often."""


class KeyIndex:
    """Maps the hash of (step, key) to a number above 0; `expected` of them need not be moved."""

    __slots__ = ("_hashes", "_mask", "_used", "_values")

    def __init__(self, expected: int = 0) -> None:
        self._resize(max(_SMALLEST, 1 << (expected * 3 // 2 + 1).bit_length()))
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def _resize(self, size: int) -> None:
        self._mask = size - 1
        self._hashes = array("Q", bytes(8 * size))
        self._values = array("Q", bytes(8 * size))

    def get(self, step: str, key: str) -> int:
        """Gives the number stored for a key, or 0."""
        wanted = (hash((step, key)) & _MASK) or 1
        hashes, mask = self._hashes, self._mask
        slot = wanted & mask
        while found := hashes[slot]:
            if found == wanted:
                return self._values[slot]
            slot = (slot + 1) & mask
        return 0

    def put(self, step: str, key: str, value: int) -> bool:
        """Stores a number for a key; tells whether the key is new."""
        wanted = (hash((step, key)) & _MASK) or 1
        hashes, mask = self._hashes, self._mask
        slot = wanted & mask
        while (found := hashes[slot]) and found != wanted:
            slot = (slot + 1) & mask
        self._values[slot] = value
        if found:
            return False
        hashes[slot] = wanted
        self._used += 1
        if self._used * 3 > mask * 2:
            self._grow()
        return True

    def _grow(self) -> None:
        before, numbers, size = self._hashes, self._values, self._mask + 1
        self._resize(size * (4 if size < _LARGE else 2))
        hashes, values, mask = self._hashes, self._values, self._mask
        for wanted, value in zip(before, numbers, strict=True):
            if wanted:
                slot = wanted & mask
                while hashes[slot]:
                    slot = (slot + 1) & mask
                hashes[slot], values[slot] = wanted, value
