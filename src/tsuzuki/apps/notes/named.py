"""Paths that people name at the command line: an empty one is a variable that is not set, not the current folder."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from os import PathLike


def a_number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuses what is no number (nan): it is in every range, since it is neither less nor more than anything."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("数値ではありません / nan is no number", context, option)
    return value


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
