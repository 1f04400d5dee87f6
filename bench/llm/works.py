"""The works of the job queue, and the goals that their figures are held to."""

from typing import Final

from bench.process import measure
from bench.report import Row
from bench.works import Bench, attempt

ENQUEUED: Final = 50_000
ASKED: Final = 4_000
MANY: Final = 100_000
AT_ONCE: Final = 64


def llm(bench: Bench) -> list[Row]:
    """Enqueueing, the sync strategy, memory and the file's size."""
    for _ in range(bench.rounds):
        bench.take("llm enqueue", lambda: measure("bench.llm.ours:enqueue", ENQUEUED // bench.scale))
        bench.take("llm client", lambda: measure("bench.llm.ours:client", ASKED // bench.scale, AT_ONCE))
        bench.take("llm library", lambda: measure("bench.llm.ours:library", ASKED // bench.scale, AT_ONCE))
        bench.take("llm sync", lambda: measure("bench.llm.ours:sync", ASKED // bench.scale, AT_ONCE))
    bench.take("llm many", lambda: measure("bench.llm.ours:sync", MANY // bench.scale, AT_ONCE))
    bench.take("llm cycles", lambda: measure("bench.llm.ours:cycles", 100))
    return [
        attempt("llm enqueue", lambda: _rate(bench, "llm enqueue", "jobs enqueued in bulk", 5_000)),
        attempt("llm sync", lambda: _rate(bench, "llm sync", f"jobs by sync, {AT_ONCE} at once", 2_000)),
        attempt("llm client", lambda: _compared(bench, "llm client", "  the provider without a queue")),
        attempt("llm library", lambda: _compared(bench, "llm library", "  the HTTP library alone")),
        attempt("llm many", lambda: _grown(bench)),
        attempt("llm cycles", lambda: _size(bench)),
    ]


def _rate(bench: Bench, name: str, work: str, goal: int) -> Row:
    rate = bench.middle(name, "per_s")
    return bench.judged(work, f"{rate:,.0f}/s", f">= {goal:,}/s", reached=rate >= goal)


def _compared(bench: Bench, name: str, work: str) -> Row:
    alone = bench.middle(name, "per_s")
    return Row(work, f"{alone:,.0f}/s; jobs by sync are {bench.middle('llm sync', 'per_s') / alone:.2f} × that")


def _grown(bench: Bench) -> Row:
    grown = bench.middle("llm many", "grown_mb")
    return bench.judged(f"memory over {MANY:,} jobs", f"{grown:,.0f} MB more", "<= 20 MB", reached=grown <= 20)


def _size(bench: Bench) -> Row:
    ten, end = bench.middle("llm cycles", "after_ten_kb"), bench.middle("llm cycles", "after_all_kb")
    return bench.judged("file after 100 cycles", f"{end:,.0f} KB, {ten:,.0f} after ten", "no more", reached=end <= ten)
