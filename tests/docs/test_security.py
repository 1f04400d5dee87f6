"""What SECURITY.md says of files is so."""

import os
import tempfile
from pathlib import Path

import pytest

from tsuzuki.backends.nats.kept import Shelf
from tsuzuki.presence import Presence

STRANGER = 12345


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in the temporary one in which a worker of this user holds its lock."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"tsuzuki-{os.getuid()}"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_is_only_for_its_owner_is_made_so(tmp_path: Path, folder: Path) -> None:
    presence = Presence("a")
    Shelf(tmp_path / "projections", "store").make()
    assert Path(presence.path).parent == folder
    assert [mode(folder), mode(tmp_path / "projections")] == [0o700, 0o700]
    presence.close()


def test_a_worker_trusts_no_lock_in_a_folder_that_somebody_else_has_made(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    os.chown(folder, STRANGER, -1)
    presence = Presence("a")
    assert presence.path == ""
    assert not list(folder.iterdir())
    presence.close()
