"""The works on NATS: what runs in a round, on which servers, and which goals the figures are held to."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Final

from bench.nats.servers import ALWAYS, Server, address, servers, version
from bench.peers import Peer
from bench.process import Figures, MeasurementFailed, fresh_folder, measure
from bench.report import Row
from bench.works import Bench, attempt

ITEMS: Final = 10_000
RUNS: Final = 2_000
NAPS: Final = 1_000
LATENCIES: Final = 200
IN_FLIGHT: Final = (100, 16, 256)
"""The first one has the goals; the others tell how it depends on them."""
LET_GO: Final = 15
"""After so many idle seconds the server has let go of its caches: what it keeps for a run is left."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Servers as people run them."""

    name: str
    servers: int = 1
    sync: str = ""
    slow: int = 1
    """The bare loop does fewer items by this factor where each of them waits for the disk: rates compare."""


ONE: Final = Setting("one server")
SYNCED: Final = Setting("one server, every write synced", sync=ALWAYS, slow=5)
THREE: Final = Setting("three servers", servers=3)
SETTINGS: Final = (ONE, SYNCED, THREE)


def nats(bench: Bench) -> list[Row]:
    """Maps, runs, latency, replay and footprint on NATS."""
    for _ in range(bench.rounds):
        _maps(bench)
        _runs(bench)
        for setting in (ONE, THREE):
            times = LATENCIES // bench.scale
            bench.take(f"nats latency, {setting.name}", _on(setting, "bench.nats.ours:latency", times))
    left = _replay_and_footprint(bench)
    name = attempt("NATS", lambda: Row("NATS", f"nats-server {version()}"))
    return [name, *_map_rows(bench), *_run_rows(bench), *_other_rows(bench), *left]


def _on(setting: Setting, work: str, *values: int) -> Callable[[], Figures]:
    """Says how to measure a work on fresh servers."""

    def how() -> Figures:
        with servers(setting.servers, sync=setting.sync) as started, fresh_folder() as folder:
            (folder / "address").write_text(address(started))
            return measure(work, *values, folder=folder)

    return how


# Maps


def _maps(bench: Bench) -> None:
    """One round: the bare loop, ours and the peer by turns. The bare loop has as many in flight as we have."""
    count = ITEMS // bench.scale
    for lanes in IN_FLIGHT:
        bench.take(f"nats bare, {lanes}", _on(ONE, "bench.nats.raw:items", count, lanes))
        bench.take(f"nats items, {lanes}", _on(ONE, "bench.ours:items", count, lanes))
    for setting in (SYNCED, THREE):
        fewer = count // setting.slow
        bench.take(f"nats bare, {setting.name}", _on(setting, "bench.nats.raw:items", fewer, IN_FLIGHT[0]))
        bench.take(f"nats items, {setting.name}", _on(setting, "bench.ours:items", count, IN_FLIGHT[0]))
    for peer in bench.peers:
        for work in ("nats", "nats unkept"):
            if work in peer.counts:
                bench.take(f"{work} {peer.package}", _by(peer, work))


def _by(peer: Peer, work: str) -> Callable[[], Figures]:
    """Says how to measure a peer on a fresh server."""

    def how() -> Figures:
        with servers() as started, fresh_folder() as folder:
            (folder / "address").write_text(address(started))
            return peer.measure(work, folder)

    return how


def _map_rows(bench: Bench) -> list[Row]:
    count, lanes = ITEMS // bench.scale, IN_FLIGHT[0]
    bare, main = f"bare loop, {lanes} in flight", f"map of {count:,} no-ops, {lanes} in flight"

    def against_bare() -> Row:
        ratio = bench.ratio(f"nats items, {lanes}", f"nats bare, {lanes}")
        figure = f"{bench.middle(f'nats items, {lanes}', 'rate'):,.0f} items/s = {ratio:.2f} bare"
        return bench.judged(main, figure, "≥ 0.5 bare", reached=ratio >= 0.5)

    def processor() -> Row:
        ours, bare = bench.middle(f"nats items, {lanes}", "cpu_us"), bench.middle(f"nats bare, {lanes}", "cpu_us")
        return Row("  processor time of each", f"{ours:.0f} µs, bare {bare:.0f} µs")

    rows = [
        attempt(bare, lambda: Row(bare, _rate(bench, f"nats bare, {lanes}", "items"))),
        attempt(main, against_bare),
        attempt("  processor time", processor),
    ]
    more = [(f"  {each} in flight", f"{each}") for each in IN_FLIGHT[1:]]
    more += [(f"  {setting.name}", setting.name) for setting in (SYNCED, THREE)]
    for label, name in more:
        rows.append(attempt(label, lambda label=label, name=name: _beside_bare(bench, label, name)))  # type: ignore[misc]
    return rows + [row for peer in bench.peers if "nats" in peer.counts for row in _peer_rows(bench, peer)]


