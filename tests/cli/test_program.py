"""The program as a whole: help, version, usage errors, unexpected errors, the demonstration and the examples."""

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Terminal
from tsuzuki import __version__
from tsuzuki.cli import main
from tsuzuki.cli.narrow import broken, columns, squeezed
from tsuzuki.cli.progress import Pace, step_line
from tsuzuki.cli.render import Table, clipped, duration, shown_json, table

ROOT = Path(__file__).parents[2]


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"tsuzuki {__version__}\n"


def test_without_a_command_there_is_help() -> None:
    ended = CliRunner().invoke(main, [])
    assert ended.exit_code == 1
    assert ended.stderr.startswith("Usage: tsuzuki")


HERE = (
    "run",
    "resume",
    "list",
    "get",
    "logs",
    "items",
    "export",
    "cancel",
    "purge",
    "doctor",
    "config",
    "up",
    "worker",
    "workers",
)
THERE = ("submit", "submit-yaml", "watch", "events", "tasks", "list-vnext", "flows", "metrics")
BOTH = ("resume", "list", "get", "items", "cancel", "workers")


def test_every_command_has_help_and_names_its_store_or_server() -> None:
    for name in HERE:
        shown = CliRunner().invoke(main, [name, "--help"])
        assert shown.exit_code == 0
        assert "--data-dir" in shown.output
        assert "--backend" in shown.output
    for name in (*THERE, *BOTH):
        shown = CliRunner().invoke(main, [name, "--help"])
        assert shown.exit_code == 0
        assert "--server" in shown.output
        assert "--api-key" in shown.output
    assert main.commands.keys() >= {*HERE, *THERE, "flow", "dlq", "serve", "keys"}


def test_the_help_of_every_command_has_an_example() -> None:
    for path, command in commands(main):
        assert f"tsuzuki {path}" in (command.help or "").replace("$ ", ""), f"tsuzuki {path} --help shows no example"


def test_no_help_shows_what_is_meant_for_the_program_that_formats_it() -> None:
    groups = [name for name, command in main.commands.items() if isinstance(command, click.Group)]
    for path in ["", *groups, *(path for path, _ in commands(main))]:
        shown = CliRunner().invoke(main, [*path.split(), "--help"])
        assert shown.exit_code == 0, path
        assert "\\b" not in shown.output, f"tsuzuki {path} --help"
        assert "\b" not in shown.output, f"tsuzuki {path} --help"


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


@pytest.mark.parametrize("arguments", [["bogus"], ["list", "--bogus"], ["get"], ["list", "--status", "odd"]])
def test_bad_usage_is_exit_code_1_in_one_line(arguments: list[str]) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.endswith("[ERR-TSUZUKI-0018]\n")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["lst"], "Did you mean 'list'?"),
        (["list", "--stattus", "failed"], "Did you mean '--status'?"),
        (["dlq", "lits"], "Did you mean 'list'?"),
        (["submit"], "for example `tsuzuki submit sample --param sentences=40 --watch`"),
        (["get"], "for example `tsuzuki get 1`"),
        (["list", "--status", "odd"], "is not one of 'pending'"),
        (["watch", "1", "2"], "for example `tsuzuki watch 12`"),
    ],
)
def test_bad_usage_says_how_it_is_said_rightly(arguments: list[str], hint: str) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert hint in ended.stderr


def test_something_unexpected_is_a_sentence_and_a_traceback_only_with_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("tsuzuki.cli.keeping.platform.python_version", broken)
    short = CliRunner().invoke(main, ["doctor"])
    assert short.exit_code == 1
    assert short.stderr == (
        "error: something unexpected happened: ZeroDivisionError: oh; --debug shows the traceback [ERR-TSUZUKI-0001]\n"
    )
    assert "Traceback" in CliRunner().invoke(main, ["doctor", "--debug"]).stderr


