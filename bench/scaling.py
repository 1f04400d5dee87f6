"""`python -m bench.scaling`: what one more item, run, worker or watcher costs, with few and with many."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.page import IMAGES, noise, written
from bench.plot import Curve, drawn
from bench.process import Figures, MeasurementFailed, measure
from bench.report import machine

ITEMS: Final = (1_000, 10_000, 100_000, 1_000_000)
RUNS: Final = (1_000, 10_000, 100_000)
WORKERS: Final = (1, 2, 3, 4)
WATCHERS: Final = (1, 10, 100, 500)
NAPS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Scale:
    """A thing of which there are more and more, how it is measured, and what of it has to stay flat."""

    name: str
    counts: Sequence[int]
    how: Callable[[int], Figures]
    unit: str
    cost: Callable[[int, Figures], float]
    aside: Callable[[Figures], str]


SCALES: Final = (
    Scale(
        "items of one map, results not kept",
        ITEMS,
        lambda count: measure("bench.ours:million", count),
        "µs of processor time an item",
        lambda _, seen: float(seen["cpu_us"]),
        lambda seen: f"{seen['rate']:,.0f}/s, {seen['mb']:.0f} MB",
    ),
    Scale(
        "runs that wait, one worker",
        RUNS,
        lambda count: measure("bench.ours:runs_executed", count, 100),
        "µs of processor time a run",
        lambda _, seen: float(seen["cpu_us"]),
        lambda seen: f"{seen['rate']:,.0f}/s, {seen['mb']:.0f} MB",
    ),
    Scale(
        "worker processes, runs of 20 ms, 10 at once in each",
        WORKERS,
        lambda count: measure("bench.nats.ours:naps_executed", NAPS * count, count),
        "µs of a worker's time a run",
        lambda count, seen: 1e6 * count / float(seen["rate"]),
        lambda seen: f"{seen['rate']:,.0f} runs/s together; the least busy did {seen['least_share']:.0%}",
    ),
    Scale(
        "watchers of one run over HTTP",
        WATCHERS,
        lambda count: measure("bench.http.ours:watchers", count),
        "µs of the gateway's processor a watcher and change",
        lambda count, seen: float(seen["cpu_ms"]) * 1000 / count,
        lambda seen: f"the last one knows after {seen['last_p50']:.0f} ms; gateway {seen['gateway_mb']:.0f} MB",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="only print; docs/performance.md stays as it is")
    options = parser.parse_args()
    facts = machine(measure("bench.yardsticks:fsyncs", 200)["ms"])
    seen: dict[tuple[str, int], list[Figures]] = {}
    ys = []
    for _ in range(options.rounds):
        for scale in SCALES:
            ys.append(measure("bench.yardsticks:commits", 1000)["rate"])
            for count in scale.counts:
                _take(scale, count, seen.setdefault((scale.name, count), []))
    text = "\n\n".join([*(_table(scale, seen) for scale in SCALES), noise(ys)])
    print(text)
    if options.print:
        return
    picture = drawn(
        "Cost of one more, relative to the median of its curve",
        [Curve(scale.name, _relative(scale, seen)) for scale in SCALES],
        x="how many there are",
        y="×",
        logarithmic=True,
    )
    (IMAGES / "scaling.svg").write_bytes(picture)
    written(
        "scaling",
        f"![Cost of one more](images/scaling.svg)\n\n{text}",
        f"make bench-scaling ROUNDS={options.rounds}",
        facts,
    )


def _take(scale: Scale, count: int, into: list[Figures]) -> None:
    try:
        figures = scale.how(count)
    except MeasurementFailed as failure:
        print(f"{scale.name}, {count:,}: failed: {failure}", file=sys.stderr, flush=True)
        return
    into.append(figures)
    print(f"{scale.name}, {count:,}: {scale.cost(count, figures):.1f} {scale.unit}", file=sys.stderr, flush=True)


def _cost(scale: Scale, count: int, seen: dict[tuple[str, int], list[Figures]]) -> float | None:
    found = seen[scale.name, count]
    return median(scale.cost(count, figures) for figures in found) if found else None


def _relative(scale: Scale, seen: dict[tuple[str, int], list[Figures]]) -> list[tuple[float, float]]:
    costs = {count: cost for count in scale.counts if (cost := _cost(scale, count, seen)) is not None}
    middle = median(costs.values())
    return [(count, cost / middle) for count, cost in costs.items()]


def _table(scale: Scale, seen: dict[tuple[str, int], list[Figures]]) -> str:
    lines = [f"| {scale.name} | {scale.unit} | |", "|---:|---:|---|"]
    for count in scale.counts:
        cost, found = _cost(scale, count, seen), seen[scale.name, count]
        lines.append(f"| {count:,} | {cost:,.1f} | {scale.aside(found[-1])} |" if cost else f"| {count:,} | failed | |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
