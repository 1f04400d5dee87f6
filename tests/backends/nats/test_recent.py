"""What a process on NATS remembers of runs and workers: no more than it needs, however many pass by."""

from tsuzuki.backends.nats.frames import Tip
from tsuzuki.backends.nats.recent import MOST, Recent
from tsuzuki.testing import builders as b


def test_what_is_gone_is_not_remembered_for_ever() -> None:
    recent = Recent()
    for number in range(MOST + 10):
        recent.bury(f"run-{number}")
        recent.saw(f"worker-{number}", float(number))
    assert [recent.gone(f"run-{number}") for number in (0, 10, MOST + 9)] == [False, True, True]
    shown = [recent.shown(Tip(1, 1, "", b.a_run(holder=f"worker-{n}", heartbeat_at=0.0))).run for n in (0, MOST + 9)]
    assert [run.heartbeat_at for run in shown if run is not None] == [0.0, MOST + 9]
