"""How far a step is, and how long the rest will take."""

from tsuzuki.runlog import StepProgress


def test_the_estimate_comes_from_items_that_took_time_not_from_those_the_journal_had() -> None:
    fresh = StepProgress("s", "translate", total=200, done=20, seconds=10.0, timed=20, lanes=4)
    assert fresh.shown()["eta"] == 22.5
    resumed = StepProgress("s", "translate", total=200, done=120, seconds=10.0, timed=20, lanes=4)
    assert resumed.shown()["eta"] == 10.0
    assert "eta" not in StepProgress("s", "translate", total=200, done=100).shown()
    assert not {"seconds", "timed", "lanes"} & fresh.shown().keys()
