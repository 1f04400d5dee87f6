"""A run that a worker holds, but does not know of, is found after a while."""

from tsuzuki.strays import PATIENCE, Unattended

ONE, TWO = ("one", 1), ("two", 1)


def test_a_claim_that_got_lost_on_its_way_is_found_after_a_while() -> None:
    unattended = Unattended()
    assert unattended.look({ONE, TWO}, {TWO}, 0.0) == set()
    assert unattended.look({ONE, TWO}, {TWO}, PATIENCE) == {"one"}


def test_a_claim_that_arrives_is_not_lost() -> None:
    unattended = Unattended()
    unattended.look({ONE}, set(), 0.0)
    unattended.look({ONE}, {ONE}, 1.0)
    assert unattended.look({ONE}, set(), PATIENCE) == set(), "its end is on its way to the store"


def test_another_attempt_is_another_claim() -> None:
    unattended = Unattended()
    unattended.look({ONE}, set(), 0.0)
    assert unattended.look({("one", 2)}, set(), PATIENCE) == set()
