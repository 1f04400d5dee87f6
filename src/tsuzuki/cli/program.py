"""The program `tsuzuki`: its commands, and what people are told when one of them goes wrong."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from tsuzuki import __version__, extras, processes, settings
from tsuzuki.cli import (
    applications,
    asking,
    batches,
    config,
    copying,
    dlq,
    flow,
    keeping,
    keys,
    llm,
    looking,
    nats,
    overseeing,
    running,
    serve,
    submitting,
    up,
    watching,
    wheels,
    worker,
    workers,
)
from tsuzuki.cli.remote import quiet_option_before, server_options_before
from tsuzuki.cli.render import one_line
from tsuzuki.cli.store import ARGUMENTS, DEBUG
from tsuzuki.errors import BadUsage, RunInterrupted, TsuzukiError

OTHER_NAMES: Final = {"nats-bootstrap": "nats"}
"""Names that the contract has for commands of ours."""

HELP: Final = """Durable runs for Python: kill anything, at any moment, and it goes on where it was.

\b
A first evening:
  tsuzuki run crawl.py:crawl -p pages=500     run a flow; press Ctrl-C, or pull the plug
  tsuzuki run crawl.py:crawl -p pages=500     the same again: it goes on where it was
  tsuzuki list                                what ran here
  tsuzuki items 1 --failed                    what did not work, and why
  tsuzuki resume 1                            try only that again

Runs are kept in .tsuzuki/ in the current folder; --data-dir or TSUZUKI_DATA_DIR choose another one.
RUN is the number of a run, its id, or the beginning of its id. Commands that speak to a gateway find it by
TSUZUKI_SERVER, or by --server before the command or behind it.

\b
Exit codes: 0 ok, 1 error or bad arguments, 5 the run failed, 6 it completed but some items failed,
7 it was cancelled, 130 it was interrupted and can go on.
"""


class Program(click.Group):
    """A group of commands that ends with our exit codes, and tells errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Lists the commands in the order in which people meet them, then those of applications."""
        del ctx
        return [*self.commands, *(name for name in applications.names() if name not in self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Gives a command; applications are looked for only where we have none of that name."""
        return super().get_command(ctx, OTHER_NAMES.get(cmd_name, cmd_name)) or applications.command_of(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments as they were written: of some options the order counts, and click forgets it."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Invokes a command; with --debug it shows the traceback of whatever goes wrong."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            if isinstance(error, RunInterrupted):  # click would take it for a Ctrl-C, which it is too
                return _told(str(error), error.error_id, error.exit_code)
            raise

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override] # it always exits
        """Runs the program and leaves with its exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name or "tsuzuki", **extra) or 0
            sys.stdout.flush()
        except BrokenPipeError:
            code = _reader_left()
        except (click.Abort, KeyboardInterrupt):
            code = _told("interrupted", code=RunInterrupted.exit_code)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            code = 1
        except click.UsageError as error:
            code = _told(_advised(error), BadUsage.error_id)
        except click.ClickException as error:
            code = _told(error.format_message(), TsuzukiError.error_id)
        except TsuzukiError as error:
            code = _told(str(error), error.error_id, error.exit_code)
        except Exception as error:  # noqa: BLE001 - the last resort: people get a sentence, --debug the traceback
            code = _unexpected(error)
        ours = list(sys.argv[1:] if args is None else args)[:1] == ["--end-with-parent"]
        sys.exit(processes.REFUSED if code == 1 and ours else code)


def _unexpected(error: Exception) -> int:
    """Names the extra that is missing; of all else it says that nobody expected it."""
    if (missing := extras.missing(error)) is not None:
        return _told(str(missing), missing.error_id)
    what = f"{type(error).__name__}: {error}; --debug shows the traceback"
    return _told(f"something unexpected happened: {what}", TsuzukiError.error_id)


def _told(message: str, error_id: str = "", code: int = 1) -> int:
    """Says in one line what went wrong."""
    line = one_line(message)
    click.echo(f"error: {line} [{error_id}]" if error_id else line, err=True)
    return code


def _advised(error: click.UsageError) -> str:
    """Says what is wrong with arguments, how it is said rightly, and where to read on."""
    said = error.format_message().rstrip(".")
    where = error.ctx.command_path if error.ctx else "tsuzuki"
    example = "" if "id you mean" in said or "for example" in said else _example(error.ctx)
    return f"{said}; {example}`{where} --help` tells more"


def _example(ctx: click.Context | None) -> str:
    """Gives the first example in the help of a command."""
    if ctx is None or isinstance(ctx.command, click.Group):
        return ""
    lines = (line.strip().removeprefix("$ ") for line in (ctx.command.help or "").splitlines())
    found = next((line for line in lines if line.startswith(f"{ctx.command_path} ") and "  " not in line), "")
    return f"for example `{found}`; " if found else ""


def _reader_left() -> int:
    """Lets the rest of the output go nowhere, so that Python does not complain while it leaves."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


@click.group(
    "tsuzuki",
    cls=Program,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="tsuzuki %(version)s")
@server_options_before
@quiet_option_before
@click.option("--end-with-parent", is_flag=True, hidden=True, help="End when whoever holds our stdin is gone.")
@click.option("--log-format", type=click.Choice(["json", "text"]), hidden=True, help="As TSUZUKI_LOG_FORMAT.")
@click.pass_context
def main(ctx: click.Context, *, end_with_parent: bool = False, log_format: str | None = None) -> None:
    """Durable runs for Python."""
    ctx.with_resource(settings.flagged(TSUZUKI_LOG_FORMAT=log_format))
    if end_with_parent:
        processes.end_with_parent()
    elif line := settings.describe_dotenv():
        click.echo(line, err=True)


for _command in (
    *running.COMMANDS,
    *looking.COMMANDS,
    *workers.COMMANDS,
    *asking.COMMANDS,
    *flow.COMMANDS,
    *keeping.COMMANDS,
    *copying.COMMANDS,
    *nats.COMMANDS,
    *serve.COMMANDS,
    *keys.COMMANDS,
    *config.COMMANDS,
    *up.COMMANDS,
    *worker.COMMANDS,
    *submitting.COMMANDS,
    *batches.COMMANDS,
    *watching.COMMANDS,
    *overseeing.COMMANDS,
    *dlq.COMMANDS,
    *wheels.COMMANDS,
    *llm.COMMANDS,
):
    main.add_command(_command)


def nats_bootstrap() -> NoReturn:
    """Runs `tsuzuki nats …` under the name that the contract has for it."""
    main.main(["nats", *sys.argv[1:]])
