"""The works over HTTP: what runs in a round, on which store, and which goals the figures are held to."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.nats.servers import ALWAYS, address, servers
from bench.process import Figures, fresh_folder, measure
from bench.report import Row
from bench.works import Bench, attempt

RUNS: Final = 2_000
LANES: Final = 16
LATENCIES: Final = 200
ROWS: Final = 100_000
PAGES: Final = 100
WATCHERS: Final = 500
IDLE: Final = 15


@dataclass(frozen=True, slots=True)
class Store:
    """A store, and what is asked of it."""

    name: str
    rate: int
    start_ms: int
    nats: bool = False


SQLITE: Final = Store("SQLite", rate=600, start_ms=10)
NATS: Final = Store("NATS, every write synced", rate=300, start_ms=8, nats=True)
STORES: Final = (SQLITE, NATS)


def http(bench: Bench) -> list[Row]:
    """One gateway and one worker as processes: runs, latency, pages, watchers, and what they use."""
    for _ in range(bench.rounds):
        for store in STORES:
            bench.take(f"http fsync, {store.name}", lambda: measure("bench.yardsticks:fsyncs", 100))
            _take(bench, store, "runs_executed", RUNS // bench.scale, LANES)
            _take(bench, store, "latency", LATENCIES // bench.scale)
            _take(bench, store, "watchers", WATCHERS // bench.scale)
    for store in STORES:
        _take(bench, store, "lists", ROWS // bench.scale, PAGES // bench.scale, synced=False)
        _take(bench, store, "idle", IDLE // min(bench.scale, 3))
    return [row for store in STORES for row in _rows(bench, store)]


def _take(bench: Bench, store: Store, work: str, *values: int, synced: bool = True) -> None:
    bench.take(f"http {work}, {store.name}", _on(store, f"bench.http.ours:{work}", *values, synced=synced))


def _on(store: Store, work: str, *values: int, synced: bool = True) -> Callable[[], Figures]:
    """Says how to measure a work on a fresh store; one that is filled first, and then only read, needs no syncs."""

    def how() -> Figures:
        with ExitStack() as stack:
            folder = stack.enter_context(fresh_folder())
            if store.nats:
                started = stack.enter_context(servers(sync=ALWAYS if synced else ""))
                (folder / "address").write_text(address(started))
            return measure(work, *values, folder=folder)

    return how


def _rows(bench: Bench, store: Store) -> list[Row]:
    return [
        Row(f"over HTTP on {store.name}", "one gateway and one worker process"),
        attempt("  no-op runs, end to end", lambda: _runs(bench, store)),
        attempt("  processor time of each", lambda: _processor(bench, store)),
        attempt("  submit → first line", lambda: _latency(bench, store)),
        attempt("  page of 50", lambda: _lists(bench, store)),
        attempt("  watchers of one run", lambda: _watchers(bench, store)),
        attempt("  memory", lambda: _memory(bench, store)),
        attempt("  idle", lambda: _idle(bench, store)),
    ]


def _runs(bench: Bench, store: Store) -> Row:
    name = f"http runs_executed, {store.name}"
    rate, best = bench.middle(name, "rate"), max(bench.each(name, "rate"))
    fsync = bench.middle(f"http fsync, {store.name}", "ms")
    figure = f"{rate:,.0f} runs/s (best round {best:,.0f}), accepted {bench.middle(name, 'submitted'):,.0f}/s"
    work = f"  {RUNS // bench.scale:,} no-op runs, {LANES} at once, end to end"
    return bench.judged(work, f"{figure}; an fsync {fsync:.2f} ms", f"≥ {store.rate}/s", reached=rate >= store.rate)


def _processor(bench: Bench, store: Store) -> Row:
    name = f"http runs_executed, {store.name}"
    parts = ", ".join(f"{part} {bench.middle(name, f'{part}_us'):.0f} µs" for part in ("gateway", "worker", "client"))
    return Row("  processor time of each", parts)


def _latency(bench: Bench, store: Store) -> Row:
    name = f"http latency, {store.name}"
    p50, p99 = bench.middle(name, "p50"), bench.middle(name, "p99")
    figure = f"p50 {p50:.1f} ms (best round {min(bench.each(name, 'p50')):.1f}), p99 {p99:.1f} ms"
    return bench.judged("  submit → first line", figure, f"p50 ≤ {store.start_ms} ms", reached=p50 <= store.start_ms)


def _lists(bench: Bench, store: Store) -> Row:
    name = f"http lists, {store.name}"
    p50, p99, cpu, first = (bench.middle(name, figure) for figure in ("p50", "p99", "cpu_ms", "first_s"))
    figure = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {cpu:.1f} ms of processor; the very first pages {first:.2f} s"
    return bench.judged(f"  page of 50 out of {ROWS // bench.scale:,}", figure, "p50 ≤ 15 ms", reached=p50 <= 15)


def _watchers(bench: Bench, store: Store) -> Row:
    name = f"http watchers, {store.name}"
    last, best, p50 = bench.middle(name, "last"), min(bench.each(name, "last")), bench.middle(name, "p50")
    figure = f"the last of them after {last:.0f} ms (best round {best:.0f}), half of them after {p50:.0f} ms"
    work = f"  {WATCHERS // bench.scale} watchers of one run see a change"
    return bench.judged(work, figure, "≤ 250 ms", reached=last <= 250)


def _memory(bench: Bench, store: Store) -> Row:
    busy, name = f"http runs_executed, {store.name}", f"http idle, {store.name}"
    gateway, worker = bench.middle(busy, "gateway_mb"), bench.middle(name, "worker_mb")
    many = bench.middle(f"http lists, {store.name}", "gateway_mb")
    figure = f"gateway {gateway:.0f} MB ({many:.0f} MB with {ROWS // bench.scale:,} runs), idle worker {worker:.0f} MB"
    return bench.judged("  memory", figure, "≤ 90 MB, ≤ 60 MB", reached=gateway <= 90 and worker <= 60)


def _idle(bench: Bench, store: Store) -> Row:
    cpu = bench.middle(f"http idle, {store.name}", "cpu")
    return bench.judged("  idle, all together", f"{cpu:.2%} of a core", "≤ 1 %", reached=cpu <= 0.01)
