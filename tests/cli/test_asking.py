"""`tsuzuki cancel` and `tsuzuki resume`."""

import json

from tests.cli.conftest import Terminal
from tsuzuki.testing.stopwatch import Stopwatch


def test_a_cancel_from_a_second_terminal_stops_async_work_within_a_second(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    with Stopwatch() as since:
        told = terminal.tsuzuki("cancel", "1").stdout
        assert "CANCELLING: requested" in told
        terminal.until(lambda: terminal.row().status == "CANCELLED")
    row = terminal.row()
    assert row.cancel_asked_at is not None
    settled = terminal.lines("export", "1")[-1]["at"]
    assert settled - row.cancel_asked_at - since.lost < 1
    terminal.end(process, code=7)
    assert row.done == 10


def test_a_cancel_that_waits_tells_what_it_cut_off(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    told = terminal.json("cancel", "1", "--wait", "--reason", "enough")
    assert told["status"] == "CANCELLED"
    assert told["cut"] == {"never_started": 6, "finished_anyway": 0, "interrupted": 4}
    terminal.end(process, code=7)


def test_a_cancel_of_a_run_that_nobody_executes_is_settled_at_once(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    process.kill()
    process.communicate()
    assert "CANCELLED: nobody was executing it" in terminal.tsuzuki("cancel", "1").stdout


def test_a_cancel_of_an_ended_run_says_how_it_ended(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    assert "had ended already: COMPLETED" in terminal.tsuzuki("cancel", "1", code=1).stdout
    assert terminal.json("cancel", "1", code=1)["had_ended"] is True


def test_a_cancelled_run_is_resumed_where_it_was(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    terminal.tsuzuki("cancel", "1", "--wait")
    terminal.end(process, code=7)
    terminal.open_gate()
    ended = terminal.tsuzuki("resume", "1")
    assert ended.stdout == "380\n"
    assert "continuing run 1 of gated: 10 recorded" in ended.stderr
    assert len(terminal.calls()) == 24


def test_an_interrupted_run_is_resumed_from_any_folder(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    process.kill()
    process.communicate()
    elsewhere = Terminal(terminal.folder / "deep")
    elsewhere.folder.mkdir()
    elsewhere.open_gate()
    shown = elsewhere.json("resume", "1", "--data-dir", "../.tsuzuki")
    assert (shown["status"], shown["result"]) == ("COMPLETED", 380)


def test_resuming_a_completed_run_tries_only_its_failed_items(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b","c"]', code=6)
    terminal.bad()
    ended = terminal.tsuzuki("resume", "1", "--json")
    assert json.loads(ended.stdout)["result"] == ["A", "B", "C"]
    assert terminal.calls().count("b") == 2
    assert len(terminal.calls()) == 4


def test_what_failed_can_be_kept(terminal: Terminal) -> None:
    terminal.bad("b")
    process = terminal.start("run", "flows.py:mixed")
    terminal.until(lambda: terminal.calls() == ["a", "b", "endless"])
    terminal.tsuzuki("cancel", "1")
    terminal.until_cancel_seen()
    terminal.open_gate()
    terminal.end(process, code=7)
    terminal.bad()
    terminal.tsuzuki("resume", "1", "--keep-failed", code=6)
    assert terminal.calls().count("b") == 1


def test_a_resumed_run_may_fail_again(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    assert "b is bad" in terminal.tsuzuki("resume", "1", code=5).stderr


def test_there_is_nothing_to_resume_in_a_run_that_went_well(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    ended = terminal.tsuzuki("resume", "1", code=1)
    assert "nothing to resume" in ended.stderr
    assert "[ERR-TSUZUKI-0112]" in ended.stderr


def test_a_run_that_somebody_executes_is_not_resumed(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    assert "[ERR-TSUZUKI-0113]" in terminal.tsuzuki("resume", "1", code=1).stderr
    terminal.open_gate()
    terminal.end(process)


def test_a_flow_that_has_moved_is_named(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    terminal.bad()
    (terminal.folder / "flows.py").rename(terminal.folder / "moved.py")
    assert "there is no file" in terminal.tsuzuki("resume", "1", code=1).stderr
    assert "is 'partly'" in terminal.tsuzuki("resume", "1", "--flow", "moved.py:partly", code=1).stderr
    assert terminal.row().status == "FAILED"
    assert terminal.json("resume", "1", "--flow", "moved.py:strict")["result"] == ["B"]


def test_a_shared_run_is_only_asked_to_go_on(terminal: Terminal) -> None:
    terminal.submit_shared()
    assert "CANCELLED" in terminal.tsuzuki("cancel", "1").stdout
    assert "a worker for 'default' goes on" in terminal.tsuzuki("resume", "1").stdout
    assert terminal.row().status == "PENDING"
    assert terminal.json("resume", "1")["status"] == "PENDING"
    assert "leave --flow out" in terminal.tsuzuki("resume", "1", "--flow", "flows.py:gated", code=1).stderr
