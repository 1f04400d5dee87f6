"""A server that could not write once refuses every later write, also when the disk has room again: seen in its log.

Only a new start helps. So whoever keeps a server alive looks here now and then.
"""

import contextlib
import shutil
from typing import Final

from tsuzuki.servers.place import Place

ENOUGH: Final = 32 * 1024 * 1024
"""A disk with so much room (bytes) is worth a new start."""
_REFUSALS: Final = (b"JetStream failed to store a msg", b"resources, will be DISABLED")
_AT_ONCE: Final = 1024 * 1024


class Fullness:
    """What the log of a server says about its writes since it was started."""

    def __init__(self, place: Place) -> None:
        self._log, self._folder = place.log, place.folder
        self._read = self._size()
        self._overlap = b""
        self.refuses = False
        """Whether the server has refused a write for want of a disk that takes it."""

    def look(self) -> bool:
        """Reads on in the log; tells whether the server refuses writes although there is room."""
        self.refuses = self.refuses or self._says_so()
        return self.refuses and shutil.disk_usage(self._folder).free >= ENOUGH

    def begin_anew(self) -> None:
        """Forgets what the log says so far: the server was started anew."""
        self._read, self._overlap, self.refuses = self._size(), b"", False

    def _says_so(self) -> bool:
        size = self._size()
        if size < self._read:  # somebody emptied it
            self._read = 0
        self._read = max(self._read, size - _AT_ONCE)
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(self._read)
            news = self._overlap + log.read(_AT_ONCE)
            self._read, self._overlap = log.tell(), news[-64:]
            return any(words in news for words in _REFUSALS)
        return False

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0
