"""Who is thought dead: whoever is silent for a whole lease while somebody watches, and nobody else."""

from tsuzuki.backends import WorkerRecord
from tsuzuki.presence import OUTAGE, Watch
from tsuzuki.testing import FakeClock


def far(beats: int) -> list[WorkerRecord]:
    return [WorkerRecord(id="far", host="another", beats=beats)]


def test_a_worker_that_is_silent_for_a_lease_is_dead() -> None:
    watch = Watch(6.0, one_machine=False)
    assert not any(watch.dead(far(1), 100.0 + second) for second in range(7))
    assert watch.dead(far(1), 107.0) == {"far"}


def test_a_worker_that_beats_once_in_a_lease_lives() -> None:
    watch = Watch(6.0, one_machine=False)
    assert not any(watch.dead(far(second // 5), 100.0 + second) for second in range(60))


def test_the_time_in_which_nobody_looked_is_no_silence() -> None:
    """A look that hung for seconds is answered at once with the heartbeat that hung as long."""
    watch = Watch(6.0, one_machine=False)
    assert not any(watch.dead(far(1), 100.0 + second) for second in range(4))
    assert not watch.dead(far(1), 108.0)
    assert not watch.dead(far(2), 108.01)
    assert not any(watch.dead(far(2), 108.0 + second) for second in range(7))
    assert watch.dead(far(2), 115.0) == {"far"}


def test_a_watcher_that_is_always_late_notices_a_death_all_the_same() -> None:
    watch = Watch(6.0, one_machine=False)
    assert [bool(watch.dead(far(1), 100.0 + 5 * look)) for look in range(5)] == [False, False, False, False, True]


def test_a_watcher_that_is_not_heard_itself_does_not_judge_the_silence_of_others() -> None:
    """While the servers elect a leader, everything can be read and nothing written."""
    watch = Watch(6.0, one_machine=False)
    watch.heard(100.0)
    assert not any(watch.dead(far(1), 100.0 + second) for second in range(12))
    watch.heard(111.5)
    assert not watch.dead(far(1), 112.0)
    assert not watch.dead(far(2), 113.0)


def test_a_watcher_that_is_heard_again_notices_a_death_after_a_lease() -> None:
    watch = Watch(6.0, one_machine=False)
    watch.heard(100.0)
    watch.dead(far(1), 100.0)
    for second in range(111, 118):
        watch.heard(second)
        assert not watch.dead(far(1), second + 0.5)
    watch.heard(118.0)
    assert watch.dead(far(1), 118.5) == {"far"}


def test_a_watcher_that_is_blind_again_and_again_notices_a_death_all_the_same() -> None:
    """It sees for two seconds and is blind for five: what it saw adds up, and nothing of what it did not see."""
    watch, clock = Watch(6.0, one_machine=False), FakeClock()
    found: list[bool] = []
    for _ in range(5):
        for _ in range(3):
            watch.heard(clock.monotonic())
            found.append(bool(watch.dead(far(1), clock.monotonic())))
            clock.advance(1.0)
        watch.blind()
        clock.advance(4.0)
    assert found == [False] * 10 + [True] * 5


def test_a_worker_that_beats_in_the_moments_in_which_it_is_seen_lives() -> None:
    watch, clock = Watch(6.0, one_machine=False), FakeClock()
    for beats in range(20):
        for _ in range(2):
            watch.heard(clock.monotonic())
            assert not watch.dead(far(beats), clock.monotonic())
            clock.advance(1.0)
        watch.blind()
        clock.advance(4.0)


def test_a_watcher_whose_own_heartbeats_are_always_late_notices_a_death_all_the_same() -> None:
    """Each that is written lets a sixth of the lease count: others could have written theirs in that moment."""
    watch, clock = Watch(6.0, one_machine=False), FakeClock()
    found: list[bool] = []
    for _ in range(6):
        watch.heard(clock.monotonic())
        found.append({"far"} in [watch.dead(far(1), clock.monotonic() + second) for second in range(5)])
        clock.advance(5.0)
    assert found == [False] * 4 + [True] * 2


def test_after_a_long_outage_silence_begins_anew() -> None:
    """Everybody comes back then, one a little later than the other."""
    watch, clock = Watch(6.0, one_machine=False), FakeClock()
    for _ in range(6):
        watch.heard(clock.monotonic())
        assert not watch.dead(far(1), clock.monotonic())
        clock.advance(1.0)
    watch.blind()
    clock.advance(OUTAGE)
    for _ in range(7):
        watch.heard(clock.monotonic())
        assert not watch.dead(far(1), clock.monotonic())
        clock.advance(1.0)
    watch.heard(clock.monotonic())
    assert watch.dead(far(1), clock.monotonic()) == {"far"}
