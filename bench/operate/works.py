"""Backup and restore at the size of a small team's store: 10,000 runs and 100 MB of wheels, on both backends."""

from typing import Final

from bench.nats.servers import address, servers
from bench.process import Figures, fresh_folder, measure
from bench.report import Row
from bench.works import Bench, attempt

RUNS: Final = 10_000
MEGABYTES: Final = 100
TIMES: Final = ("backup", "verify", "restore", "doctor")
KINDS: Final = ("NATS", "SQLite")


def operate(bench: Bench) -> list[Row]:
    """Measures once: what counts is that every item is the same, and in what order of time."""
    bench.take("operate NATS", lambda: _on_nats(bench.scale))
    bench.take("operate SQLite", lambda: measure("bench.operate.ours:on_sqlite", *_sizes(bench.scale)))
    return [attempt(f"backup, {kind}", lambda kind=kind: _row(bench, kind)) for kind in KINDS]  # type: ignore[misc]  # a default binds it


def _sizes(scale: int) -> tuple[int, int]:
    return RUNS // scale, MEGABYTES // scale


def _on_nats(scale: int) -> Figures:
    with servers() as one, servers() as other, fresh_folder() as folder:
        (folder / "address").write_text(" ".join(address(each).partition("?")[0] for each in (one, other)))
        return measure("bench.operate.ours:on_nats", *_sizes(scale), folder=folder)


def _row(bench: Bench, kind: str) -> Row:
    runs, megabytes = _sizes(bench.scale)
    seen = {name: bench.middle(f"operate {kind}", name) for name in (*TIMES, "mb", "compared", "peak_mb")}
    times = ", ".join(f"{name} {seen[name]:.1f} s" for name in TIMES)
    rest = f"{seen['mb']:.0f} MB, {seen['compared']:,.0f} items the same, {seen['peak_mb']:.0f} MB of memory"
    return Row(f"backup of {runs:,} runs and {megabytes} MB of wheels, {kind}", f"{times}; {rest}")
