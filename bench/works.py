"""The works that are measured: what runs in a round, and which goals its figures are held to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from bench import counting
from bench.peers import Peer
from bench.process import Figures, MeasurementFailed, fresh_folder, measure
from bench.report import Row, judged

Y_ROWS: Final = 1000
LABELS: Final = {
    "steps sync": "  sync tasks",
    "items sync": "  sync tasks",
    "items bare": "bare group-commit loop, 10,000 items",
    "runs bare": "bare group-commit loop, 5,000 runs",
}


@dataclass(slots=True)
class Bench:
    """How to measure, and everything that was seen."""

    rounds: int
    scale: int
    """The big stores are smaller by this factor when it has to be quick."""
    peers: Sequence[Peer]
    tell: Callable[[str], None]
    seen: dict[str, list[Figures]] = field(default_factory=dict)

    def take(self, name: str, how: Callable[[], Figures]) -> Figures | None:
        """Measures once and keeps the figures; a failure is told, never hidden."""
        try:
            figures = how()
        except MeasurementFailed as failure:
            figures = {"failed": str(failure)}
        self.seen.setdefault(name, []).append(figures)
        self.tell(f"{name}: {shown(figures)}")
        return None if "failed" in figures else figures

    def judged(self, work: str, figure: str, goal: str, *, reached: bool) -> Row:
        """Makes a line whose goal holds for the full size only."""
        return judged(work, figure, goal, reached=reached) if self.scale == 1 else Row(work, figure)

    def each(self, name: str, figure: str) -> list[float]:
        """Gives a figure of all rounds in which it was seen."""
        return [figures[figure] for figures in self.seen.get(name, []) if figure in figures]

    def middle(self, name: str, figure: str) -> float:
        """Gives the median of a figure over the rounds."""
        values = self.each(name, figure)
        if not values:
            failures = [str(figures.get("failed")) for figures in self.seen.get(name, [])]
            raise MeasurementFailed(f"{name}: {failures[0] if failures else 'not measured'}")
        return median(values)

    def ratio(self, name: str, to: str) -> float:
        """Gives the median over the rounds of the ratios within each round."""
        pairs = zip(self.seen[name], self.seen[to], strict=True)
        values: list[float] = [one["rate"] / other["rate"] for one, other in pairs if "rate" in one and "rate" in other]
        if not values:
            raise MeasurementFailed(f"{name}: {self.seen[name][0].get('failed')}")
        return median(values)


def shown(figures: Figures) -> str:
    """Writes figures for people."""
    return ", ".join(
        f"{name} {value:,.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items()
    )


# Works with a ratio: in each round the yardsticks, ours and the peers, one after the other


def _round(bench: Bench, name: str, ours: dict[str, tuple[Any, ...]], bare: tuple[str, int] | None) -> None:
    """One round of a work. Y is taken before and after: a neighbour that comes and goes harms both alike."""
    before = measure("bench.yardsticks:commits", Y_ROWS)
    if bare is not None:
        bench.take(f"{name} bare", lambda: measure(f"bench.yardsticks:{bare[0]}", bare[1]))
    for row, (work, *values) in ours.items():
        bench.take(row, lambda work=work, values=values: measure(f"bench.ours:{work}", *values))  # type: ignore[misc]
    after = measure("bench.yardsticks:commits", Y_ROWS)
    bench.take(f"{name} Y", lambda: {"rate": (before["rate"] + after["rate"]) / 2})
    for peer in bench.peers:
        if name in peer.counts:
            bench.take(f"{name} {peer.name}", lambda peer=peer: peer.measure(name))  # type: ignore[misc]


def _processor(bench: Bench, name: str) -> Row:
    """Compares processor time: what Python costs, whatever the disk and the neighbours do."""
    ours, bare = bench.middle(name, "cpu_us"), bench.middle(f"{name} bare", "cpu_us")
    return Row("  processor time of each", f"{ours:.0f} µs, bare {bare:.0f} µs: {bare / ours:.2f} bare")


def _rows_of_peers(bench: Bench, name: str, what: str) -> list[Row]:
    rows = []
    for peer in bench.peers:
        if name in peer.counts:
            row = f"{name} {peer.name}"
            rows.append(attempt(f"  {peer.name}", lambda row=row: _rate(bench, row, name, what)))  # type: ignore[misc]
    return rows


def _rate(bench: Bench, row: str, name: str, what: str) -> Row:
    figure = f"{bench.middle(row, 'rate'):,.0f} {what}/s = {bench.ratio(row, f'{name} Y'):.2f} Y"
    return Row(LABELS.get(row, f"  {row.removeprefix(name).strip()}"), figure)


def attempt(work: str, make: Callable[[], Row]) -> Row:
    """Makes a line; when it cannot be made, the line says why."""
    try:
        return make()
    except MeasurementFailed as failure:
        return Row(work, f"not measured: {failure}")


def steps(bench: Bench) -> list[Row]:
    """One flow with 1,000 no-op steps, one after the other."""
    for _ in range(bench.rounds):
        _round(bench, "steps", {"steps": ("steps", 1000), "steps sync": ("sync_steps", 1000)}, None)

    def main() -> Row:
        ratio = bench.ratio("steps", "steps Y")
        figure = f"{bench.middle('steps', 'rate'):,.0f} steps/s = {ratio:.2f} Y"
        return judged("1,000 steps in sequence, async", figure, "≥ 0.8 Y", reached=ratio >= 0.8)

    return [
        Row("Y: a row per commit, 1,000 rows", f"{bench.middle('steps Y', 'rate'):,.0f} rows/s"),
        attempt("1,000 steps in sequence, async", main),
        attempt("  sync tasks", lambda: _rate(bench, "steps sync", "steps", "steps")),
        *_rows_of_peers(bench, "steps", "steps"),
    ]


def items(bench: Bench) -> list[Row]:
    """One map over 10,000 no-op items, 100 in flight."""
    for _ in range(bench.rounds):
        ours = {"items": ("items", 10_000), "items sync": ("sync_items", 10_000)}
        _round(bench, "items", ours, ("bare_items", 10_000))

    def main() -> Row:
        y, bare = bench.ratio("items", "items Y"), bench.ratio("items", "items bare")
        figure = f"{bench.middle('items', 'rate'):,.0f} items/s = {y:.1f} Y = {bare:.2f} bare"
        return judged(
            "map of 10,000 no-ops, 100 in flight", figure, "≥ 10 Y or ≥ 0.35 bare", reached=y >= 10 or bare >= 0.35
        )

    def memory() -> Row:
        mb = bench.middle("items", "mb")
        return judged("  peak memory", f"{mb:.0f} MB", "≤ 100 MB", reached=mb <= 100)

    return [
        attempt("bare group-commit loop, items", lambda: _rate(bench, "items bare", "items", "items")),
        attempt("map of 10,000 no-ops", main),
        attempt("  peak memory", memory),
        attempt("  processor time", lambda: _processor(bench, "items")),
        attempt("  sync tasks", lambda: _rate(bench, "items sync", "items", "items")),
        *_rows_of_peers(bench, "items", "items"),
    ]


def runs(bench: Bench) -> list[Row]:
    """5,000 no-op runs, enqueued one call at a time, then executed by one worker."""
    for _ in range(bench.rounds):
        _round(bench, "runs", {"runs": ("runs_executed", 5000, 100)}, ("bare_runs", 5000))

    def main() -> Row:
        y, bare = bench.ratio("runs", "runs Y"), bench.ratio("runs", "runs bare")
        figure = f"{bench.middle('runs', 'rate'):,.0f} runs/s = {y:.1f} Y = {bare:.2f} bare"
        goal = "≥ 5 Y or ≥ 0.25 bare"
        return judged("5,000 no-op runs, one worker (100 at once)", figure, goal, reached=y >= 5 or bare >= 0.25)

    return [
        attempt("bare group-commit loop, runs", lambda: _rate(bench, "runs bare", "runs", "runs")),
        attempt("5,000 no-op runs", main),
        attempt("  processor time", lambda: _processor(bench, "runs")),
        attempt(
            "  enqueued before", lambda: Row("  enqueued before", f"{bench.middle('runs', 'enqueued'):,.0f} runs/s")
        ),
        *_rows_of_peers(bench, "runs", "runs"),
    ]


# Works with an absolute goal


def fsyncs(bench: Bench) -> list[Row]:
    """fsyncs of whole processes, counted by strace."""
    works = (
        ("fsyncs per step", "steps", 1000, 1.1),
        ("fsyncs per no-op item", "items", 10_000, 0.05),
        ("fsyncs per item of 5-50 ms", "naps", 4000, 0.15),
    )
    rows = []
    for name, work, count, goal in works:
        seen = bench.take(name, lambda work=work, count=count: counting.fsyncs(f"bench.ours:{work}", count))  # type: ignore[misc]
        if seen is None:
            rows.append(Row(name, f"not measured: {bench.seen[name][-1]['failed']}"))
        else:
            rows.append(judged(name, f"{seen['per']:.3f}", f"≤ {goal}", reached=seen["per"] <= goal))
    return rows


def latency(bench: Bench) -> list[Row]:
    """From the call of submit to the first line of the flow."""
    for _ in range(bench.rounds):
        bench.take("latency", lambda: measure("bench.ours:latency", 200))

    def main() -> Row:
        p50, p99 = bench.middle("latency", "p50"), bench.middle("latency", "p99")
        return judged("enqueue → first line", f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", "p50 ≤ 5 ms", reached=p50 <= 5)

    return [attempt("enqueue → first line", main)]


def replay(bench: Bench) -> list[Row]:
    """A run that failed after its map is resumed: the map is answered from the journal."""
    count = 100_000 // bench.scale
    with fresh_folder() as folder:
        bench.take("replay, recorded first", lambda: measure("bench.ours:replay", count, folder=folder))
        for _ in range(bench.rounds):
            bench.take("replay", lambda: measure("bench.ours:replay", count, folder=folder))

    def main() -> Row:
        seconds, mb = bench.middle("replay", "seconds"), bench.middle("replay", "mb")
        figure, goal = f"{seconds:.2f} s, {mb:.0f} MB", "≤ 1.5 s, ≤ 150 MB"
        return bench.judged(f"replay of {count:,} items", figure, goal, reached=seconds <= 1.5 and mb <= 150)

    return [attempt("replay", main)]


def pages(bench: Bench) -> list[Row]:
    """Pages of 50 out of 100,000 runs."""
    count = 100_000 // bench.scale
    name = f"page of 50 out of {count:,} runs"
    seen = bench.take("pages", lambda: measure("bench.pages:pages", count))
    if seen is None:
        return [Row(name, f"not measured: {bench.seen['pages'][-1]['failed']}")]
    worst = next(iter(seen["slowest"]))
    figure = f"max {seen['max']:.1f} ms, median {seen['median']:.2f} ms ({worst})"
    above = f"{seen['above_5_ms']} of {seen['pages']} above 5 ms"
    return [bench.judged(name, figure, "max ≤ 5 ms", reached=seen["max"] <= 5), Row("", above)]


def importing(bench: Bench) -> list[Row]:
    """The import in fresh processes."""
    bench.take("import", lambda: counting.importing(10))

    def main() -> Row:
        ms, mb = bench.middle("import", "ms"), bench.middle("import", "mb")
        return judged(
            "import tsuzuki", f"{ms:.0f} ms, {mb:.0f} MB", "≤ 200 ms, ≤ 40 MB", reached=ms <= 200 and mb <= 40
        )

    return [attempt("import tsuzuki", main)]


def million(bench: Bench) -> list[Row]:
    """A million items whose results are not kept."""
    bench.take("million", lambda: measure("bench.ours:million", 1_000_000))

    def main() -> Row:
        return Row(
            "map of 1,000,000, results not kept",
            f"{bench.middle('million', 'rate'):,.0f} items/s, {bench.middle('million', 'mb'):.0f} MB",
        )

    return [attempt("map of 1,000,000", main)]


WORKS: Final[dict[str, Callable[[Bench], list[Row]]]] = {
    "steps": steps,
    "items": items,
    "runs": runs,
    "fsyncs": fsyncs,
    "latency": latency,
    "replay": replay,
    "pages": pages,
    "import": importing,
    "million": million,
}
ONLY_WHEN_ASKED: Final = frozenset({"million"})
