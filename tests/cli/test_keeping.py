"""`tsuzuki purge` and `tsuzuki doctor`, and stores that are not as they should be."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal
from tests.nats_server import NatsServer
from tsuzuki.cli.params import agreed_to_remove
from tsuzuki.errors import BadUsage


def age(terminal: Terminal) -> None:
    """Lets the second pass in which the runs ended: times of the store are whole seconds."""
    terminal.until(lambda: "would remove" in terminal.tsuzuki("purge", "--older-than", "0s", "--dry-run").stdout)


def test_old_runs_are_removed_when_somebody_agrees(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    age(terminal)
    assert "would remove 1 run" in terminal.tsuzuki("purge", "--older-than", "0s", "--dry-run").stdout
    assert "say --yes" in terminal.tsuzuki("purge", "--older-than", "0s", code=1).stderr
    assert len(terminal.json("list")) == 1
    would = terminal.tsuzuki("purge", "--older-than", "0s", "--dry-run", "--json").stdout
    assert json.loads(would) == {"found": 1, "removed": 0}
    assert terminal.tsuzuki("purge", "--older-than", "0s", "--yes").stdout == "removed 1 run\n"
    assert terminal.json("list") == []


def test_where_stdin_is_closed_yes_has_to_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(BadUsage, match="say --yes"):
        agreed_to_remove("1 run")


def test_young_and_active_runs_stay(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until(lambda: len(terminal.calls()) == 14)
    assert terminal.tsuzuki("purge", "--older-than", "1d", "--yes").stdout == "nothing to remove\n"
    age(terminal)
    assert terminal.tsuzuki("purge", "--older-than", "0s", "--yes").stdout == "removed 1 run\n"
    assert [row["number"] for row in terminal.json("list")] == [2]
    terminal.open_gate()
    terminal.end(process)


@pytest.mark.parametrize("text", ["30", "30y", "d", "-1d", "", "99999999999999d"])
def test_an_age_that_is_none_is_told(terminal: Terminal, text: str) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    assert "is no age" in terminal.tsuzuki("purge", f"--older-than={text}", "--yes", code=1).stderr


def test_a_sound_store_is_ok(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:gated")
    lines = terminal.tsuzuki("doctor").stdout.splitlines()
    assert all(line.startswith("ok") for line in lines)
    checks = terminal.json("doctor")
    assert {"version", "integrity"} <= {check["name"] for check in checks}
    assert all(check["ok"] for check in checks)


def test_what_was_examined_stands_in_columns(terminal: Terminal, nats_server: NatsServer) -> None:
    store = f"{nats_server.url}?prefix={nats_server.fresh()}"
    terminal.tsuzuki("run", "flows.py:nothing", "--backend", store)
    lines = terminal.tsuzuki("doctor", "--backend", store).stdout.splitlines()
    checks = terminal.json("doctor", "--backend", store)
    begin = 8 + max(len(check["name"]) for check in checks) + 2
    assert [line[8:begin].rstrip() for line in lines] == [check["name"] for check in checks]
    assert all(line[begin - 2 : begin].isspace() and not line[begin].isspace() for line in lines)
    (journal,) = [check["text"] for check in checks if check["name"].endswith("-journal")]
    assert re.match(r"[1-9]\d* messages, [1-9]\d* (bytes|KB), ", journal)


def test_a_store_that_is_not_there_is_explained(terminal: Terminal) -> None:
    assert "NOT OK  store       there is no store" in terminal.tsuzuki("doctor", code=1).stdout


def foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE recipes (name)")
        other.commit()


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA user_version = 999")


def garbage(file: Path) -> None:
    file.write_bytes(b"this was never a database" * 100)


def damaged(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (garbage, "[ERR-TSUZUKI-0120]"),
        (foreign, "belongs to another program"),
        (newer, "newer Tsuzuki"),
        (damaged, "[ERR-TSUZUKI-0120]"),
    ],
)
def test_a_store_that_cannot_be_used_is_explained_and_left_as_it_is(terminal: Terminal, spoil, told: str) -> None:  # type: ignore[no-untyped-def]
    file = terminal.folder / ".tsuzuki" / "tsuzuki.db"
    if spoil in (newer, damaged):
        terminal.tsuzuki("run", "flows.py:nothing")
    else:
        file.parent.mkdir()
    spoil(file)
    before = file.read_bytes()
    assert told in terminal.tsuzuki("doctor", code=1).stdout
    for command in (["list"], ["get", "1"], ["run", "flows.py:nothing"]):
        assert told in terminal.tsuzuki(*command, code=1).stderr
    assert file.read_bytes() == before


def test_rows_that_disagree_with_their_journals_are_rebuilt(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    with closing(sqlite3.connect(terminal.folder / ".tsuzuki" / "tsuzuki.db")) as connection, connection:
        connection.execute("UPDATE runs SET done = 41, position = 40, status = 'FAILED'")
    assert "rebuild them with tsuzuki doctor --rebuild" in terminal.tsuzuki("doctor", code=1).stdout
    assert "1 rows were wrong and are mended" in terminal.tsuzuki("doctor", "--rebuild").stdout
    assert [(row["status"], row["done"]) for row in terminal.json("list")] == [("COMPLETED", 0)]
