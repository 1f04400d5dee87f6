"""`tsuzuki run`: results, params, exit codes, and going on where an earlier run stopped."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal
from tsuzuki import Status


def test_the_result_goes_to_stdout_and_all_else_to_stderr(terminal: Terminal) -> None:
    ended = terminal.tsuzuki("run", "flows.py:gated", "-p", "items=5")
    assert ended.stdout == "20\n"
    assert "run 1 of gated is COMPLETED" in ended.stderr
    assert "5 done" in ended.stderr


def test_a_text_is_printed_as_it_is(terminal: Terminal) -> None:
    ended = terminal.tsuzuki("run", "flows.py:chatty", "-p", "times=2")
    assert ended.stdout.splitlines()[-1] == "hello0 hello1"


def test_nothing_is_printed_for_no_result(terminal: Terminal) -> None:
    assert terminal.tsuzuki("run", "flows.py:nothing").stdout == ""


def test_quiet_shows_no_progress(terminal: Terminal) -> None:
    ended = terminal.tsuzuki("run", "flows.py:gated", "--quiet")
    assert (ended.stdout, ended.stderr) == ("380\n", "")


def test_json_is_one_object_whatever_the_flow_prints(terminal: Terminal) -> None:
    ended = terminal.tsuzuki("run", "flows.py:chatty", "--json")
    shown = json.loads(ended.stdout)
    assert "printed hello0" in ended.stderr
    assert shown["number"] == 1
    assert shown["status"] == "COMPLETED"
    assert shown["result"] == "hello0"
    assert shown["error"] is None
    assert (shown["done"], shown["failed"], shown["skipped"]) == (1, 0, 0)
    assert shown["run_id"] == terminal.row().id
    assert shown["continued"] is False


def test_params_come_as_json_as_text_from_files_and_from_stdin(terminal: Terminal) -> None:
    (terminal.folder / "params.json").write_text('{"items": 3}')
    assert terminal.tsuzuki("run", "flows.py:gated", "-p", "@params.json").stdout == "6\n"
    assert terminal.tsuzuki("run", "flows.py:gated", "--params", "params.json", "-p", "items=2").stdout == "2\n"
    assert terminal.tsuzuki("run", "flows.py:gated", "--params", "-", stdin='{"items": 4}').stdout == "12\n"
    names = terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a", "b"]')
    assert json.loads(names.stdout) == ["A", "B"]


def test_a_value_that_looks_like_a_number_stays_text_where_the_flow_wants_text(terminal: Terminal) -> None:
    assert terminal.json("run", "flows.py:chatty", "-p", "word=2024")["result"] == "20240"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["flows.py:gated", "-p", "items=many"], "items Input should be a valid integer"),
        (["flows.py:gated", "-p", "itms=3"], "itms"),
        (["flows.py:gated", "-p", "items"], "-p name=value"),
        (["flows.py:gated", "-p", "@nowhere.json"], "nowhere.json"),
        (["flows.py:gated", "--params", "flows.py"], "one JSON object"),
        (["flows.py:partly"], "names"),
        (["flows.py:absent"], "no flow 'absent'; it has chatty, gated"),
        (["flows.py:not_a_flow"], "not a flow"),
        (["flows.py:picky"], "only flows can be run"),
        (["flows.py"], "say which one"),
        (["absent.py:gated"], "no file absent.py"),
        (["absent.module:gated"], "no module absent.module"),
        ([":gated"], "FILE.py:flow"),
        (["flows.py:gated", "--frsh"], "--fresh"),
        ([], "Missing argument"),
    ],
)
def test_bad_arguments_are_told_in_one_line_and_leave_no_trace(
    terminal: Terminal, arguments: list[str], told: str
) -> None:
    ended = terminal.tsuzuki("run", *arguments, code=1)
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert len(ended.stderr.splitlines()) == 1
    assert told in ended.stderr
    assert "[ERR-TSUZUKI-" in ended.stderr
    assert not (terminal.folder / ".tsuzuki").exists()


def test_a_file_that_cannot_be_imported_shows_its_own_traceback(terminal: Terminal) -> None:
    (terminal.folder / "broken.py").write_text("def oops():\n    return nowhere\n\noops()\n")
    ended = terminal.tsuzuki("run", "broken.py:x", code=1)
    assert 'broken.py", line 2, in oops' in ended.stderr
    assert "importlib" not in ended.stderr
    assert "error: broken.py cannot be imported: NameError" in ended.stderr


def test_a_file_sees_its_neighbours_and_may_be_named_like_a_module_of_python(terminal: Terminal) -> None:
    inner = terminal.folder / "inner"
    inner.mkdir()
    (inner / "neighbour.py").write_text("WORD = 'next door'\n")
    (inner / "json.py").write_text(
        "from neighbour import WORD\nfrom tsuzuki import flow\n\n@flow\ndef only() -> str:\n    return WORD\n"
    )
    assert terminal.tsuzuki("run", "inner/json.py").stdout == "next door\n"


def test_a_flow_may_be_named_by_module_and_by_its_own_name(terminal: Terminal) -> None:
    assert terminal.json("run", "flows:chat-ty")["flow"] == "chat-ty"


def test_some_failed_items_are_exit_code_6(terminal: Terminal) -> None:
    terminal.bad("b")
    ended = terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b","c"]', code=6)
    assert json.loads(ended.stdout) == ["A", "C"]
    assert "tsuzuki items 1 --failed" in ended.stderr


def test_a_failed_run_is_exit_code_5_and_shows_the_traceback_of_the_user(terminal: Terminal) -> None:
    terminal.bad("b")
    ended = terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b"]', "--json", code=5)
    assert json.loads(ended.stdout)["status"] == "FAILED"
    assert "b is bad" in json.loads(ended.stdout)["error"]["message"]
    assert "in strict" in ended.stderr
    assert "src/tsuzuki" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("error: run 1 of strict failed: ")
    assert last.endswith("[ERR-TSUZUKI-0151]")


def test_sys_exit_in_a_task_fails_its_run_and_not_the_program(terminal: Terminal) -> None:
    (terminal.folder / "leaving.py").write_text(
        "import sys\nfrom tsuzuki import flow, task\n\n@task\ndef leave() -> None:\n    sys.exit(3)\n\n"
        "@task\nasync def leave_too() -> None:\n    sys.exit(4)\n\n"
        "@flow\ndef plain() -> None:\n    leave()\n\n@flow\nasync def loop() -> None:\n    await leave_too()\n"
    )
    assert "leave called sys.exit(3)" in terminal.json("run", "leaving.py:plain", code=5)["error"]["message"]
    assert "leave_too called sys.exit(4)" in terminal.json("run", "leaving.py:loop", code=5)["error"]["message"]


def test_a_failed_run_goes_on_with_what_failed(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b","c"]', code=5)
    terminal.bad()
    ended = terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b","c"]')
    assert "continuing run 1 of strict: 1 recorded" in ended.stderr
    assert terminal.calls() == ["a", "b", "b", "c"]


def test_a_killed_run_goes_on_where_it_was(terminal: Terminal) -> None:
    first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.kill()
    first.communicate()
    terminal.open_gate()
    ended = terminal.tsuzuki("run", "flows.py:gated", "-p", "hold=10", "--json")
    assert "continuing run 1 of gated: 10 recorded" in ended.stderr
    shown = json.loads(ended.stdout)
    assert (shown["result"], shown["done"], shown["continued"]) == (380, 20, True)
    assert all(terminal.calls().count(str(number)) == 1 for number in range(10))


def test_other_params_are_another_run(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    assert terminal.json("run", "flows.py:strict", "-p", 'names=["a"]')["number"] == 2


def test_fresh_starts_anew(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b"]', code=5)
    terminal.bad()
    shown = terminal.json("run", "flows.py:strict", "-p", 'names=["a","b"]', "--fresh")
    assert (shown["number"], shown["continued"]) == (2, False)
    assert terminal.calls() == ["a", "b", "a", "b"]


def test_a_run_that_continues_another_skips_what_that_has_done(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b"]')
    shown = terminal.json("run", "flows.py:partly", "-p", 'names=["a","b","c"]', "--continues", "1")
    assert (shown["number"], shown["skipped"], shown["done"]) == (2, 2, 1)
    assert sorted(terminal.calls()) == ["a", "b", "c"]  # a and b run side by side
    assert "run not found" in terminal.tsuzuki("run", "flows.py:nothing", "--continues", "77", code=1).stderr


def test_an_idempotency_key_gives_the_first_run_again(terminal: Terminal) -> None:
    first = terminal.json("run", "flows.py:gated", "--idempotency-key", "monday")
    again = terminal.json("run", "flows.py:gated", "--idempotency-key", "monday")
    assert first["run_id"] == again["run_id"]
    assert again["result"] == 380
    assert len(terminal.calls()) == 20
    other = terminal.tsuzuki("run", "flows.py:gated", "-p", "hold=3", "--idempotency-key", "monday")
    assert "'monday': run 1 of gated has it" in other.stderr
    assert len(terminal.calls()) == 20


def test_flow_run_in_a_script_and_the_command_share_their_runs(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b"]', code=5)
    terminal.bad()
    (terminal.folder / "script.py").write_text("import flows\nprint(flows.strict.run(names=['a', 'b']).number)\n")
    script = subprocess.run(
        [sys.executable, "script.py"], cwd=terminal.folder, capture_output=True, text=True, check=True
    )
    assert script.stdout == "1\n"
    assert terminal.calls() == ["a", "b", "b"]


def test_ctrl_c_lets_what_is_under_way_finish_and_begins_nothing_more(terminal: Terminal) -> None:
    first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.send_signal(signal.SIGINT)
    assert first.stderr is not None
    said = iter(first.stderr.readline, "")
    assert any("Finishing what is under way; press Ctrl-C again to stop at once" in line for line in said)
    terminal.open_gate()
    terminal.end(first, code=130)
    assert len(terminal.calls()) == 14
    assert "continuing run 1 of gated: 14 recorded" in terminal.tsuzuki("run", "flows.py:gated", "-p", "hold=10").stderr
    assert sorted(map(int, terminal.calls())) == list(range(20)), "none was done twice"


@contextmanager
def lost_terminals(handler: signal.Handlers) -> Iterator[None]:
    """Starts children that hear of a lost terminal, or do not: a child begins as its parent is.

    The tests themselves may have been started by `nohup`.
    """
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_is_closed_stops_a_run_as_ctrl_c_does_though_it_is_told_twice(terminal: Terminal) -> None:
    with lost_terminals(signal.SIG_DFL):
        first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.send_signal(signal.SIGHUP)
    assert first.stderr is not None
    said = iter(first.stderr.readline, "")
    assert any("Finishing what is under way" in line for line in said)
    first.send_signal(signal.SIGHUP)
    terminal.open_gate()
    terminal.end(first, code=130)
    assert len(terminal.calls()) == 14
    assert "continuing run 1 of gated: 14 recorded" in terminal.tsuzuki("run", "flows.py:gated", "-p", "hold=10").stderr


def test_who_is_told_not_to_hear_of_its_terminal_goes_on(terminal: Terminal) -> None:
    """As `nohup` does."""
    with lost_terminals(signal.SIG_IGN):
        first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.send_signal(signal.SIGHUP)
    terminal.open_gate()
    assert terminal.end(first).stdout == "380\n"


def test_ctrl_c_stops_cleanly_and_the_run_goes_on_later(terminal: Terminal) -> None:
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "0.5"
    first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.send_signal(signal.SIGINT)
    ended = terminal.end(first, code=130)
    assert "stopping; what has finished is kept" in ended.stderr
    assert ended.stderr.splitlines()[-1].endswith("[ERR-TSUZUKI-0153]")
    assert terminal.json("list")[0]["interrupted"] is True
    terminal.open_gate()
    again = terminal.tsuzuki("run", "flows.py:gated", "-p", "hold=10")
    assert "continuing run 1 of gated: 10 recorded" in again.stderr
    assert again.stdout == "380\n"


def test_ctrl_c_twice_leaves_at_once(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:stubborn")
    terminal.until(terminal.calls)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = iter(process.stderr.readline, "")
    assert any("stopping" in line for line in said)
    process.send_signal(signal.SIGINT)
    terminal.end(process, code=130)
    terminal.open_gate()
    assert terminal.json("run", "flows.py:stubborn")["continued"] is True


@pytest.mark.parametrize("flow", ["heedless", "heedless_items"])
def test_code_that_swallows_its_cancellation_is_left_behind_after_the_grace_period(
    terminal: Terminal, flow: str
) -> None:
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "0.2"
    process = terminal.start("run", f"flows.py:{flow}")
    terminal.until(terminal.calls)
    terminal.tsuzuki("cancel", "1", "--wait")
    ended = terminal.end(process, code=7)
    assert terminal.row().status is Status.CANCELLED
    *_, left, told = ended.stderr.splitlines()
    assert left.startswith("tsuzuki: left behind, because it goes on when it is cancelled: ")
    assert f"{flow} (" in left
    assert told.endswith("[ERR-TSUZUKI-0152]"), "and nothing after that"


def test_ctrl_c_once_leaves_code_that_swallows_it_behind(terminal: Terminal) -> None:
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "0.2"
    process = terminal.start("run", "flows.py:heedless")
    terminal.until(terminal.calls)
    process.send_signal(signal.SIGINT)
    ended = terminal.end(process, code=130)
    assert "left behind" in ended.stderr
    assert ended.stderr.splitlines()[-1].endswith("[ERR-TSUZUKI-0153]")


def test_a_script_goes_on_without_a_flow_that_swallows_its_cancellation(terminal: Terminal) -> None:
    (terminal.folder / "script.py").write_text(
        "import flows, tsuzuki.errors\n"
        "try:\n    flows.heedless.run()\n"
        "except tsuzuki.errors.RunStopped:\n    print(flows.gated.run(items=2).result)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=terminal.folder,
        env=os.environ | {"TSUZUKI_GRACE_SECONDS": "0.2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    terminal.processes.append(process)
    terminal.until(terminal.calls)
    terminal.tsuzuki("cancel", "1", "--wait")
    ended = terminal.end(process)
    assert ended.stdout == "2\n"
    [left] = ended.stderr.splitlines()
    assert "left behind" in left
    assert "heedless (" in left


def test_a_cancelled_run_is_exit_code_7(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10", "--json")
    terminal.until_held(recorded=10, calls=14)
    terminal.tsuzuki("cancel", "1")
    ended = terminal.end(process, code=7)
    assert json.loads(ended.stdout)["status"] == "CANCELLED"
    assert ended.stderr.splitlines()[-1].endswith("[ERR-TSUZUKI-0152]")


def test_a_run_cancelled_from_elsewhere_tells_what_that_cut_off(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10", "--json")
    terminal.until_held(recorded=10, calls=14)
    terminal.tsuzuki("cancel", "1")
    ended = terminal.end(process, code=7)
    told = "run 1 of gated is CANCELLED: 6 never started, 0 finished anyway, 4 interrupted (10 done)"
    assert told in ended.stderr.splitlines()
    assert json.loads(ended.stdout)["cut"] == {"never_started": 6, "finished_anyway": 0, "interrupted": 4}


def edit(terminal: Terminal) -> None:
    """Changes the flow `strict` so that it still does the same."""
    file = terminal.folder / "flows.py"
    before = file.read_text()
    after = before.replace(
        "found: list[str] = picky.map(names, concurrency=1)", "found = picky.map(names, concurrency=1)"
    )
    assert after != before
    file.write_text(after)


@pytest.mark.parametrize("again", [["run", "flows.py:strict", "-p", 'names=["a","b"]'], ["resume", "1"]])
@pytest.mark.parametrize("how", [[], ["--quiet"]])
def test_a_flow_that_has_changed_is_told_once_when_its_run_goes_on(
    terminal: Terminal, again: list[str], how: list[str]
) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b"]', code=5)
    assert "has changed" not in terminal.tsuzuki(*again, *how, code=5).stderr
    edit(terminal)
    told = [line for line in terminal.tsuzuki(*again, *how, code=5).stderr.splitlines() if "has changed" in line]
    assert len(told) == 1
    assert told[0].startswith("warning: flow strict has changed since the last attempt (")
    terminal.bad()
    assert "has changed" not in terminal.tsuzuki(*again, *how).stderr


def test_a_flow_that_has_changed_is_told_while_its_run_goes_on(terminal: Terminal) -> None:
    first = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    first.kill()
    first.communicate()
    file = terminal.folder / "flows.py"
    file.write_text(file.read_text().replace("range(items), hold=hold, concurrency=4", "range(items), hold=hold"))
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    assert process.stderr is not None
    assert any(line.startswith("warning: flow gated has changed") for line in iter(process.stderr.readline, ""))
    assert terminal.row().status == "RUNNING"
    terminal.open_gate()
    assert "has changed" not in terminal.end(process).stderr


def test_a_key_in_use_is_told_with_the_run_that_holds_it(terminal: Terminal) -> None:
    (terminal.folder / "keyed.py").write_text(
        "from flows import step\nfrom tsuzuki import flow\n\n"
        "@flow(key='one')\nasync def keyed(other: int = 0) -> int:\n    return sum(await step.map([1], hold=0))\n"
    )
    process = terminal.start("run", "keyed.py:keyed")
    terminal.until(terminal.calls)
    refused = terminal.tsuzuki("run", "keyed.py:keyed", "-p", "other=1", code=1)
    assert "[ERR-TSUZUKI-0111]" in refused.stderr
    terminal.open_gate()
    terminal.end(process)


def test_a_text_is_printed_as_it_is_also_into_a_pipe(terminal: Terminal) -> None:
    assert terminal.tsuzuki("run", "flows.py:tinted").stdout == "\x1b[31mred\x1b[0m\n"


def test_a_script_tells_of_a_flow_that_has_changed_as_the_command_does(terminal: Terminal) -> None:
    script = "import flows\nflows.strict.run(names=['a', 'b'])"
    terminal.bad("b")
    assert "has changed" not in terminal.python(script, code=1).stderr
    assert "has changed" not in terminal.python(script, code=1).stderr
    edit(terminal)
    told = [line for line in terminal.python(script, code=1).stderr.splitlines() if "has changed" in line]
    assert len(told) == 1
    assert told[0].startswith("tsuzuki: warning: flow strict has changed since the last attempt (")


def test_a_run_whose_file_is_gone_names_the_way_to_say_where_it_is(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["a","b"]', code=5)
    (terminal.folder / "flows.py").rename(terminal.folder / "moved.py")
    ended = terminal.tsuzuki("resume", "1", code=1)
    assert "flows.py" in ended.stderr
    assert "--flow FILE.py:strict" in ended.stderr


def test_whatever_starts_a_script_again_makes_no_call_twice(terminal: Terminal) -> None:
    shutil.copy(Path(__file__).with_name("arguments.py"), terminal.folder)
    terminal.interpreter("arguments.py", code=1)
    calls = terminal.calls()
    assert {"model", "function", "class", "client", "a", "d"} < set(calls)
    terminal.interpreter("-m", "arguments", code=1)
    assert terminal.calls() == calls
    terminal.tsuzuki("run", "arguments.py", code=5)
    assert terminal.calls() == calls
    (terminal.folder / "go").touch()
    assert terminal.tsuzuki("resume", "1").stdout == "done\n"
    assert terminal.calls() == calls
    assert terminal.row().attempt == 4


_INTERRUPTS_ITSELF = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""


def interrupt_at(terminal: Terminal, module: str) -> None:
    """Have every Python that starts in the folder send itself SIGINT when it begins to import a module."""
    (terminal.folder / "sitecustomize.py").write_text(_INTERRUPTS_ITSELF)
    terminal.environment |= {"INTERRUPT_AT": module, "PYTHONPATH": str(terminal.folder)}


@pytest.mark.parametrize("module", ["tsuzuki.context", "pydantic", "click", "tsuzuki.cli.workers", "sqlite3"])
def test_ctrl_c_while_the_command_is_still_being_loaded_shows_no_traceback(terminal: Terminal, module: str) -> None:
    interrupt_at(terminal, module)
    process = terminal.start("run", "flows.py:nothing")
    told = process.communicate(timeout=60)[1]
    assert process.returncode in (130, -signal.SIGINT), "in a shell both are 130"
    assert told == "interrupted\n"


@pytest.mark.parametrize("module", ["pydantic", "sqlite3"])
def test_ctrl_c_while_a_script_still_loads_tsuzuki_or_its_store_shows_no_traceback(
    terminal: Terminal, module: str
) -> None:
    interrupt_at(terminal, module)
    (terminal.folder / "script.py").write_text("import flows\nflows.nothing.run()\n")
    told = terminal.interpreter("script.py", code=-signal.SIGINT).stderr
    assert told == "interrupted\n"


def test_a_script_shows_its_own_lines_of_a_failure_and_none_of_ours(terminal: Terminal) -> None:
    script = "import flows\n\ndef start():\n    flows.{}\n\nstart()\n"
    terminal.bad("b")
    for call, told in (
        ("strict.run(names=['b'])", "tsuzuki.errors.RunFailure: run 1 of strict failed: "),
        ("strict.run(name='b')", "tsuzuki.errors.BadParams: flow strict"),
    ):
        (terminal.folder / "script.py").write_text(script.format(call))
        err = terminal.interpreter("script.py", code=1).stderr
        shown, _, rest = err.partition("tsuzuki.errors.")
        assert [line.strip() for line in shown.splitlines() if "File" in line] == [
            f'File "{terminal.folder}/script.py", line 6, in <module>',
            f'File "{terminal.folder}/script.py", line 4, in start',
        ]
        assert f"tsuzuki.errors.{rest}".startswith(told)
        assert "tsuzuki/script.py" not in err


def test_a_script_that_catches_a_failure_and_then_fails_itself_shows_that(terminal: Terminal) -> None:
    (terminal.folder / "script.py").write_text(
        "import flows, tsuzuki\n"
        "try:\n    flows.strict.run(name='b')\n"
        "except tsuzuki.TsuzukiError as error:\n    raise KeyError('mine') from error\n"
    )
    err = terminal.interpreter("script.py", code=1).stderr
    assert "The above exception was the direct cause" in err
    assert err.endswith("KeyError: 'mine'\n")
