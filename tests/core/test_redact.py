"""Secrets are hidden, and hiding them takes no longer than the text is long."""

import msgspec
import pytest

from tsuzuki.redact import hidden, redact
from tsuzuki.suspicion import suspicious

PIECES = (
    *("--", "--password ", " -u a:", "&sig=", "cookie: a", "x", "a.", "a-", "secret ", "://a:", "nats://", "a://"),
    *("password='", "'\"", " ", "eyJ", "mysql -p", "mysql '", "docker login -p ", "pass=", "'pass':", "?key=", "a@"),
    *("machine a ", "machine a login b password ", 'password=\\"', "token: |\n ", "password: a ", "<password>"),
    *("%22password%22%3A", "-----BEGIN PRIVATE KEY-----", "A_PASS=", "http://a:b@", "SUAAAA", "password\\", "\\"),
    *('name="password"\r\n\r\n', 'auth": "', "123456789:AA", "SG.a1a1a1a1a1a1a1a1a1", ":thin:a/", "token: str "),
    *("\n pass: ", "パスワード：", "İpassword=", "default login a password "),
)


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
        ("AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=***"),
        ("AccountKey=abc==;Endpoint=x", "AccountKey=***;Endpoint=x"),
        ("Server=x;Pwd=abc", "Server=x;Pwd=***"),
        ("mysql --password abc -h x", "mysql --password *** -h x"),
        ("Cookie: sid=abc; other=d\nAccept: x", "Cookie: ***\nAccept: x"),
        ("{'set-cookie': 'sid=abc; HttpOnly'}", "{'set-cookie': '***'}"),
        ("curl -u me:abc http://x", "curl -u me:*** http://x"),
        ("curl --user='me:abc' http://x", "curl --user='me:***' http://x"),
        ("https://x/y?se=1&sig=abc%3D&sv=2", "https://x/y?se=1&sig=***&sv=2"),
        ("https://x/y?X-Amz-Signature=abc", "https://x/y?X-Amz-Signature=***"),
        ("APP_DB_PASS=abc", "APP_DB_PASS=***"),
        ("sk_live_" + "a" * 20, "***"),
        ("hf_" + "a" * 20, "***"),
        ("ghu_" + "a" * 20, "***"),
        ("ASIA" + "A" * 16, "***"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert suspicious(text) == (text != shown), "whoever asks first must not pass over it"


def test_a_value_is_hidden_by_the_name_before_it() -> None:
    given = {
        "run": ["mysql", "--password", "abc", "-h", "x"],
        "fetch": ["curl", "-u", "me:abc", "http://x"],
        "start": ["docker", "-u", "1000:1000"],
        "headers": [["x-api-key", "abc"], ["accept", "x"]],
        "Cookie": "abc",
        "words": ["token", "of", "love"],
        "PWD": "",
    }
    assert msgspec.json.decode(hidden(msgspec.json.encode(given))) == {
        "run": ["mysql", "--password", "***", "-h", "x"],
        "fetch": ["curl", "-u", "me:***", "http://x"],
        "start": ["docker", "-u", "1000:1000"],
        "headers": [["x-api-key", "***"], ["accept", "x"]],
        "Cookie": "***",
        "words": ["token", "of", "love"],
        "PWD": "",
    }


@pytest.mark.parametrize(
    "text",
    [
        *("PWD=/srv/x", "hf_hub_download_of_a_file", "the cookie: a cake", "ASIA-PACIFIC-NORTH-1"),
        *("first_pass=3", "docker run -u 1000:1000", "python -u -m x:y", "design=3"),
    ],
)
def test_what_only_begins_like_a_secret_is_shown(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("begin", ["authorization:", "mysql password='"])
def test_a_text_that_goes_on_for_ever_is_soon_done(begin: str) -> None:
    """Where each character costs as much as all before it, this would take hours."""
    for piece in PIECES:
        assert len(redact(begin + piece * (100_000 // len(piece)))) > 0
