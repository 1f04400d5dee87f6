"""A NATS server of its own for each test that kills it or cuts it off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nats_server import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()
