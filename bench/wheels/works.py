"""The works about wheels, and the goals that their figures are held to."""

from typing import Final

from bench.process import measure
from bench.report import Row
from bench.works import Bench, attempt

MANY: Final = 20


def wheels(bench: Bench) -> list[Row]:
    """Twenty wheels that did not change, on both stores."""
    for _ in range(bench.rounds):
        for store in ("sqlite", "nats"):
            bench.take(f"wheels {store}", lambda store=store: measure(f"bench.wheels.ours:on_{store}", MANY))  # type: ignore[misc] # the default binds it now
    return [attempt(f"20 unchanged wheels on {s}", lambda s=s: _sync(bench, s)) for s in ("sqlite", "nats")]  # type: ignore[misc] # the default binds it now


def _sync(bench: Bench, store: str) -> Row:
    listing, look, first = (bench.middle(f"wheels {store}", name) for name in ("listing_ms", "look_us", "first_ms"))
    figure = (
        f"{listing:.1f} ms with its listing, {look:.0f} µs before a claim without news (installed in {first:,.0f} ms)"
    )
    return bench.judged(f"20 unchanged wheels on {store}", figure, "< 100 ms", reached=listing < 100)
