"""Whoever comes while another leaves, or is looked at, is there all the same, and is seen to be."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tsuzuki.backends import WorkerRecord
from tsuzuki.errors import Conflict
from tsuzuki.presence import Presence, is_gone, this_host

NOW = 1_750_000_000.0


def seen(presence: Presence) -> bool:
    record = WorkerRecord(id="a", host=this_host(), presence=presence.path, heartbeat_at=NOW)
    return not is_gone(record, one_machine=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the locks, apart from that of other tests."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"tsuzuki-{os.getuid()}"


def test_a_worker_whose_file_was_cleaned_away_is_not_taken_for_dead_and_makes_it_anew(folder: Path) -> None:
    there = Presence("a", "tests of presence")
    record = WorkerRecord(id="a", host=this_host(), presence=there.path, heartbeat_at=NOW)
    shutil.rmtree(folder)
    assert not is_gone(record, one_machine=True), "the lease decides"
    assert not is_gone(record, one_machine=True, now=NOW + 30)
    assert is_gone(record, one_machine=True, now=NOW + 90), "it has no file, and was silent"
    there.renew()
    assert Path(there.path).exists()
    assert not is_gone(record, one_machine=True, now=NOW + 90)
    there.close(told=False)
    assert is_gone(record, one_machine=True), "its lock is free"


def test_files_of_workers_that_were_killed_long_ago_are_removed_by_the_next_one(folder: Path) -> None:
    lives, killed, just_killed = (Presence(name) for name in ("lives", "killed", "just killed"))
    for presence in (lives, killed):
        os.utime(presence.path, (0, 0))
    killed.let_go()
    just_killed.let_go()
    Presence("next").close()
    assert {path.name for path in folder.iterdir()} == {Path(each.path).name for each in (lives, just_killed)}
    lives.close()


def test_one_who_comes_while_another_of_its_name_leaves_is_seen_to_live(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving, lock = Presence("a", "tests of presence"), fcntl.flock

    def lock_late(file: Any, how: int) -> None:
        leaving.close()  # the file is open by now; its name goes before it is locked
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    coming = Presence("a", "tests of presence")
    monkeypatch.undo()
    assert seen(coming)
    coming.close()


def test_to_look_whether_one_lives_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, looks = fcntl.flock, [BlockingIOError(), BlockingIOError()]

    def lock_while_others_look(file: Any, how: int) -> None:
        if looks:
            raise looks.pop()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_while_others_look)
    there = Presence("b", "tests of presence")
    monkeypatch.undo()
    assert seen(there)
    with pytest.raises(Conflict, match="a worker called 'b' is at work here already"):
        Presence("b", "tests of presence")
    there.close()
