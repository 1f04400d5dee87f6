"""Processes that make and write the notes of a large import: the same notes, whoever is killed, none left behind."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_kills import journalled, session_of, successes
from tests.apps.notes.test_writing import sheet
from tests.cli.conftest import Terminal
from tsuzuki.apps.notes import extractive
from tsuzuki.apps.notes.presses import Lent, Presses
from tsuzuki.apps.notes.shelf import LEDGER
from tsuzuki.errors import StoreUnavailable

COUNT = 300
WITH_PRESSES = """
from tsuzuki.apps.notes import presses
from tsuzuki.cli.program import main
presses.ENOUGH = 100
main(prog_name="tsuzuki")
"""


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def children(process_id: int) -> list[int]:
    """Gives the processes that a process has started: presses."""
    try:
        tasks = list(Path(f"/proc/{process_id}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def frozen_while_writing(processes: list[int], vault: Path) -> bool:
    """Freezes processes, unless none of them is writing just then."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    if list(vault.glob(".*.part")):
        return True
    for process in processes:
        os.kill(process, signal.SIGCONT)
    return False


def test_what_a_killed_process_was_asked_for_is_done_all_the_same(tmp_path: Path) -> None:
    conversations = [
        (f"T{n}", f"**User**: Why {n}?\n\n**Assistant**: Otters swim. They eat {n} fish.") for n in range(9)
    ]
    expected = [extractive.note(title, text) for title, text in conversations]
    (tmp_path / "T.md").write_text("mine")
    presses = Presses(2)
    assert presses.made(conversations) == expected, "while none is there yet"
    wait_for(lambda: presses.ready == 2)
    found = [process.pid for process in presses.processes]
    assert presses.made(conversations) == expected
    names = presses.written(tmp_path, [sheet("T", f"i{n}") for n in range(3)])
    assert len({*names, "T.md"}) == 4
    missing = presses.written(tmp_path / "not there", [sheet("T", "i")])
    assert [type(error) for error in missing] == [StoreUnavailable], "a vault that is away is waited for"
    for press in found:
        os.kill(press, signal.SIGKILL)
        assert presses.made(conversations) == expected
    wait_for(lambda: (presses.made(conversations[:1]), presses.ready == 0)[1])
    assert list(presses.written(tmp_path, [sheet("T", "i0")])) == [names[0]], "its own, again"
    presses.close()
    assert not any(map(alive, found))


def test_processes_start_while_the_export_is_read_and_end_where_nobody_takes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.presses.ENOUGH", 10)
    before = set(children(os.getpid()))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert Lent(most=9).taken(1000) is None, "so many were never wanted"
    lent = Lent()
    lent.expect(9)
    assert set(children(os.getpid())) == before
    for number in (10, 11):
        lent.expect(number)
    found = set(children(os.getpid())) - before
    assert len(found) == 2
    lent.close()
    assert not any(map(alive, found))


def test_of_a_large_export_they_start_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.presses.LARGE", 1000)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    small.write_text("x" * 999)
    large.write_text("x" * 1000)
    before = set(children(os.getpid()))
    for lent, export in ((Lent(), small), (Lent(), tmp_path), (Lent(most=9), large)):
        lent.foresee(export)
        assert set(children(os.getpid())) == before
    lent = Lent()
    lent.foresee(large)
    presses = lent.taken(3)
    assert presses is not None
    assert len(presses.processes) == 2
    presses.close()


@pytest.mark.timeout(180)
def test_a_large_import_that_is_killed_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    written(tmp_path / "export/conversations.json", [claude(number) for number in range(COUNT)])
    process = terminal._start("-c", WITH_PRESSES, "notes", "import", "export", "--out", "vault", "-q")  # noqa: SLF001 - a command that needs less for its processes
    wait_for(lambda: children(process.pid) or process.poll() is not None)
    found = children(process.pid)
    wait_for(lambda: len(list((tmp_path / "vault").glob("*.md"))) > COUNT // 4)
    wait_for(lambda: frozen_while_writing(found, tmp_path / "vault"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert found
    log = session_of(terminal) / "import/pipeline_stages.jsonl"
    loaded = len(successes(log, "load"))
    told = terminal.tsuzuki("notes", "resume", "-q").stdout.strip()
    assert told == f"{COUNT - loaded} success, 0 failed, {loaded} skipped"
    once = Counter({f"claude-{number:04d}": 1 for number in range(COUNT)})
    assert successes(log, "load") == successes(log, "transform") == once
    assert journalled(tmp_path / ".tsuzuki/tsuzuki.db") == 2 * COUNT
    for note in (tmp_path / "vault").glob("*.md"):
        note.write_text(note.read_text() + "my own words")
    for press in found:
        os.kill(press, signal.SIGCONT)
    wait_for(lambda: not any(map(alive, found)))
    left = [path for path in (tmp_path / "vault").iterdir() if path.name != LEDGER]
    assert len(left) == COUNT, "nothing half written is left either, and nothing comes after the end of a run"
    assert all(note.read_text().endswith("my own words") for note in left)
    terminal.leave()
