"""Pages whose snippets are typed as they stand: files are saved, commands are typed into a shell of a fresh folder.

A block is one of two things, and anything else is refused, so that no snippet goes untried:

- a file: its first line is a comment with its name (`# crawl.py`);
- `console`: lines after `$` are typed, and the lines below them have to be answered, in that order, others between them
  or not; `…` stands for anything. What is typed ends well, unless the next line asks how it ended (`echo $?`). A line
  that ends in `&` goes on beside the others, and is waited for only until it has said what stands below it.
"""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import networks
from tests.acceptance.processes import ROOT
from tests.bash import Bash

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")
HOW_IT_ENDED = "echo $?"
PATIENCE = 60.0
ALONE = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--net"]
"""A network of its own, so that the port of a page is free."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Typed:
    line: str
    answer: tuple[str, ...]


def parts_of(page: Path) -> list[File | Typed]:
    """Gives the snippets of a page in order; refuses one that could not be tried."""
    found: list[File | Typed] = []
    for language, text in BLOCK.findall(page.read_text()):
        if language == "console":
            found += typed(text)
            continue
        named = NAMED.match(text)
        assert named, f"{page.name}: nobody tries this {language or 'block'}; name its file in a first line:\n{text}"
        found.append(File(named[1], text))
    return found


def typed(text: str) -> list[Typed]:
    commands = re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.MULTILINE)
    assert not commands[0].strip(), f"a console begins with what is typed:\n{text}"
    return [Typed(line, tuple(answer)) for line, *answer in (part.rstrip().splitlines() for part in commands[1:])]


class Shell:
    """A shell in a folder, in a network of its own, with the command on its path; what is said there goes to a file."""

    def __init__(self, folder: Path) -> None:
        networks.installed()
        self._folder, self._count, self._read = folder, 0, 0
        self._bash = Bash(
            folder,
            folder.with_suffix(".said"),
            ALONE,
            PYTHONPATH=str(ROOT / "src"),
            NO_COLOR="1",
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",  # those of this project take a second to load
            PYTEST_ADDOPTS="-p pytest_asyncio.plugin",
        )
        self._bash.write("ip link set lo up; set -m")

    def save(self, file: File) -> None:
        (self._folder / file.name).write_text(file.text)

    def type(self, one: Typed, *, asked_how_it_ended: bool) -> None:
        """Types a line, and waits until it has ended and answered; what goes on beside it, until it has answered."""
        self._count += 1
        self._bash.write(f'{one.line}\n__code=$?; echo "@{self._count}:$__code"; (exit $__code)')
        ended = self._until(re.compile(rf"^@{self._count}:(\d+)\n", re.MULTILINE), one)
        if one.line.endswith("&"):
            self._read += self._until(expected(one.answer), one).end()
            return
        assert ended[1] == "0" or asked_how_it_ended, f"$ {one.line}\n{self.said}"
        answered = expected(one.answer).search(self.said, 0, ended.start())
        assert answered, f"$ {one.line}\nsaid\n{self.said}\nand not\n" + "\n".join(one.answer)
        self._read += ended.end()

    @property
    def said(self) -> str:
        """What was said since the last line was answered."""
        return self._bash.heard[self._read :]

    def _until(self, pattern: re.Pattern[str], one: Typed) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE
        while not (found := pattern.search(self.said)):
            assert time.monotonic() < deadline, f"$ {one.line}\nsaid\n{self.said}\nand not\n{pattern.pattern}"
            time.sleep(0.01)
        return found

    def leave(self) -> None:
        """Ends what was started here."""
        self._bash.leave()


def typed_in(folder: Path, parts: Sequence[File | Typed]) -> None:
    """Saves and types the parts of a page, in order, in a new folder."""
    folder.mkdir(exist_ok=True)
    shell = Shell(folder)
    try:
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            if isinstance(part, File):
                shell.save(part)
            else:
                shell.type(part, asked_how_it_ended=isinstance(after, Typed) and after.line == HOW_IT_ENDED)
    finally:
        shell.leave()


def expected(answer: tuple[str, ...]) -> re.Pattern[str]:
    lines = (rf"[ ]*{within(line)}[ ]*\n" for line in answer if line.strip() != "…")
    return re.compile(r"^" + r"(?:.*\n)*?".join(lines), re.MULTILINE)


def within(line: str) -> str:
    return ".*".join("[ ]*".join(map(re.escape, re.split(r" +", part.strip()))) for part in line.split("…"))