def _rate(bench: Bench, name: str, what: str) -> str:
    return f"{bench.middle(name, 'rate'):,.0f} {what}/s"


def _beside_bare(bench: Bench, label: str, name: str) -> Row:
    ratio = bench.ratio(f"nats items, {name}", f"nats bare, {name}")
    bare = _rate(bench, f"nats bare, {name}", "items")
    return Row(label, f"{_rate(bench, f'nats items, {name}', 'items')} = {ratio:.2f} bare ({bare})")


def _peer_rows(bench: Bench, peer: Peer) -> list[Row]:
    ours = f"nats items, {IN_FLIGHT[0]}"

    def kept() -> Row:
        ratio = bench.ratio(ours, f"nats {peer.package}")
        figure = f"{_rate(bench, f'nats {peer.package}', 'items')}; ours is {ratio:.1f} ×"
        return bench.judged(f"  {peer.package}, results kept", figure, "ours ≥ 5 ×", reached=ratio >= 5)

    def unkept() -> Row:
        ratio = bench.ratio(ours, f"nats unkept {peer.package}")
        figure = f"{_rate(bench, f'nats unkept {peer.package}', 'items')}; ours is {ratio:.1f} ×"
        return Row(f"  {peer.package}, without results", figure)

    return [attempt(f"  {peer.package}, results kept", kept), attempt(f"  {peer.package}, without results", unkept)]


# Runs


