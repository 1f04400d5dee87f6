"""Draws statistics as SVG: what was added above the line, what was deleted below it, by period and author.

The picture stands alone: no script, no font of its own, nothing from outside, and it follows light and dark.
"""

import math
from collections.abc import Iterator
from typing import Final
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from tsuzuki.apps.commits.statistics import Statistics

WIDTH: Final = 1000
HEIGHT: Final = 520
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 92, 88
MOST_AUTHORS: Final = 8
OTHERS: Final = "others"
COLOURS: Final = ("#3b6fd4", "#e2803a", "#2f9e77", "#c2486b", "#8a63c7", "#b0932e", "#3aa0b8", "#7c6a5c", "#9aa3af")
_NICE: Final = (1, 2, 2.5, 5, 10)
_BETWEEN: Final = 14
"""The room between two labels of the time axis."""
_LONGEST: Final = 40
"""The longest name in the legend, in signs."""
_LEGEND_LINES: Final = 2
_STYLE: Final = """
svg { font-family: system-ui, "Hiragino Sans", "Noto Sans JP", sans-serif; }
.paper { fill: #ffffff; } .ink { fill: #1c2430; } .pale { fill: #697586; }
.grid { stroke: #e3e7ed; stroke-width: 1; } .zero { stroke: #697586; stroke-width: 1; }
.below { fill-opacity: .5; } .mark:hover { fill-opacity: 1; stroke: #1c2430; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
.paper { fill: #14181f; } .ink { fill: #e8ecf2; } .pale { fill: #98a3b3; }
.grid { stroke: #2a313c; } .zero { stroke: #98a3b3; } .mark:hover { stroke: #e8ecf2; }
}
"""


