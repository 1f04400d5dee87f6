"""Pages whose Python is read an idea at a time: its blocks, and how a piece of code without a function is run."""

import re
import textwrap
from pathlib import Path
from typing import Any

from tests.acceptance.processes import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text())


def the(page: str, word: str) -> str:
    """Gives the one block of a page that has a word in it."""
    [found] = [block for block in blocks(page) if word in block]
    return found


def run(code: str, scope: dict[str, Any]) -> dict[str, Any]:
    exec(compile(code, "<docs>", "exec"), scope)  # noqa: S102 - our own page
    return scope


def body(code: str, scope: dict[str, Any], *, sync: bool = False) -> Any:
    """Makes a function of a piece of code, which may await."""
    head = "def piece():" if sync else "async def piece():"
    return run(f"{head}\n{textwrap.indent(textwrap.dedent(code), '    ')}", scope)["piece"]


def saved(folder: Path, text: str, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_text(text)
    return list(names)
