"""The works of the application that collects commits, and the goals they are held to."""

from functools import partial
from typing import Final

from bench.process import measure
from bench.report import Row
from bench.works import Bench, attempt

COMMITS: Final = 10_000
TARGETS: Final = 100
MANY: Final = 1_000_000
POLITE_MS: Final = 100


def commits(bench: Bench) -> list[Row]:
    """Local git, a hundred targets behind a slow API with and without politeness, and statistics over a million."""
    for _ in range(bench.rounds):
        bench.take("commits git", lambda: measure("bench.commits.ours:local_git", COMMITS // bench.scale))
    for name, pause_ms, lanes in (("polite", POLITE_MS, 1), ("at once", 0, 1), ("eight lanes", 0, 8)):
        how = partial(measure, "bench.commits.ours:targets", TARGETS // bench.scale, pause_ms, lanes)
        bench.take(f"commits {name}", how)
    bench.take("commits statistics", lambda: measure("bench.commits.ours:monthly", MANY // bench.scale))
    return [
        attempt("commits of a local branch, 10,000 with figures", lambda: _git(bench)),
        attempt("  100 targets, an API of 50 ms, pause 0.1 s", lambda: _targets(bench, "polite", "pause 0.1 s", 60)),
        attempt("  without a pause", lambda: _targets(bench, "at once", "no pause", 60)),
        attempt("  and eight at a time", lambda: _targets(bench, "eight lanes", "eight at a time", 60)),
        attempt("  statistics over 1,000,000 commits", lambda: _statistics(bench)),
    ]


def _git(bench: Bench) -> Row:
    rate, alone = bench.middle("commits git", "rate"), bench.middle("commits git", "git_alone")
    figure = f"{rate:,.0f}/s (git log alone {alone:,.0f}/s)"
    return bench.judged("commits of a local branch, with figures", figure, "≥ 2,000/s", reached=rate >= 2000)


def _targets(bench: Bench, name: str, told: str, most: float) -> Row:
    seconds = bench.middle(f"commits {name}", "seconds")
    work = f"  100 targets, an API of 50 ms, {told}"
    return bench.judged(work, f"{seconds:.1f} s", f"≤ {most:.0f} s", reached=seconds <= most)


def _statistics(bench: Bench) -> Row:
    seconds, stored = bench.middle("commits statistics", "seconds"), bench.middle("commits statistics", "stored")
    figure = f"{seconds * 1000:,.0f} ms (stored at {stored:,.0f}/s)"
    return bench.judged("  statistics over 1,000,000 commits", figure, "≤ 2 s", reached=seconds <= 2)