def _runs(bench: Bench) -> None:
    for setting in SETTINGS:
        bench.take(f"nats fsync, {setting.name}", lambda: measure("bench.yardsticks:fsyncs", 100))
        for processes in (1, 2):
            name = f"nats runs, {setting.name}, {processes}"
            bench.take(name, _on(setting, "bench.nats.ours:runs_executed", RUNS // bench.scale, processes))
    for processes in (1, 2):
        name = f"nats naps, {processes}"
        bench.take(name, _on(ONE, "bench.nats.ours:naps_executed", NAPS // bench.scale, processes))


def _run_rows(bench: Bench) -> list[Row]:
    rows = []
    for setting, goal in ((ONE, 800), (SYNCED, 300), (THREE, 0)):
        label = f"{RUNS // bench.scale:,} no-op runs, one worker, {setting.name}"
        rows.append(attempt(label, lambda label=label, s=setting, goal=goal: _one_worker(bench, label, s, goal)))  # type: ignore[misc]
        rows.append(attempt("  two workers", lambda s=setting: _two_workers(bench, s)))  # type: ignore[misc]
    label = f"{NAPS // bench.scale:,} runs of 20 ms, 10 at once in a worker"
    return [*rows, attempt(label, lambda: _naps(bench, label))]


def _naps(bench: Bench, label: str) -> Row:
    ratio = bench.ratio("nats naps, 2", "nats naps, 1")
    one, two = _rate(bench, "nats naps, 1", "runs"), _rate(bench, "nats naps, 2", "runs")
    return bench.judged(label, f"{one}, two workers {two} = {ratio:.2f} ×", "more than one", reached=ratio > 1)


def _one_worker(bench: Bench, label: str, setting: Setting, goal: int) -> Row:
    name = f"nats runs, {setting.name}, 1"
    rate, cpu = bench.middle(name, "rate"), bench.middle(name, "cpu_us")
    best, enqueued = max(bench.each(name, "rate")), bench.middle(name, "enqueued")
    figure = f"{rate:,.0f} runs/s (best round {best:,.0f}), {cpu:.0f} µs each; enqueued {enqueued:,.0f}/s"
    if setting is SYNCED:
        figure += f"; an fsync {bench.middle(f'nats fsync, {setting.name}', 'ms'):.2f} ms"
    return bench.judged(label, figure, f"≥ {goal}/s", reached=rate >= goal) if goal else Row(label, figure)


def _two_workers(bench: Bench, setting: Setting) -> Row:
    one, two = (f"nats runs, {setting.name}, {processes}" for processes in (1, 2))
    ratio, cpu, least = bench.ratio(two, one), bench.middle(two, "cpu_us"), bench.middle(two, "least_share")
    figure = f"{_rate(bench, two, 'runs')} = {ratio:.2f} × one; {cpu:.0f} µs each; the smaller share {least:.0%}"
    if setting is THREE:  # three servers and two workers on one machine measure the machine
        return Row("  two workers", figure)
    return bench.judged("  two workers", figure, "more than one", reached=ratio > 1)


# The rest


def _other_rows(bench: Bench) -> list[Row]:
    def one() -> Row:
        p50, p99 = (bench.middle(f"nats latency, {ONE.name}", figure) for figure in ("p50", "p99"))
        figure, goal = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", "p50 ≤ 5 ms, p99 ≤ 30 ms"
        return bench.judged("submit → first line, other process", figure, goal, reached=p50 <= 5 and p99 <= 30)

    def three() -> Row:
        p50, p99 = (bench.middle(f"nats latency, {THREE.name}", figure) for figure in ("p50", "p99"))
        return bench.judged("  three servers", f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", "p50 ≤ 12 ms", reached=p50 <= 12)

    return [attempt("submit → first line", one), attempt("  three servers", three)]


def _replay_and_footprint(bench: Bench) -> list[Row]:
    """Replays a run of many items; and looks at what it, and many finished runs, leave behind in their servers."""
    items, runs = 100_000 // bench.scale, 10_000 // bench.scale
    try:
        left = _left_behind(bench, items, runs)
    except MeasurementFailed as failure:
        left = [Row("server, each finished run and item", f"not measured: {failure}")]
    return [attempt("replay", lambda: _replay_row(bench, items)), *left]


def _left_behind(bench: Bench, items: int, runs: int) -> list[Row]:
    with ExitStack() as stack:
        [replayed], [executed] = (stack.enter_context(servers()) for _ in range(2))
        folders = [stack.enter_context(fresh_folder()) for _ in range(2)]
        for folder, server in zip(folders, (replayed, executed), strict=True):
            (folder / "address").write_text(address([server]))
            measure("bench.nats.ours:opened", folder=folder)
        before = _kept(replayed), _kept(executed)
        _replay(bench, items, folders[0])
        measure("bench.nats.ours:runs_executed", runs, 1, folder=folders[1])
        sleep(LET_GO / bench.scale)
        return [
            _left(bench, f"each of {runs:,} finished runs", before[1], _kept(executed), runs),
            _left(bench, f"each of {items:,} items", before[0], _kept(replayed), items),
        ]


def _replay(bench: Bench, items: int, folder: Path) -> None:
    bench.take("nats replay, recorded first", lambda: measure("bench.ours:replay", items, folder=folder))
    for _ in range(bench.rounds):
        bench.take("nats replay", lambda: measure("bench.ours:replay", items, folder=folder))


def _replay_row(bench: Bench, items: int) -> Row:
    seconds, mb, cpu = (bench.middle("nats replay", figure) for figure in ("seconds", "mb", "cpu_s"))
    best = min(bench.each("nats replay", "seconds"))
    figure = f"{seconds:.2f} s (best round {best:.2f} s, processor time {cpu:.2f} s), {mb:.0f} MB"
    return bench.judged(f"replay of {items:,} items", figure, "≤ 1 s", reached=seconds <= 1)


def _kept(server: Server) -> Figures:
    return {"heap": server.alive(), "resident": server.resident(), "disk": server.on_disk()}


def _left(bench: Bench, label: str, before: Figures, after: Figures, count: int) -> Row:
    each = {name: max(0, after[name] - before[name]) / count for name in before}
    bench.take(f"nats footprint, {label}", lambda: each)
    figure = ", ".join(f"{value:,.0f} bytes {name}" for name, value in each.items())
    return Row(f"server, {label}", figure)
