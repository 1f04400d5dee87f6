"""Pictures of figures for the docs, by pygal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pygal
from pygal.style import CleanStyle
from pygal.view import LogView


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a picture."""

    name: str
    points: Sequence[tuple[float, float]]


class Steep(pygal.XY):  # type: ignore[misc] # pygal has no types
    """Powers of ten along the left side alone, which pygal has for other charts than this."""

    def _set_view(self) -> None:
        self.view = LogView(self.width - self.margin_box.x, self.height - self.margin_box.y, self._box)

    def _compute_x_labels(self) -> None:
        self.logarithmic = False
        super()._compute_x_labels()
        self.logarithmic = True


def drawn(
    title: str, curves: Sequence[Curve], *, x: str, y: str, logarithmic: bool = False, steep: bool = False
) -> bytes:
    """Draws curves as an SVG that loads nothing from elsewhere; `logarithmic` has powers of ten along both sides.

    A `steep` picture has them along the left side.
    """
    style = CleanStyle(background="white", plot_background="white")
    chart = (Steep if steep else pygal.XY)(
        js=[],
        style=style,
        title=title,
        x_title=x,
        y_title=y,
        width=900,
        height=380,
        logarithmic=logarithmic or steep,
        xrange=None,
        legend_at_bottom=True,
        legend_at_bottom_columns=1 if logarithmic else 2,
        margin_right=40,
        dots_size=2,
        show_x_guides=False,
        truncate_legend=-1,
        truncate_label=-1,
        x_value_formatter=lambda value: f"{value:,.12g}",
        value_formatter=lambda value: f"{value:,.4g}",
    )
    if logarithmic:  # powers of ten alone: what stands between them has no room for its letters
        chart.x_labels = _powers(curves)
        chart.y_labels = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    for curve in curves:
        chart.add(curve.name, list(curve.points))
    picture: bytes = chart.render()
    return picture


def _powers(curves: Sequence[Curve]) -> list[int]:
    places = [x for curve in curves for x, _ in curve.points]
    return [10**power for power in range(math.floor(math.log10(min(places))), math.ceil(math.log10(max(places))) + 1)]
