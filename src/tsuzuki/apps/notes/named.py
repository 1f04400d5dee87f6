"""What people name: paths, at the command line and over HTTP, and numbers.

At the command line an empty path is a variable that is not set, not the current folder.
"""

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.apps.notes.refusals import both
from tsuzuki.errors import BadUsage

if TYPE_CHECKING:
    from os import PathLike


def a_number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuses what is no number (nan): it is in every range, since it is neither less nor more than anything."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("数値ではありません / nan is no number", context, option)
    return value


def path_of(text: str) -> Path:
    """Gives the path that somebody has pasted, without blanks and quotes around it; it has to be absolute."""
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        bare = bare[1:-1].strip()
    path = Path(bare) if "\0" not in bare else Path()
    with suppress(RuntimeError):  # nobody is called ~so
        path = path.expanduser()
    if not path.is_absolute():
        raise BadUsage(
            both(
                f"{text!r} は絶対パスではありません。ゲートウェイは別のフォルダーで動いている場合があります",
                f"{text!r} is no absolute path: the gateway may be in another folder than you",
            )
        )
    return path


def vault_of(text: str) -> Path:
    """Gives the vault that somebody has named; refuses what cannot become a folder, since a file is in its place."""
    path = path_of(text)
    there = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    if os.path.lexists(there) and not there.is_dir():
        raise BadUsage(
            both(
                f"{there} はフォルダーではありません。ノートを書き込むフォルダーを指定してください",
                f"{there} is no folder: name one into which the notes go",
            )
        )
    return path


class Named(click.Path):
    """A path that has a name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(
        self, value: "str | PathLike[str]", param: click.Parameter | None, ctx: click.Context | None
    ) -> "str | bytes | PathLike[str]":
        """Refuses a path without a name."""
        if isinstance(value, str) and not value.strip():
            self.fail(
                "パスが空です。変数が設定されているか確認してください / "
                "the path is empty: look whether a variable is not set",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)
