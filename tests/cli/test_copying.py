"""`tsuzuki backup`, `verify` and `restore`, and what they say when they refuse."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from tests.cli.conftest import Terminal
from tsuzuki.cli import copying, main
from tsuzuki.llm.cached import FILE as CACHE
from tsuzuki.llm.queue.jobs import FILE as JOBS


def said(*arguments: str, code: int = 0) -> str:
    told = CliRunner().invoke(main, ["-q", *arguments])
    assert told.exit_code == code, told.output
    return told.output


def test_a_store_is_copied_verified_and_brought_back(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    here, there, folder = (str(terminal.folder / name) for name in (".tsuzuki", "there", "monday"))
    assert "copied 1 run, 3 facts, 1 file, " in said("backup", folder, "--data-dir", here)
    assert Path(folder).stat().st_mode & 0o077 == 0, "it holds the params of all runs"
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


def test_what_applications_keep_is_copied_and_brought_back_where_nothing_is(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    here, there, folder = (terminal.folder / name for name in (".tsuzuki", "there", "monday"))
    commits = here / "commits.db"
    session = here / "tenants" / "lab" / "notes" / "s1" / "state.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text("one\n")
    (here / "wheels").mkdir()
    (here / "wheels" / "installed.py").write_text("can be installed again")
    with closing(sqlite3.connect(commits)) as used:  # in use, and its last rows are not merged yet
        used.execute("PRAGMA journal_mode = WAL").fetchall()
        used.execute("CREATE TABLE commits (sha TEXT)")
        used.execute("INSERT INTO commits VALUES ('abc')")
        used.commit()
        assert "1 run, 3 facts, 3 files" in said("backup", str(folder), "--data-dir", str(here))
    assert "every file is what was written" in said("verify", str(folder))
    (folder / "beside" / "commits.db").rename(folder / "aside")
    assert "NOT OK  beside/commits.db cannot be read" in said("verify", str(folder), code=1)
    (folder / "aside").rename(folder / "beside" / "commits.db")

    there.mkdir()
    (there / "tenants").mkdir()
    told = said("restore", str(folder), "--data-dir", str(there))
    assert "was left as it is: tenants" in told
    with closing(sqlite3.connect(there / "commits.db")) as restored:
        assert restored.execute("SELECT sha FROM commits").fetchall() == [("abc",)]
    assert not (there / "tenants" / "lab").exists()
    said("restore", str(folder), "--data-dir", str(terminal.folder / "third"))
    assert (terminal.folder / "third" / session.relative_to(here)).read_text() == "one\n"
    for name in ("tsuzuki.db", "commits.db", "tenants"):
        assert (terminal.folder / "third" / name).stat().st_mode & 0o077 == 0, f"{name} is for its owner alone"
    assert {CACHE, JOBS} < set(copying.OURS), "what language models keep is kept"
