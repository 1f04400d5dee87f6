"""What an upload that never ended leaves behind, and that `doctor` sweeps it; nothing else goes."""

import os
import time
from pathlib import Path

import nats

from tests.nats_server import NatsServer
from tsuzuki.backends import Backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.backends.sqlite import SqliteBackend
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.contract.wheels import CONTENT, a_wheel, content_of, put

HOUR = 4000.0


async def checked(backend: Backend) -> str:
    return next(check.text for check in await backend.examine() if check.name == "wheels")


async def test_files_without_a_record_are_swept_once_nobody_can_be_writing_them(tmp_path: Path) -> None:
    backend = await SqliteBackend.open(tmp_path / "tsuzuki.db")
    kept = await put(backend, a_wheel())
    folder = tmp_path / "tsuzuki.db-wheels"
    for name in ("fresh.whl", "old.whl", ".part-old", ".part-fresh"):
        (folder / name).write_bytes(b"x")
        if "old" in name:
            os.utime(folder / name, (time.time() - HOUR, time.time() - HOUR))
    os.utime(folder / f"{kept.nuid}.whl", (0, 0))
    assert "2 left behind by a crash and swept" in await checked(backend)
    assert {path.name for path in folder.iterdir()} == {f"{kept.nuid}.whl", "fresh.whl", ".part-fresh"}
    assert await content_of(backend, kept) == CONTENT
    await backend.close()


async def test_pieces_without_a_wheel_are_swept_once_nobody_can_be_writing_them(nats_server: NatsServer) -> None:
    clock, prefix = ShiftedClock(), nats_server.fresh()
    backend = await NatsBackend.open(nats_server.url, clock=clock, prefix=prefix)
    kept = await put(backend, a_wheel())
    connection = await nats.connect(nats_server.url)
    await connection.jetstream().publish(f"$O.{prefix}_wheels.C.abandoned", b"x")
    await connection.close()
    assert "pieces of 0 uploads" in await checked(backend)
    clock.jump(HOUR)
    assert "pieces of 1 uploads" in await checked(backend)
    assert await content_of(backend, kept) == CONTENT
    await backend.remove()
    await backend.close()
