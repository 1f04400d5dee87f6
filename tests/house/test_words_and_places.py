"""The rules of the house hold in this tree."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from tests.house import rules

ROOT = Path(__file__).parents[2]
RULES = [
    rules.commits_outside_the_writer,
    rules.sql_outside_sql_files,
    rules.environment_outside_settings,
    rules.clocks_outside_clock,
    rules.modules_without_an_opening_sentence,
    rules.long_functions,
    rules.long_files,
    rules.places_of_one_machine,
    rules.broken_links,
    rules.files_missing_in_the_architecture,
    rules.documents_that_name_files_long_gone,
    rules.settings_missing_in_the_docs,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_there_are_no(rule: Callable[[Path], list[str]]) -> None:
    offences = rule(ROOT)
    assert not offences, listed(rule.__doc__, offences)


def test_every_command_is_shown_in_the_docs() -> None:
    from tsuzuki.cli import main  # noqa: PLC0415 - the other rules hold also while the command line cannot be imported

    offences = rules.commands_missing_in_the_docs(ROOT, list(commands_of(main)))
    assert not offences, listed(rules.commands_missing_in_the_docs.__doc__, offences)


def commands_of(group: click.Command, prefix: str = "") -> Iterator[str]:
    if not isinstance(group, click.Group):
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield f"{prefix}{name}"
        yield from commands_of(command, f"{prefix}{name} ")


def listed(rule: str | None, offences: list[str]) -> str:
    return "\n  ".join([rule or "", *offences])
