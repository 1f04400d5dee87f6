"""What a worker holds while its store is away."""

import pytest

from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import StoreUnavailable
from tsuzuki.held import Held
from tsuzuki.stumbles import LONGEST_PAUSE
from tsuzuki.testing import FakeClock, FaultyBackend
from tsuzuki.testing import builders as b


async def test_what_a_fault_has_stopped_stays_ours_while_the_store_is_away() -> None:
    """To claim it anew would count against it, as if it had ended its worker."""
    clock = FakeClock()
    inner = MemoryBackend(clock=clock)
    claims = [await b.claimed(inner) for _ in range(3)]
    held = Held(FaultyBackend(inner, fail="get", at=2), clock)
    for claim in claims:
        held.stumbles.note(claim, clock.monotonic())
    ours = held.ours()
    clock.advance(LONGEST_PAUSE)
    with pytest.raises(StoreUnavailable):
        await held.go_on("worker")
    assert [claim.run.id for claim in held.queue] == [claims[0].run.id]
    assert held.ours() == ours
    clock.advance(LONGEST_PAUSE)
    await held.go_on("worker")
    assert [claim.run.id for claim in held.queue] == [claim.run.id for claim in claims]
