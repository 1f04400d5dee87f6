"""`tsuzuki backup`, `verify` and `restore`, and what they say when they refuse."""

import json
from pathlib import Path

from click.testing import CliRunner

from tests.cli.conftest import Terminal
from tsuzuki.cli import main


def said(*arguments: str, code: int = 0) -> str:
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == code, told.output
    return told.output


def test_a_store_is_copied_verified_and_brought_back(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    here, there, folder = (str(terminal.folder / name) for name in (".tsuzuki", "there", "monday"))
    assert "copied 1 run, 3 facts, 1 file, " in said("backup", folder, "--data-dir", here)
    assert "every file is what was written" in said("verify", folder)
    assert json.loads(said("verify", folder, "--json"))["flaws"] == []
    assert "is there already and not empty" in said("backup", folder, "--data-dir", here, code=1)
    assert "is there already; restore to another place" in said("restore", folder, "--data-dir", here, code=1)
    told = json.loads(said("restore", folder, "--data-dir", there, "--json"))
    assert (told["kind"], told["counts"], told["streams"]) == ("sqlite", {"runs": 1, "facts": 3}, [])
    assert said("list", "--data-dir", there, "--json") == said("list", "--data-dir", here, "--json")

    copy = Path(folder) / "tsuzuki.db"
    copy.write_bytes(copy.read_bytes()[:-1] + b"!")
    assert "NOT OK  tsuzuki.db is not what was written" in said("verify", folder, code=1)
    assert "[ERR-TSUZUKI-0123]" in said("restore", folder, "--data-dir", str(terminal.folder / "other"), code=1)
    assert not (terminal.folder / "other").exists()
    assert "there is no store" in said("backup", folder, "--data-dir", str(terminal.folder / "other"), code=1)
    assert "cannot be backed up" in said("backup", str(terminal.folder / "x"), "--backend", "memory:", code=1)
