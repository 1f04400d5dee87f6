"""A file is there whole or not at all: through kills, full disks and several writers at once."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tsuzuki import wholefile

OLD, NEW = b"old" * 1000, b"new" * 2000

DYING = """
import os, signal, sys
from pathlib import Path
from tsuzuki import wholefile

path, left = Path(sys.argv[1]), 0

def count(frame, event, called):
    # The call that is made at this moment is the last thing that is not done any more.
    global left
    if event == "c_call" and (frame.f_code.co_filename.endswith("wholefile.py") or called.__name__ == "replace"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

for calls in range(1, 100):
    path.write_bytes(OLD)
    child = os.fork()
    if not child:
        left = calls
        sys.setprofile(count)
        wholefile.write(path, NEW)
        os._exit(0)
    killed = os.waitpid(child, 0)[1] != 0
    found = path.read_bytes()
    print("old" if found == OLD else "new" if found == NEW else "HALF", "killed" if killed else "ended")
    if not killed:
        break
"""


def test_a_kill_between_any_two_steps_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    script = DYING.replace("OLD", repr(OLD)).replace("NEW", repr(NEW))
    path = tmp_path / "kept"
    told = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told == sorted(told, key=["old killed", "new killed", "new ended"].index)
    assert told.count("old killed") > 4  # open, write, flush, sync, close
    assert told.count("new killed") > 1  # the folder is opened and synced
    assert told[-1] == "new ended"
    assert [each.name for each in tmp_path.iterdir()] == ["kept"], "what a kill has left aside is written over"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_its_rights_are_right_from_the_first_byte_on(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen, sync = tmp_path / "kept", list[int](), os.fsync

    def look(handle: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        sync(handle)

    monkeypatch.setattr(os, "fsync", look)
    wholefile.write(path, NEW, mode=mode)
    assert seen[0] == stat.S_IMODE(path.stat().st_mode) == mode
    assert seen[1:] == [stat.S_IMODE(tmp_path.stat().st_mode)], "the folder that has the name is synced after the file"


def test_a_disk_that_is_full_costs_nothing_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    wholefile.write(path, OLD)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        wholefile.write(path, NEW)
    assert path.read_bytes() == OLD
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(("number", "told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_only_a_disk_that_cannot_sync_folders_is_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: bool
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if told:
        with pytest.raises(OSError, match=os.strerror(number)):
            wholefile.sync_folder(tmp_path)
    else:
        wholefile.sync_folder(tmp_path)


def test_of_several_that_write_at_once_under_names_of_their_own_one_wins_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]

    def write(content: bytes) -> None:
        for turn in range(5):
            wholefile.write(path, content, aside=tmp_path / f"{content[:1].decode()}{turn}.part")

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
