"""The commands of applications: each is loaded only when its name is asked for, and a broken one stops no other."""

import click

from tsuzuki import application
from tsuzuki.cli.store import debug_option
from tsuzuki.errors import BadUsage


def names() -> list[str]:
    """Gives the names that may be commands; nothing is loaded."""
    return application.names()


def command_of(name: str) -> click.Command | None:
    """Gives the command of an application; of a broken one, a command that says so."""
    found = application.application(name)
    if found is None or (isinstance(found, application.Application) and found.command is None):
        return None
    try:
        if isinstance(found, Exception):
            raise found  # noqa: TRY301 - told as what goes wrong a line later is
        command = found.command() if found.command else None
        if not isinstance(command, click.Command):
            raise TypeError(f"its command is {command!r}, which is no click command")  # noqa: TRY301 - the same
    except Exception as error:  # noqa: BLE001 - a package of somebody else: it must not stop the rest
        return _broken(name, error)
    return command


def _broken(name: str, error: Exception) -> click.Command:
    @click.command(
        name,
        short_help=f"(cannot be used: {type(error).__name__})",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    @debug_option
    def broken() -> None:
        raise BadUsage(application.told(name, error)) from error

    return broken
