"""`python -m bench.peers`: ours, the peers and what the stores give without any of them, by turns; one table."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

from bench.nats.servers import ALWAYS, address, servers
from bench.page import noise, written
from bench.peers import PEERS, Peer
from bench.process import Figures, MeasurementFailed, fresh_folder, measure
from bench.report import machine
from bench.works import Y_ROWS, Bench

WORKS: Final = {"steps": "1,000 steps in sequence", "items": "map, items", "runs": "runs, one worker"}
OURS: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    "steps": ("bench.ours:steps", (1000,)),
    "items": ("bench.ours:items", (10_000,)),
    "runs": ("bench.ours:runs_executed", (5000, 100)),
}
BARE: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    "items": ("bench.yardsticks:bare_items", (10_000,)),
    "runs": ("bench.yardsticks:bare_runs", (5000,)),
}
SQLITE, NATS, RAW = "**Tsuzuki** on SQLite", "**Tsuzuki** on NATS, every write synced", "a group-commit loop, no engine"
INTRODUCTION: Final = """\
Each figure is a rate per second, and in brackets its ratio to Y: a row per commit by plain `sqlite3` (WAL,
`synchronous=FULL`), measured in the same round. A peer that only queues has no steps; its map is a task per item, and a
run is a task. What each keeps, and how durably, stands below: a rate without results or claims on record is not the
same work.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="only print the table; docs/performance.md stays as it is")
    options = parser.parse_args()
    facts = machine(measure("bench.yardsticks:fsyncs", 200)["ms"])
    bench = Bench(options.rounds, 1, _installed(), lambda text: print(text, file=sys.stderr, flush=True))
    for _ in range(bench.rounds):
        _round(bench)
    text = _page(bench)
    print(text)
    if not options.print:
        written("peers", text, f"make bench-peers ROUNDS={bench.rounds}", facts)


def _installed() -> list[Peer]:
    peers = []
    for peer in PEERS:
        try:
            print(f"{peer.name} {peer.install()}: {peer.durability}", file=sys.stderr)
            peers.append(peer)
        except MeasurementFailed as failure:
            print(f"{peer.name}: not measured, it cannot be installed: {failure}", file=sys.stderr)
    return peers


def _round(bench: Bench) -> None:
    """Everything once, by turns; Y is taken before each work, so that a ratio compares neighbours in time."""
    for work in WORKS:
        bench.take(f"{work} Y", partial(measure, "bench.yardsticks:commits", Y_ROWS))
        if work in BARE:
            bare, values = BARE[work]
            bench.take(f"{work} {RAW}", partial(measure, bare, *values))
        ours, values = OURS[work]
        bench.take(f"{work} {SQLITE}", partial(measure, ours, *values))
        bench.take(f"{work} {NATS}", partial(_on_nats, partial(measure, ours, *values)))
        for peer in bench.peers:
            if work in peer.counts:
                bench.take(f"{work} {peer.name}", partial(peer.measure, work))
            if work == "items" and "nats" in peer.counts:
                bench.take(f"items {peer.name}", partial(_on_nats, partial(peer.measure, "nats")))
    for peer in bench.peers:
        if "raw" in peer.counts:
            bench.take(f"steps {_raw(peer)}", partial(peer.measure, "raw"))


def _raw(peer: Peer) -> str:
    return f"{peer.store} alone, a write per call"


def _on_nats(how: Callable[..., Figures]) -> Figures:
    """Measures on a server that syncs every write, ours and the peer's alike."""
    with servers(sync=ALWAYS) as started, fresh_folder() as folder:
        (folder / "address").write_text(address(started))
        return how(folder=folder)


# The table


def _page(bench: Bench) -> str:
    names = [SQLITE, NATS, *(peer.name for peer in bench.peers)]
    limits = [RAW, *(_raw(peer) for peer in bench.peers if "raw" in peer.counts)]
    lines = [INTRODUCTION, "| | " + " | ".join(WORKS.values()) + " |", "|---" * (len(WORKS) + 1) + "|"]
    lines += [_line(bench, name, name) for name in names]
    lines.append(_line(bench, "Y", "Y: SQLite alone, a row per commit"))
    lines += [_line(bench, name, name) for name in limits]
    kept = [f"- {peer.name} {peer.install()}: {peer.durability}." for peer in bench.peers]
    ys = [figures["rate"] for work in WORKS for figures in bench.seen[f"{work} Y"] if "rate" in figures]
    return "\n".join([*lines, "", noise(ys), "", *kept])


def _line(bench: Bench, name: str, title: str) -> str:
    return f"| {title} | " + " | ".join(_cell(bench, work, name) for work in WORKS) + " |"


def _cell(bench: Bench, work: str, name: str) -> str:
    seen = bench.seen.get(f"{work} {name}")
    if not seen:
        return "–"
    pairs = list(zip(seen, bench.seen[f"{work} Y"], strict=True))
    if failed := [ours["failed"] for ours, _ in pairs if "failed" in ours]:
        return f"failed: {failed[0]}"
    ratio = median(ours["rate"] / y["rate"] for ours, y in pairs)
    return f"{median(ours['rate'] for ours, _ in pairs):,.0f} ({ratio:.2f} Y)"


if __name__ == "__main__":
    main()