def drawn(statistics: Statistics, title: str) -> str:
    """Gives a whole SVG document."""
    picture = _Picture(statistics)
    total = f"{statistics.commits:,} commits  ·  +{statistics.additions:,}  −{statistics.deletions:,}" + (
        f"  ·  {statistics.missing_stats:,} without figures" if statistics.missing_stats else ""
    )
    body = "\n".join([*picture.grid(), *picture.bars(), *picture.labels(), *picture.legend()])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{_quoted(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n'
        f'<text class="ink" x="{LEFT}" y="34" font-size="20" font-weight="600">{escape(title)}</text>\n'
        f'<text class="pale" x="{LEFT}" y="56" font-size="13">{escape(total)}</text>\n{body}\n</svg>\n'
    )


class _Picture:
    """The picture's measures, and its parts as SVG."""

    def __init__(self, statistics: Statistics) -> None:
        self._months = statistics.periods
        known = statistics.authors
        self._authors = known[:MOST_AUTHORS] + ([OTHERS] if len(known) > MOST_AUTHORS else [])
        self._cells: dict[tuple[str, str], list[int]] = {}
        for row in statistics.rows:
            author = row.author if row.author in known[:MOST_AUTHORS] else OTHERS
            cell = self._cells.setdefault((row.month, author), [0, 0, 0])
            for at, number in enumerate((row.additions, row.deletions, row.commits)):
                cell[at] += number
        self._step = nice(max(self._highest(0), self._highest(1), 1))
        self._up = max(math.ceil(self._highest(0) / self._step), 1) * self._step
        self._down = math.ceil(self._highest(1) / self._step) * self._step
        self._room = HEIGHT - TOP - BOTTOM
        self._slot = (WIDTH - LEFT - RIGHT) / max(len(self._months), 1)

    def _highest(self, which: int) -> int:
        sums = [sum(cell[which] for (at, _), cell in self._cells.items() if at == month) for month in self._months]
        return max(sums, default=0)

    def _y(self, value: float) -> float:
        return TOP + self._room * (self._up - value) / (self._up + self._down)

    def grid(self) -> Iterator[str]:
        """The lines across, with their numbers."""
        value = -self._down
        while value <= self._up:
            y, kind = self._y(value), "zero" if value == 0 else "grid"
            yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            sign = "+" if value > 0 else "−" if value < 0 else ""
            yield _text(LEFT - 8, y + 4, f"{sign}{short(abs(value))}", "pale", anchor="end")
            value += self._step

    def bars(self) -> Iterator[str]:
        """A stack of additions above the line, and one of deletions below it, for each month."""
        width = min(self._slot * 0.72, 56.0)
        for at, month in enumerate(self._months):
            x = LEFT + self._slot * (at + 0.5) - width / 2
            above = below = 0.0
            for number, author in enumerate(self._authors):
                added, deleted, commits = self._cells.get((month, author), (0, 0, 0))
                told = f"{shown(month)}  {author}: +{added:,} −{deleted:,}, {commits:,} commits"
                fill = f'fill="{self._colour(number)}"><title>{escape(told)}</title>'
                yield self._bar(x, width, (above, above + added), f'class="mark" {fill}')
                yield self._bar(x, width, (-below - deleted, -below), f'class="mark below" {fill}')
                above, below = above + added, below + deleted

    def _bar(self, x: float, width: float, span: tuple[float, float], look: str) -> str:
        low, high = span
        if high == low:
            return ""
        top, height = self._y(high), self._y(low) - self._y(high)
        shape = f'x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(height, 0.6):.1f}" rx="1.5"'
        return f"<rect {shape} {look}</rect>"

    def _colour(self, number: int) -> str:
        return COLOURS[-1] if self._authors[number] == OTHERS else COLOURS[number % len(COLOURS)]

    def labels(self) -> Iterator[str]:
        """The months, as many as there is room for; where there are none, a word about it."""
        widest = max((wide(shown(month)) for month in self._months), default=0.0)
        every = max(math.ceil((widest + _BETWEEN) / self._slot), 1)
        for at, month in enumerate(self._months):
            if at % every == 0:
                yield _text(LEFT + self._slot * (at + 0.5), HEIGHT - BOTTOM + 20, shown(month), "pale", anchor="middle")
        if not self._months:
            yield _text(WIDTH / 2, HEIGHT / 2, "no commits are stored yet", "pale", anchor="middle")

    def legend(self) -> Iterator[str]:
        """Who has which colour, in two lines: everybody who is drawn is named, shortened where there is no room."""
        across = WIDTH - RIGHT - LEFT
        longest = _LONGEST
        while longest > 1 and self._lines(longest, across) > _LEGEND_LINES:
            longest -= 1
        x, y = float(LEFT), HEIGHT - 46
        for number, author in enumerate(self._authors):
            name = shortened(author, longest)
            if x > LEFT and x + 17 + wide(name) > LEFT + across:
                x, y = float(LEFT), y + 20
            yield f'<rect x="{x:.0f}" y="{y - 10}" width="11" height="11" rx="2" fill="{self._colour(number)}"/>'
            yield _text(x + 17, y, name, "ink")
            x += 38 + wide(name)

    def _lines(self, longest: int, across: float) -> int:
        """Counts the lines of a legend whose names are so long at most."""
        lines, x = 1, 0.0
        for author in self._authors:
            room = wide(shortened(author, longest))
            if x > 0 and x + 17 + room > across:
                lines, x = lines + 1, 0.0
            x += 38 + room
        return lines


def shortened(name: str, longest: int) -> str:
    """Gives a name in so many signs at most."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def nice(highest: float) -> float:
    """Gives a round distance between lines, so that there are three to six of them."""
    rough = highest / 4
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1
    step = next(power * factor for factor in _NICE if power * factor >= rough)
    return max(step, 1.0)


def short(value: float) -> str:
    """Gives a number in few signs: 950, 1.5k, 20k, 3M."""
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def shown(period: str) -> str:
    """Gives a month, a day or an hour for people: 2026-01, 01-31, 01-31 09:00."""
    if len(period) == len("2026-01"):
        return period
    day, _, hour = period.partition("T")
    return f"{day[5:]} {hour}:00" if hour else day[5:]


def wide(text: str) -> float:
    """Guesses how wide a text is: a Japanese sign is twice as wide as others."""
    return sum(12.5 if east_asian_width(sign) in "WF" else 7.0 for sign in text)


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="{anchor}">{escape(text)}</text>'


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;"})
