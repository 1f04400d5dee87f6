"""Every rule of the house finds a planted offence, and lets pass what is allowed."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import rules


def plant(root: Path, texts: dict[str, str]) -> Path:
    """Makes a small tree out of paths and texts."""
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MODULE = "src/tsuzuki/runs.py"
WRITER = "src/tsuzuki/backends/sqlite/writer.py"


@pytest.mark.parametrize(
    ("rule", "allowed", "offending"),
    [
        (rules.commits_outside_the_writer, {WRITER: "c.commit()\nc.execute('COMMIT')"}, {MODULE: "c.commit()"}),
        (rules.commits_outside_the_writer, {MODULE: "a = 'a commit'"}, {MODULE: "c.execute('BEGIN; COMMIT')"}),
        (rules.sql_outside_sql_files, {MODULE: "a = 'DELETE', 'Update the row'"}, {MODULE: "a = 'SELECT 1'"}),
        (rules.sql_outside_sql_files, {MODULE: '"""SELECT all"""'}, {MODULE: "a = f'insert into {t} values (1)'"}),
        (
            rules.sql_outside_sql_files,
            {WRITER: "a = 'PRAGMA journal_mode = WAL'"},
            {MODULE: "a = 'PRAGMA user_version'"},
        ),
        (
            rules.sql_outside_sql_files,
            {WRITER: "a = 'BEGIN IMMEDIATE'"},
            {WRITER: "a = '''\n UPDATE runs\n SET a = 1'''"},
        ),
        (
            rules.environment_outside_settings,
            {"src/tsuzuki/settings.py": "import os\nos.environ"},
            {MODULE: "import os as o\no.environ['A']"},
        ),
        (
            rules.environment_outside_settings,
            {MODULE: "import os\nos.fsync"},
            {MODULE: "from os import getenv as g\ng('A')"},
        ),
        (rules.environment_outside_settings, {MODULE: "option('--a')"}, {MODULE: "option('--a', envvar='A')"}),
        (
            rules.clocks_outside_clock,
            {"src/tsuzuki/clock.py": "import time\ntime.time()"},
            {MODULE: "import time\ntime.monotonic()"},
        ),
        (
            rules.clocks_outside_clock,
            {MODULE: "import time\ntime.sleep(1)"},
            {MODULE: "from time import perf_counter_ns\nperf_counter_ns()"},
        ),
        (
            rules.clocks_outside_clock,
            {MODULE: "clock.now()"},
            {MODULE: "from datetime import datetime, UTC\ndatetime.now(UTC)"},
        ),
        (rules.clocks_outside_clock, {MODULE: "datetime = 1"}, {MODULE: "import datetime\nx = datetime.datetime.now"}),
        (rules.modules_without_an_opening_sentence, {MODULE: '"""Runs are here.\n\nMore"""'}, {MODULE: '"""runs"""'}),
        (rules.modules_without_an_opening_sentence, {MODULE: '"""続き is this."""'}, {MODULE: "import os"}),
        (
            rules.long_functions,
            {MODULE: "def f():\n" + "    a()\n" * 59},
            {MODULE: "async def f():\n" + "    a()\n" * 60},
        ),
        (rules.long_files, {MODULE: "MOVES = {\n" + "    1: 2,\n" * 700 + "}"}, {MODULE: "a()\n" * 601}),
        (rules.places_of_one_machine, {"a.md": "~/work/ and a/work/b"}, {"a.md": "see " + "/work" + "/main"}),
        (rules.places_of_one_machine, {"a.md": "the package index"}, {"b.toml": "https://" + "pypi" + ".org/simple"}),
        (
            rules.broken_links,
            {"a.md": "[a](docs/b.md#c) [w](https://x) [s](#s)", "docs/b.md": ""},
            {"a.md": "[a](docs/gone.md)"},
        ),
        (rules.broken_links, {"a.md": "```\n[a](gone.md)\n```"}, {"docs/a.md": "![a](gone.png)"}),
        (
            rules.files_missing_in_the_architecture,
            {MODULE: "", "ARCHITECTURE.md": "`runs.py`: runs."},
            {"src/tsuzuki/flow.py": "", "ARCHITECTURE.md": "`runs.py` workflow.py other/flow.py"},
        ),
        (
            rules.files_missing_in_the_architecture,
            {WRITER: "", "ARCHITECTURE.md": "`tsuzuki.backends.sqlite.writer` commits."},
            {WRITER: "", "ARCHITECTURE.md": "writer.py"},
        ),
        (
            rules.files_missing_in_the_architecture,
            {"src/tsuzuki/backends/__init__.py": "", "ARCHITECTURE.md": "`backends/`: the port."},
            {"src/tsuzuki/a.sql": "", "ARCHITECTURE.md": ""},
        ),
        (
            rules.documents_that_name_files_long_gone,
            {MODULE: "", "README.md": "`tsuzuki/runs.py`, crawl.py"},
            {"README.md": "`backends/gone.py`"},
        ),
        (
            rules.settings_missing_in_the_docs,
            {"src/tsuzuki/settings.py": "'TSUZUKI_DATA_DIR'", "docs/s.md": "`TSUZUKI_DATA_DIR`"},
            {"src/tsuzuki/settings.py": "'TSUZUKI_OTHER'", "README.md": "TSUZUKI_OTHERS"},
        ),
    ],
)
def test_a_rule_lets_pass_what_is_allowed_and_finds_what_is_not(
    tmp_path: Path, rule: Callable[[Path], list[str]], allowed: dict[str, str], offending: dict[str, str]
) -> None:
    assert rule(plant(tmp_path / "allowed", allowed)) == []
    assert len(rule(plant(tmp_path / "offending", offending))) == 1


def test_a_command_is_shown_alone_in_a_list_or_below_its_group(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "README.md": "Run `tsuzuki run FILE.py:flow`, `tsuzuki get | logs`",
            "docs/keys.md": "tsuzuki keys create | list",
        },
    )
    shown = ["run", "get", "logs", "keys", "keys create", "keys list"]
    assert rules.commands_missing_in_the_docs(root, [*shown, "list", "keys revoke"]) == [
        "tsuzuki list: shown neither in README.md nor in docs/",
        "tsuzuki keys revoke: shown neither in README.md nor in docs/",
    ]
