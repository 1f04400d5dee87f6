"""Whoever comes while another leaves, or is looked at, is there all the same, and is seen to be."""

import fcntl
from typing import Any

import pytest

from tsuzuki.backends import WorkerRecord
from tsuzuki.errors import Conflict
from tsuzuki.presence import Presence, is_gone, this_host


def seen(presence: Presence) -> bool:
    return not is_gone(WorkerRecord(id="a", host=this_host(), presence=presence.path), one_machine=True)


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
    assert not seen(coming)


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
