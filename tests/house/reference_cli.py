"""The reference of the command line, made of the commands themselves."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from tests.house.tables import cell, table
from tsuzuki.cli import main

OPENING = """# Command reference

<!-- Made of the commands by `make docs`; a test compares them. -->

Every command with all it takes, as `tsuzuki COMMAND --help` says it. What they print, and what they are good for, is
in [cli.md](../cli.md). Every command takes `-h` and `--help`, and most take `--debug`: the traceback of an error.
Two groups of options are told once, here:

"""
SHARED = ("--debug", "--help")
"""Told once, in the opening."""
GROUPS = {"of a store": ("--data-dir", "--backend"), "of a gateway": ("--server", "--api-key")}
"""Options that many commands have, and what they are called together."""
STORE = "serve"
"""A command that has the options of a store."""


def page() -> str:
    context = click.Context(main, info_name="tsuzuki")
    return "".join((OPENING, shared(context), *(told(command, each) for command, each in commands(main, context))))


def shared(context: click.Context) -> str:
    rows = []
    for name, command in (("of a gateway", main), ("of a store", main.commands[STORE])):
        found = [one for one in command.params if isinstance(one, click.Option) and one.opts[0] in GROUPS[name]]
        rows += [(name, *row) for one in found if (row := parameter(one, context))]
    return table(("options", "takes", "means"), rows)


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield group, context
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inside = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from commands(command, inside)
        else:
            yield command, inside


def told(command: click.Command, context: click.Context) -> str:
    depth = "#" * min(3, 1 + len(context.command_path.split()))
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    parts = [f"\n{depth} {context.command_path}\n\n```\n{usage}\n```\n", prose(command.help or "")]
    parameters = command.get_params(context)
    groups = [name for name, words in GROUPS.items() if {word for one in parameters for word in one.opts} >= set(words)]
    apart = {word for name in groups for word in GROUPS[name]}
    rows = [row for one in parameters if not apart & set(one.opts) and (row := parameter(one, context))]
    if rows:
        parts.append("\n" + table(("takes", "means"), rows))
    if groups:
        parts.append(f"\nAlso the options {' and '.join(groups)}.\n")
    return "".join(parts)


def prose(text: str) -> str:
    """Gives a help text as Markdown: paragraphs that click keeps as they are become blocks."""
    parts = []
    for paragraph in cleandoc(text).replace("\f", "").split("\n\n"):
        kept = paragraph.startswith("\b\n")
        body = cleandoc(paragraph.removeprefix("\b\n").replace("\b", "")) if kept else " ".join(paragraph.split())
        parts.append(f"\n```\n{body}\n```\n" if kept else f"\n{body}\n")
    return "".join(parts) if text.strip() else ""


def parameter(one: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    if isinstance(one, click.Argument):
        said = repeated(one, "")
        return (f"`{cell(one.make_metavar(context))}`", said) if said else None
    if not isinstance(one, click.Option) or one.hidden or set(one.opts) & set(SHARED):
        return None
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    value = "" if one.is_flag or one.count else f" `{one.make_metavar(context)}`"
    return cell(f"{names}{value}"), repeated(one, defaulted(one))


def defaulted(one: click.Option) -> str:
    said = (one.help or "").strip()
    if one.show_default and isinstance(one.default, str | int | float) and not one.is_flag:
        said = f"{said} [default: {one.default}]"
    return f"{said} Required." if one.required else said


def repeated(one: click.Parameter, said: str) -> str:
    several = (one.multiple if isinstance(one, click.Option) else False) or one.nargs == -1
    more = "" if not several or "repeated" in said else " May be repeated."
    return cell(f"{said}{more}")
