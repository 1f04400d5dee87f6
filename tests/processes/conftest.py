"""Each test of processes has a folder of its own to start them in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.leave()
