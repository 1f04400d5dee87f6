"""Pictures of figures for the docs, by pygal."""

from collections.abc import Sequence
from dataclasses import dataclass

import pygal
from pygal.style import CleanStyle


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a picture."""

    name: str
    points: Sequence[tuple[float, float]]


def drawn(title: str, curves: Sequence[Curve], *, x: str, y: str, logarithmic: bool = False) -> bytes:
    """Draws curves as an SVG that loads nothing from elsewhere; `logarithmic` has powers of ten along both sides."""
    style = CleanStyle(background="white", plot_background="white")
    chart = pygal.XY(
        js=[],
        style=style,
        title=title,
        x_title=x,
        y_title=y,
        width=900,
        height=380,
        logarithmic=logarithmic,
        xrange=None,
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        dots_size=2,
        show_x_guides=False,
        truncate_legend=-1,
        x_value_formatter=lambda value: f"{value:,.4g}",
        value_formatter=lambda value: f"{value:,.4g}",
    )
    for curve in curves:
        chart.add(curve.name, list(curve.points))
    picture: bytes = chart.render()
    return picture