def test_importing_tsuzuki_does_not_import_the_command_line() -> None:
    check = "import sys, tsuzuki; sys.exit('click' in sys.modules or 'tsuzuki.cli' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_a_terminal_gets_live_lines_and_keeps_what_is_printed(terminal: Terminal) -> None:
    (terminal.folder / "talk.py").write_text(
        "from flows import endless\nfrom tsuzuki import current, flow, task\n\n"
        "@task\ndef one(n: int) -> int:\n    print('said', n)\n"
        "    if n == 4:\n        endless.function()\n    return n\n\n"
        "@flow\ndef talk() -> int:\n    return len(one.map(range(8), concurrency=1))\n"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tsuzuki.cli", "run", "talk.py"]
    process = subprocess.Popen(command, cwd=terminal.folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = read_until(ours, "4/8")
    terminal.open_gate()
    shown += read_until(ours, None)
    assert process.wait() == 0
    os.close(ours)
    assert "━━━" in shown
    assert "50%" in shown
    assert all(f"said {number}" in shown for number in range(8))
    assert "is COMPLETED" in shown


def read_until(terminal: int, text: str | None) -> str:
    shown = ""
    while text is None or text not in shown:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux says so at the end
            part = b""
        if not part:
            break
        shown += part.decode(errors="replace")
    return shown


def test_the_demonstration_ends_well_by_itself(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tsuzuki.demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "*** kill -9 ***" in ended.stdout
    assert "300 of 300 items are recorded, each exactly once" in ended.stdout
    assert "before the kill, none were called again" in ended.stdout
    assert "continuing run 1" in ended.stderr
    assert str(tmp_path) not in ended.stdout + ended.stderr


@pytest.mark.parametrize(("name", "params", "code"), [("crawl", ["-p", "pages=98"], 6), ("digests", [], 0)])
def test_the_examples_run(terminal: Terminal, name: str, params: list[str], code: int) -> None:
    ended = terminal.tsuzuki("run", str(ROOT / "examples" / f"{name}.py"), *params, code=code)
    assert ("letters" if name == "crawl" else "crawl.py") in ended.stdout, "it has found something to do"


def test_durations_read_well() -> None:
    told = {
        0.0123: "0.012s",
        0.5: "0.5s",
        1.0: "1s",
        59.6: "1m",
        185: "3m 5s",
        3600: "1h",
        7800: "2h 10m",
        90000: "1d 1h",
    }
    assert {seconds: duration(seconds) for seconds in told} == told


def test_short_json_stays_on_one_line() -> None:
    assert shown_json(b'{"a":1}') == '{"a": 1}'
    assert len(shown_json(b"[" + b",".join([b"1234567890"] * 20) + b"]").splitlines()) == 22


def test_a_table_lines_up() -> None:
    assert list(table(("N", "NAME"), [("1", "a"), ("20", "b")], frozenset("N"))) == [" N  NAME", " 1  a", "20  b"]


def test_the_columns_of_a_table_do_not_move_from_page_to_page() -> None:
    rows = [(f"{10**power}", "x") for power in range(4) for _ in range(200)]
    assert {line.index("x") for line in table(("N", "NAME"), rows) if "x" in line} == {6}
    shape = Table(("N", "NAME"))
    assert [shape.head([("1", "a")]), *shape.lines([("1", "a")])] == ["N  NAME", "1  a"]
    assert [*shape.lines([("1000", "b")]), *shape.lines([("1", "c")])] == ["1000  b", "1     c"]


def test_wide_signs_take_two_columns_and_control_signs_steer_nothing() -> None:
    rows = [("続き", "a"), ("x\ny", "\x1b[31mred")]
    assert list(table(("KEY", "ERROR"), rows)) == ["KEY   ERROR", "続き  a", "x y   \\x1b[31mred"]
    assert clipped("続続続続", 5) == "続続…"
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdefg", 6) == "abcde…"


def test_a_step_is_told_with_counts_percent_rate_and_what_is_left() -> None:
    step = {"step": "s", "name": "fetch", "total": 1000, "done": 490, "failed": 10, "eta": 7.0}
    assert step_line(step, None, bar=False) == "fetch  500/1,000   50%  ETA 7s  10 failed"
    assert step_line(step, 100.0, bar=False) == "fetch  500/1,000   50%  100/s  ETA 5s  10 failed"
    assert step_line({"name": "read", "done": 1200}, 2.5, bar=False) == "read  1,200 done  2.5/s"


def test_where_there_is_little_room_the_bar_gives_way_and_the_counts_stay() -> None:
    step = {"step": "s", "name": "fetch", "total": 20_000, "done": 5_000, "failed": 10}
    bars = [sum(map(step_line(step, 10.0, bar=True, room=room).count, "━╌")) for room in (120, 72, 60)]
    assert bars == [24, 15, 0]
    for room in (30, 40, 50, 60, 120):
        line = step_line(step, 10.0, bar=True, room=room)
        assert "5,010/20,000" in clipped(line, room)
        assert columns(line) <= max(room, 55)
    costly = {**step, "name": "transform", "failed": 0, "text": "$0.0123"}
    assert step_line(costly, 3.4, bar=True, room=40) == "transform  ━━╌╌╌╌  5,000/20,000  $0.0123"
    wide = step_line({**step, "name": "カワウソの食べ物についての長い名前"}, None, bar=True, room=40)
    assert "5,010/20,000" in clipped(wide, 40)
    assert wide.startswith("カワ")


def test_the_columns_of_a_table_give_way_to_a_narrow_terminal_the_widest_first() -> None:
    assert squeezed([36, 30, 9], [False, False, False], 40) == [13, 14, 9]
    assert squeezed([36, 5], [False, True], 20) == [13, 5], "numbers stay whole"
    assert squeezed([9, 9, 9], [False] * 3, 10) == [9, 9, 9], "what does not fit at all is cut at the edge"
    assert squeezed([], [], 10) == []


def test_a_long_line_is_broken_between_words_and_between_wide_signs() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            raise OSError

    def shown(line: str, width: int, indent: int = 2) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            return broken(line, Screen(), indent).split("\n")

    assert shown("one two three", 80) == ["one two three"]
    assert shown("one two three", 8) == ["one two", "  three"]
    assert shown("カワウソの話です", 8) == ["カワウソ", "  の話で", "  す"]
    assert shown("id  http://127.0.0.1:8000/v1 cannot", 16) == ["id", "  http://127.0.0.1:8000/v1", "  cannot"]
    assert broken("one two three" * 20, io.StringIO()) == "one two three" * 20, "what is no terminal gets it whole"


def test_the_pace_is_what_was_done_lately() -> None:
    pace = Pace()
    assert pace.see("s", 5000, at=0.0) is None
    assert pace.see("s", 5010, at=1.0) == 10
    assert pace.see("s", 5210, at=11.0) == 20


ON_STORES = (
    *(("export", "1"), ("purge", "--older-than", "0s", "--yes"), ("doctor",), ("backup", "copy"), ("keys", "list")),
    *(("restore", "copy"), ("keys", "create", "--tenant", "x"), ("keys", "revoke", "x"), ("llm", "cost")),
    *(
        ("llm", "jobs", "list"),
        ("llm", "cache", "clear"),
        ("run", "flows.py:nothing"),
        ("glossary", "projects", "list"),
    ),
)


@pytest.mark.parametrize("command", ON_STORES, ids=" ".join)
def test_a_command_that_works_on_a_store_refuses_while_a_gateway_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(main, command, env={"TSUZUKI_SERVER": "http://127.0.0.1:9"})
    told = "works on a store and not on a gateway, and TSUZUKI_SERVER names the gateway http://127.0.0.1:9; "
    assert f"{told}unset TSUZUKI_SERVER, or name the store with --data-dir DIR" in ended.stderr
    assert (ended.exit_code, ended.stdout, list(tmp_path.iterdir())) == (1, "", [])


def test_a_store_that_is_named_wins_over_the_gateway_that_is_set(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    terminal.environment["TSUZUKI_SERVER"] = "http://127.0.0.1:9"
    told = terminal.tsuzuki("export", "1", "--data-dir", ".tsuzuki")
    assert (json.loads(told.stdout.splitlines()[0])["flow"], told.stderr) == ("nothing", "")
    there = terminal.tsuzuki("list", code=1).stderr
    assert there.startswith(
        "using gateway http://127.0.0.1:9\nerror: the gateway at http://127.0.0.1:9 cannot be reached"
    )


def test_a_store_other_than_the_default_is_named_on_stderr(terminal: Terminal) -> None:
    assert terminal.tsuzuki("run", "flows.py:nothing", "-q").stderr == ""
    (terminal.folder / ".tsuzuki").rename(terminal.folder / "other")
    terminal.environment["TSUZUKI_DATA_DIR"] = "other"
    told = terminal.tsuzuki("list", "--json")
    assert (len(json.loads(told.stdout)), told.stderr) == (1, "using store sqlite:other/tsuzuki.db\n")
    assert terminal.end(terminal.start("-q", "list")).stderr == ""
    assert terminal.tsuzuki("run", "flows.py:nothing", "-q").stderr == ""
