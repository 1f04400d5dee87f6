"""Applications at the command line: found by name, loaded when asked for, and never in the way."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import example_application
from tests.cli.conftest import Terminal
from tsuzuki.cli import main
from tsuzuki.errors import BadUsage

LOADED = """
import pathlib
pathlib.Path("loaded").touch()
from tsuzuki.application import Application
application = Application(name="telltale")
"""
COMMANDLESS = """
from tsuzuki.application import Application
def command(): return print
application = Application(name="odd", command=command)
"""


def path_of(*sites: Path) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(map(str, sites))}


def made(folder: Path, name: str, code: str) -> Path:
    (folder / name).mkdir()
    return example_application.unpack(folder / name, example_application.broken(name, code))


def test_the_command_of_an_application_is_a_command(terminal: Terminal, site: Path) -> None:
    terminal.environment |= path_of(site)
    assert re.search(
        r"^  greetings +Greet people, and remember whom\.$", terminal.tsuzuki("--help").stdout, re.MULTILINE
    )
    assert "tsuzuki greetings book" in terminal.tsuzuki("greetings", "book", "--help").stdout
    assert terminal.tsuzuki("greetings", "book").stdout == "nobody yet"
    (terminal.folder / "elsewhere").mkdir()
    (terminal.folder / "elsewhere/greetings.txt").write_text("Ada\n")
    assert terminal.tsuzuki("greetings", "book", "--data-dir", "elsewhere").stdout == "Ada\n"


def test_an_application_is_loaded_only_when_it_is_asked_for(terminal: Terminal, tmp_path: Path) -> None:
    terminal.environment |= path_of(made(tmp_path, "telltale", LOADED))
    terminal.tsuzuki("list")
    terminal.tsuzuki("config")
    assert not (terminal.folder / "loaded").exists()
    terminal.tsuzuki("--help")
    assert (terminal.folder / "loaded").exists()


def test_a_broken_application_says_so_and_stops_nothing_else(terminal: Terminal, site: Path, tmp_path: Path) -> None:
    raises = made(tmp_path, "raises", "raise RuntimeError('it was never tested')")
    terminal.environment |= path_of(site, raises, made(tmp_path, "odd", COMMANDLESS))
    shown = terminal.tsuzuki("--help").stdout
    assert "(cannot be used: RuntimeError)" in shown
    assert "Greet people" in shown
    told = terminal.tsuzuki("raises", "anything", "--at", "all", code=1).stderr
    assert told == (
        "error: the application raises cannot be used: RuntimeError: it was never tested; "
        f"mend, upgrade or remove the package that brings it [{BadUsage.error_id}]\n"
    )
    assert "no click command" in terminal.tsuzuki("odd", code=1).stderr
    assert "No such command" in terminal.tsuzuki("telltale", code=1).stderr


def test_without_flows_and_applications_a_worker_knows_nothing_to_execute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.cli.loading.application.applications", list)
    told = CliRunner().invoke(main, ["worker"])
    assert told.exit_code == 1
    assert "nothing to execute" in told.stderr


def test_two_packages_may_not_have_the_same_name(terminal: Terminal, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    sites = []
    for folder in (first, second):
        folder.mkdir()
        found = example_application.broken("twin", "from tsuzuki.application import Application")
        found["pyproject.toml"] = found["pyproject.toml"].replace('name = "twin"', f'name = "{folder.name}"')
        found["pyproject.toml"] = found["pyproject.toml"].replace("twin_app:application", f"{folder.name}:application")
        sites.append(example_application.unpack(folder, found))
    terminal.environment |= path_of(*sites)
    assert "two packages offer an application of that name" in terminal.tsuzuki("twin", code=1).stderr
