"""`python -m bench`: measures, and prints every ratio beside its goal."""

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from bench.commits.works import commits
from bench.glossary.works import glossary
from bench.http.works import http
from bench.llm.works import llm
from bench.nats.works import nats
from bench.notes.works import notes
from bench.operate.works import operate
from bench.peers import PEERS, Peer
from bench.process import MeasurementFailed, measure
from bench.report import Row, machine, plain, table
from bench.wheels.works import wheels
from bench.works import ONLY_WHEN_ASKED, Bench
from bench.works import WORKS as ON_SQLITE

WORKS: Final = {
    **ON_SQLITE,
    "nats": nats,
    "http": http,
    "commits": commits,
    "glossary": glossary,
    "llm": llm,
    "notes": notes,
    "operate": operate,
    "wheels": wheels,
}


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, _leave)
    facts = machine(measure("bench.yardsticks:fsyncs", 200)["ms"])
    print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    peers, notes = ([], []) if options.quick or options.no_peers else _peers(options.only)
    bench = Bench(1 if options.quick else 3, 10 if options.quick else 1, peers, _tell)
    rows: list[Row] = []
    for name in options.only or [name for name in WORKS if options.full or name not in ONLY_WHEN_ASKED]:
        rows += WORKS[name](bench)
    print(f"\n{table([*rows, *notes])}")
    if options.json:
        seen = {"machine": facts, "rows": plain([*rows, *notes]), "seen": bench.seen}
        options.json.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, small stores, no peers: to see that it works")
    parser.add_argument("--full", action="store_true", help="also a map of a million items")
    parser.add_argument("--only", action="append", choices=WORKS, metavar="NAME", help=f"one of {', '.join(WORKS)}")
    parser.add_argument("--no-peers", action="store_true", help="without the peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes every figure of every round")
    return parser.parse_args()


def _peers(only: list[str] | None) -> tuple[list[Peer], list[Row]]:
    """Installs the peers that are needed; one that cannot be installed is reported."""
    peers, notes = [], []
    for peer in PEERS:
        if only and not set(only) & set(peer.counts):
            continue
        try:
            notes.append(Row(f"peer {peer.name} {peer.install()}", peer.durability))
            peers.append(peer)
        except MeasurementFailed as failure:
            notes.append(Row(f"peer {peer.name}", f"not measured, it cannot be installed: {failure}"))
    return peers, notes


def _leave(number: int, frame: FrameType | None) -> None:
    """Leaves in order when it is told to end: no server stays behind."""
    del frame
    raise SystemExit(128 + number)


def _tell(text: str) -> None:
    """Tells of each measurement as it is made, apart from the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
