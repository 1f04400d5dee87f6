"""What a process counts, and how the counts of many add up."""

import msgspec

from tsuzuki import facts as f
from tsuzuki.tallies import SECONDS, Histogram, Odometer, Tallies

PROBLEM = f.Problem("ValueError", "no")


def test_outcomes_are_counted_by_how_long_they_took_and_how_often_they_were_tried() -> None:
    tallies = Tallies()
    tallies.wrote(
        [
            f.StepStarted(at=1.0, step="s", name="load"),
            f.StepDone(at=1.0, step="s", took=0.3, tries=3),
            f.ItemFailed(at=1.0, step="m", key="a", took=9.0, tries=2, error=PROBLEM),
            f.ItemSkipped(at=1.0, step="m", key="b", took=5.0),
        ]
    )
    assert (tallies.retries, sum(tallies.steps.counts), tallies.steps.total) == (3, 2, 9.3)
    assert tallies.steps.counts[SECONDS.index(0.5)] == 1
    tallies.ended(f.Released(at=1.0), 1.0)
    tallies.ended(None, 1.0)
    assert not tallies.runs
    tallies.ended(f.RunCompleted(at=1.0), 1e9)
    assert tallies.runs.counts[-1] == 1


def told(claims: int, *steps: float) -> Tallies:
    tallies = Tallies(claims=claims)
    for took in steps:
        tallies.steps.add(took, SECONDS)
    return tallies


def test_the_total_never_goes_back_whoever_leaves_or_starts_anew() -> None:
    odometer = Odometer()
    assert odometer.look([("a", told(3, 1.0)), ("b", told(2))]).claims == 5
    assert odometer.look([("a", told(4, 1.0, 2.0)), ("b", told(2))]).claims == 6
    assert odometer.look([("b", told(3))]).claims == 7
    total = odometer.look([("b", told(3)), ("a again", told(1, 0.001))])
    assert (total.claims, sum(total.steps.counts), total.steps.total) == (8, 3, 3.001)


def test_counts_of_another_version_are_left_out_and_survive_the_wire() -> None:
    odometer = Odometer()
    strange = msgspec.json.decode(b'{"claims": 2, "steps": [[1, 2], 3.5], "later": 1}', type=Tallies)
    assert strange.steps == Histogram([1, 2], 3.5)
    total = odometer.look([("x", strange), ("y", told(1, 2.0))])
    assert (total.claims, sum(total.steps.counts)) == (3, 1)
    again = msgspec.json.decode(msgspec.json.encode(total), type=Tallies)
    assert again == total
