"""Lines of a log: whole whoever writes at once, found where they are said to be, and apart from what was torn."""

import asyncio
import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tsuzuki.apps.notes import ProcessingItem, outputs
from tsuzuki.apps.notes.gathering import Gathering
from tsuzuki.apps.notes.outputs import Extracted, Kept
from tsuzuki.apps.notes.stagelog import Lines
from tsuzuki.errors import StoreClosed


def test_many_who_write_at_once_leave_whole_lines_where_they_were_told(tmp_path: Path) -> None:
    with Lines(tmp_path / "log.jsonl") as log, ThreadPoolExecutor(8) as threads:
        places = list(threads.map(lambda n: log.append({"n": n, "text": "x" * n}), range(400)))
        assert [json.loads(log.read(*place))["n"] for place in places] == list(range(400))
    written = [json.loads(line)["n"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sorted(written) == list(range(400))


def test_a_file_that_the_disk_does_not_sync_is_closed_all_the_same(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl")  # which takes lines, and cannot be synced
    log = Lines(tmp_path / "log.jsonl")
    before = len(list(Path("/proc/self/fd").iterdir()))
    log.append({"n": 1})
    with pytest.raises(OSError, match="Invalid argument"):
        log.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


async def test_a_full_disk_fails_those_who_wrote_and_the_next_line_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, log = Kept(tmp_path / "out.jsonl"), Lines(tmp_path / "log.jsonl")
    gathering, write, room = Gathering(kept, log), os.write, list[int]()

    def half(descriptor: int, text: bytes) -> int:
        if room and not room[0]:
            raise OSError(errno.ENOSPC, "no room")
        written = write(descriptor, text[: room[0]] if room else text)
        room[:] = [0] * len(room)
        return written

    monkeypatch.setattr(os, "write", half)
    one = {"record": 1, "text": "x" * 30}
    await asyncio.gather(*(gathering.write(f"i{n}", one, {"item_id": f"i{n}"}) for n in range(3)))
    room.append(20)  # for half a line
    failed = await asyncio.gather(*(gathering.write(f"j{n}", one, {}) for n in range(3)), return_exceptions=True)
    assert [getattr(each, "errno", None) for each in failed] == [errno.ENOSPC] * 3
    room.clear()
    await gathering.write("k", one, {"item_id": "k"})
    assert kept.get("k") == {"item_id": "k", **one}
    assert kept.get("j0") is None
    assert [json.loads(line)["item_id"] for line in log.path.read_text().splitlines()] == ["i0", "i1", "i2", "k"]
    kept.close()
    log.close()


def mapped(path: Path) -> int:
    """Gives how much of a file counts as memory of this process (kB)."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    begins = next(number for number, line in enumerate(lines) if line.endswith(str(path)))
    return int(next(line for line in lines[begins:] if line.startswith("Rss:")).split()[1])


def test_items_that_were_read_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_MAPPED", 1 << 20)
    text = "otter " * 20_000
    with (tmp_path / outputs.ITEMS).open("wb") as items, (tmp_path / outputs.INDEX).open("w") as index:
        for number in range(100):
            item = ProcessingItem(f"i{number}", Path("x"), content=text)
            line, begins = json.dumps(item.to_dict()).encode() + b"\n", items.tell()
            items.write(line)
            index.write(json.dumps({"item_id": item.item_id, "begins": begins, "length": len(line)}) + "\n")
    extracted = Extracted(tmp_path)
    assert all(extracted.item(f"i{number}").content == text for number in range(100))
    assert mapped(tmp_path / outputs.ITEMS) < 4 << 10, "of 12 MB"
    extracted.close()


async def test_what_comes_after_the_end_reaches_no_other_file(tmp_path: Path) -> None:
    kept, log = Kept(tmp_path / "out.jsonl"), Lines(tmp_path / "log.jsonl")
    gathering = Gathering(kept, log)
    kept.close()
    log.close()
    with (tmp_path / "other").open("wb"), (tmp_path / "another").open("wb"):  # they get the numbers that are free now
        with pytest.raises(StoreClosed):
            await gathering.write("a", {}, {})
        with pytest.raises(StoreClosed):
            log.append({})
    assert not (tmp_path / "other").stat().st_size + (tmp_path / "another").stat().st_size
