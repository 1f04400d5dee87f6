"""The works of the application that makes notes, and the goals they are held to."""

from typing import Final

from bench.notes.disk import MEMORY, in_memory
from bench.process import Figures, measure
from bench.report import Row
from bench.works import Y_ROWS, Bench, attempt

RECORDS: Final = ((1_000, 50), (100_000, 1_000))
"""How many records a log has, and how long it may take to load (milliseconds)."""
IMPORT: Final = "bench.notes.ours:offline_import"
DISK: Final = "bench.notes.disk:alone"
CONVERSATIONS: Final = 2_000
MANY: Final = 10_000
"""How many show what a conversation takes where the start of two processes is shared by more of them."""
MEGABYTES: Final = 1_000
MOST_MEMORY: Final = 200


def notes(bench: Bench) -> list[Row]:
    """The cache, an offline import beside Y, a resume with nothing to do, and an export of a gigabyte."""
    conversations = CONVERSATIONS // bench.scale
    for _ in range(bench.rounds):
        for count, _ in RECORDS:
            bench.take(f"notes cache {count}", lambda count=count: measure("bench.notes.ours:cache", count))  # type: ignore[misc] # the default binds it now
        before, disk = measure("bench.yardsticks:commits", Y_ROWS), measure(DISK, conversations)
        bench.take("notes import", lambda: measure(IMPORT, conversations))
        with in_memory() as folder:
            if folder is not None:
                bench.take("notes memory", lambda folder=folder: measure(IMPORT, conversations, folder=folder))  # type: ignore[misc] # the default binds it now
        with in_memory() as folder:
            if folder is not None:
                bench.take("notes many", lambda folder=folder: measure(IMPORT, MANY // bench.scale, folder=folder))  # type: ignore[misc] # the default binds it now
        bench.take("notes disk", lambda disk=disk: _between(disk, measure(DISK, conversations)))  # type: ignore[misc] # the default binds it now
        after = measure("bench.yardsticks:commits", Y_ROWS)
        bench.take("notes Y", lambda before=before, after=after: _between(before, after))  # type: ignore[misc] # the default binds it now
    bench.take("notes large", lambda: measure("bench.notes.ours:large_export", MEGABYTES // bench.scale))
    return [
        *(attempt(f"CompletedItemsCache of {count:,} records", lambda c=count, m=most: _cache(bench, c, m))  # type: ignore[misc] # the default binds it now
          for count, most in RECORDS),
        attempt("offline import of 2,000 conversations of 5 KB", lambda: _import(bench)),
        attempt("  what it is limited by", lambda: _limit(bench)),
        attempt("  resume with nothing left to do", lambda: _resume(bench)),
        attempt("  an export of 1 GB, extracted", lambda: _large(bench)),
    ]  # fmt: skip


def _between(before: Figures, after: Figures) -> Figures:
    """Gives the rate in the middle: what was measured first may have had a disk that nobody had used for a while."""
    return {"rate": (before["rate"] + after["rate"]) / 2, "before": before["rate"], "after": after["rate"]}


def _cache(bench: Bench, count: int, most: int) -> Row:
    took = bench.middle(f"notes cache {count}", "ms")
    work = f"CompletedItemsCache of {count:,} records"
    return bench.judged(work, f"{took:,.1f} ms", f"≤ {most:,} ms", reached=took <= most)


def _import(bench: Bench) -> Row:
    rate, ratio = bench.middle("notes import", "rate"), bench.ratio("notes import", "notes Y")
    alone = bench.ratio("notes import", "notes disk")
    figure = f"{rate:,.0f}/s = {ratio:.2f} Y = {alone:.2f} of what the disk takes of notes alone"
    return Row("offline import of 2,000 conversations of 5 KB", figure)


def _limit(bench: Bench) -> Row:
    """Says what the time of an import goes into, and which is slower: Python without a disk, or the disk alone.

    What an import takes longer than in memory is the disk's. In memory it still pays for the calls of the system.
    """
    each, python, system = (bench.middle("notes import", name) for name in ("each_us", "python_us", "system_us"))
    figure = f"{each:,.0f} µs each, with {python:,.0f} of Python and {system:,.0f} of the system on all cores"
    if MEMORY.is_dir():
        memory = bench.middle("notes memory", "each_us")
        figure += f"; in memory {memory:,.0f} µs: {max(1 - memory / each, 0):.0%} of the time is the disk's; "
        figure += slower(bench.middle("notes memory", "rate"), bench.middle("notes disk", "rate"))
        figure += f"; of {MANY // bench.scale:,} in memory {bench.middle('notes many', 'rate'):,.0f}/s"
    return Row("  what it is limited by", figure)


def slower(python: float, disk: float) -> str:
    """Says which of the two is the slower one, each measured without the other (notes a second)."""
    rates = f"Python alone makes {python:,.0f}/s, the disk alone takes {disk:,.0f}/s"
    return f"{rates}: {'fsync' if disk < python else 'Python'} is the slower one"


def _resume(bench: Bench) -> Row:
    return Row("  resume with nothing left to do", f"{bench.middle('notes import', 'resume_ms'):,.0f} ms")


def _large(bench: Bench) -> Row:
    peak, rate = bench.middle("notes large", "peak_mb"), bench.middle("notes large", "mb_per_second")
    work, figure = "  an export of 1 GB, extracted", f"{peak:,.0f} MB of memory, {rate:,.0f} MB/s"
    return bench.judged(work, figure, f"≤ {MOST_MEMORY} MB", reached=peak <= MOST_MEMORY)
