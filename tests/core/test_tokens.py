"""API keys as values: made, hashed, compared."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tsuzuki import tokens


def test_a_key_fits_its_record_and_no_other() -> None:
    text, record = tokens.make("lab", "laptop", 1.0)
    other, theirs = tokens.make("lab", "laptop", 1.0)
    assert tokens.fits(text, record)
    assert not tokens.fits(other, record)
    assert not tokens.fits(text, theirs)
    assert not tokens.fits(text, replace(theirs, id=record.id))
    assert (tokens.id_of(text), record.tenant) == (record.id, "lab")


def test_two_keys_with_one_secret_would_have_different_hashes() -> None:
    assert len({tokens.make("lab", "", 1.0)[1].salt for _ in range(50)}) == 50


def test_a_revoked_key_does_not_fit() -> None:
    text, record = tokens.make("lab", "", 1.0)
    assert not tokens.fits(text, replace(record, revoked_at=2.0))


@given(st.text())
def test_no_other_text_is_a_key(text: str) -> None:
    _, record = tokens.make("lab", "", 1.0)
    assert tokens.id_of(text) is None or text.startswith("tsz_")
    assert not tokens.fits(text, record)
    assert len(tokens.fast_hash(text)) == 32
