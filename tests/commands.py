"""Commands that only look and ask, carried out in this very process: the program as it is, without a start of Python.

That the program starts as a process, and what it does with signals, is tried by those who start it.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from tsuzuki.cli import main

QUICK: Final = frozenset(
    {
        *("list", "list-vnext", "get", "items", "tasks", "events", "logs", "export", "flows", "workers", "metrics"),
        *("submit", "submit-yaml", "submit-batch", "cancel", "delete", "dlq", "purge", "doctor"),
        *("backup", "verify", "restore", "config"),
    }
)
"""Commands that execute no code of users, and end by themselves."""


@dataclass(frozen=True)
class Told:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def told(folder: Path, *arguments: str, variables: Mapping[str, str]) -> Told | None:
    """Carries out a command in a folder, with no other settings than these; nothing where it needs a process."""
    if not QUICK.intersection(arguments[:1]) or _loop_runs():
        return None
    others = dict.fromkeys(name for name in os.environ if name.startswith("TSUZUKI_"))
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, arguments, env={**others, **variables}, catch_exceptions=False)
    return Told(result.exit_code, result.stdout, result.stderr)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
