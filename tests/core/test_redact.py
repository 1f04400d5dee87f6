"""Secrets are hidden, and hiding them takes no longer than the text is long."""

import pytest

from tsuzuki.redact import redact, suspicious


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("my_api_key='abc'", "my_api_key='***'"),
        ("X-Api-Key: zzz", "X-Api-Key: ***"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
        ("password=foo&x=1", "password=***&x=1"),
        ("https://user:pw@host/x", "https://user:***@host/x"),
        ("nats://sekret@host", "nats://***@host"),
        ("sk-aaaaaaaaaaaaaaaa", "***"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': 'Basic ***'}"),
        ("[(b'authorization', b'Token abc')]", "[(b'authorization', b'Token ***')]"),
        ("{'password': 'correct horse, battery'}", "{'password': '***'}"),
        (r'body: "{\"api_key\": \"abc\"}"', r'body: "{\"api_key\": \"***\"}"'),
        ("refresh_token=abc; 12 tokens: 5", "refresh_token=***; 12 tokens: 5"),
        ("key tsz_0123456789ab_secretsecret", "key ***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is it", "*** is it"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert suspicious(text) == (text != shown), "whoever asks first must not pass over it"


@pytest.mark.parametrize(
    "piece", ["x", "a.", "a-", "secret ", "://a:", "nats://", "a://", "password='", "'\"", " ", "eyJ"]
)
def test_a_text_that_goes_on_for_ever_is_soon_done(piece: str) -> None:
    """Where each character costs as much as all before it, this would take hours."""
    text = "authorization:" + piece * (2_000_000 // len(piece))
    assert len(redact(text)) > 0
