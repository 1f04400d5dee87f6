"""What real logs hold: secrets in every shape that people and programs write them, and what only resembles one."""

import json

import msgspec
import pytest

from tsuzuki.redact import _hiding, hidden, problem, redact, without_secrets
from tsuzuki.suspicion import suspicious

SEED = "SU" + "A2" * 28
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmVk"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvhunter2\nhunter2==\n-----END PRIVATE KEY-----\n"
SECRETS = [
    '{"pass": "hunter2"}',
    "{'pass': 'hunter2'}",
    r'body="{\"user\": \"me\", \"pass\": \"hunter2\"}"',
    json.dumps(json.dumps(json.dumps({"password": 'hun"ter2 hunter2'}))),
    '{"password": "a\\"hunter2"}',
    "pass=hunter2",
    "user=me pass=hunter2 host=x",
    "    pass: hunter2\n    port: 1",
    "https://x/y?key=hunter2&z=1",
    "https://x/y?z=1&key=hunter2",
    "<a href='/y?z=1&amp;key=hunter2'>",
    "mysql -u root -phunter2 db",
    "mysql -u root -p hunter2 db",
    "mysql -p'hun ter hunter2' db",
    "/usr/bin/mysqldump --host x -phunter2 db > out",
    "Command '['mysql', '-u', 'root', '-phunter2']' returned non-zero exit status 1.",
    "Command '['docker', 'login', '-u', 'me', '-p', 'hunter2']' returned 1",
    "docker login -u me -p hunter2 registry.example.org",
    "sshpass -p hunter2 ssh me@x",
    "redis-cli -h x -a hunter2 ping",
    "mongodump -u me -p hunter2",
    "PGPASSWORD=hunter2 psql -h x",
    "MYSQL_PWD=hunter2 mysql",
    "APP_PASS=hunter2",
    "REDISCLI_AUTH=hunter2",
    "SECRET_KEY = 'hunter2 hunter2'",
    "AWS Secret Access Key: hunter2",
    "APP_KEY=base64:hunter2=",
    "Ocp-Apim-Subscription-Key: hunter2",
    "Authorization: Basic hunter2",
    "Authorization: ApiKey hunter2",
    'authorization: Digest username="me", response="hunter2"',
    "Authorization: AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=a, Signature=hunter2",
    '{"auths": {"registry": {"auth": "bWU6aHVudGVyMg==hunter2"}}}'.replace("==hunter2", "hunter2"),
    "//registry.example.org/:_auth=hunter2",
    "machine x.org login me password hunter2",
    "machine x.org\n  login me\n  password hunter2",
    "wget --password=hunter2 http://x",
    "tool --password 'hun ter hunter2'",
    "tool -token hunter2",
    "curl --pass hunter2 http://x",
    "keytool -storepass hunter2",
    "openssl rsa -passin pass:hunter2",
    "password: hunter2",
    "  db_password: correct horse hunter2",
    "password: |\n  hunter2\n  hunter2\nnext: 1",
    "'password' => 'hunter2'",
    "<Password>hunter2</Password>",
    'Content-Disposition: form-data; name="password"\r\n\r\nhunter2\r\n--b',
    "payload=%7B%22password%22%3A%22hunter2%22%7D",
    "Driver=x;PWD={hun;ter;hunter2};",
    'password: str = "hunter2"',
    "def f(token: str = 'hunter2'):",
    "password2=hunter2",
    "パスワード：hunter2",
    "https://me:hun%40hunter2@host/x",
    "https://me:p@hunter2@host/x",
    "postgresql+psycopg://me:hunter2@db:5432/x",
    "REDIS://:hunter2@host",
    "https://hunter2hunter2hunter2@host/x",
    "jdbc:oracle:thin:me/hunter2@//host",
    "https://hooks.slack.com/services/T000/B000/hunter2",
    "https://discord.com/api/webhooks/123456789/hunter2hunter2hunter2",
    f"private_key: {PEM}",
    json.dumps({"type": "service_account", "private_key": PEM}),
    PEM.replace("PRIVATE KEY", "RSA PRIVATE KEY").replace("MII", "Proc-Type: 4\nDEK-Info: AES-128\n\nMII"),
    PEM.replace("PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
    PEM.replace("PRIVATE KEY", "USER NKEY SEED"),
]
SHAPED = [
    SEED,
    f"seed {SEED} of a user",
    JWT,
    *(f"sk-proj-{'a1' * 10} xoxb-{'1' * 12} AIza{'a1' * 17} ghp_{'a1' * 18} SG.{'a1' * 11}.{'b2' * 21}".split()),
    *(f"xapp-{'1a' * 8} dop_v1_{'a1' * 32} whsec_{'a1' * 16} lin_api_{'a1' * 20} tskey-auth-{'a1' * 8}".split()),
    f"bot123456789:AA{'b1' * 16}b",
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_of_a_real_log_is_left(text: str) -> None:
    assert "hunter2" not in redact(text), redact(text)
    assert "***" in redact(text)
    inside = msgspec.json.encode([f"line one\n{text}", {"text": text}])
    assert b"hunter2" not in hidden(inside), hidden(inside)
    assert suspicious(inside.decode()), "whoever asks first must not pass over it"
    assert "hunter2" not in redact(f"2026-01-01 00:00:00 INFO said\n{text}\nand more")


@pytest.mark.parametrize("text", SHAPED)
def test_no_key_of_a_known_maker_is_left(text: str) -> None:
    for around in ("{}", "it is {}, he said", '{{"a": "{}"}}', "x={}"):
        said = around.format(text)
        secret = text.split()[1] if text.startswith("seed") else text.removeprefix("bot123456789:")
        assert secret not in redact(said)
        assert suspicious(said)


@pytest.mark.parametrize(
    "text",
    [
        "tsuzuki submit crawl -p key=value -p pages=500",
        "tsuzuki submit mysql -p key=value",
        *("monkey=3", "primary_key=7", "foreign_key: 7", "key=value", "partition_key='a'", "keys: 3", "cache_key=a:b"),
        *("GET /runs?key_count=3&page=2", "https://x/y?monkey=3&turkey=4", "https://x/y?key=42&page=2"),
        *("pass=3 fail=0", "PASS: test_a_thing", "first_pass=3", "pass: 12", "pass=true", "the second pass is over"),
        *("docker run -p 8080:80 x", "mkdir -p a/b", "ps -p 12", "mysql -h x -P 3306 db", "docker login, then -p"),
        *("12 tokens: 5", "the author: me", "TSUZUKI_HTTP_AUTH=api_key", "compass=3", "bypass: on the left"),
        *("a task-force-of-many-people", "see http://x:80/a and mail me@example.org", "SUNDAY IN THE PARK WITH GEORGE"),
        *("I passed the test", "passport: none", "the password is wrong", "secrets are hidden", "トークン数: 500"),
    ],
)
def test_ordinary_words_and_params_stay_readable(text: str) -> None:
    assert redact(text) == text
    assert json.loads(hidden(json.dumps([text, text, text]).encode())) == [text] * 3


def test_what_stands_beside_a_secret_stays_readable() -> None:
    for text, shown in {
        "https://x/y?key=abc&z=1": "https://x/y?key=***&z=1",
        "mysql -u root -pabc db; echo -p x": "mysql -u root -p*** db; echo -p x",
        '{"pass": "abc", "port": 1}': '{"pass": "***", "port": 1}',
        "password: |\n  abc\n  def\nport: 1": "password: |\n***\nport: 1",
        '{"password": "a\\"b", "x": 1}': '{"password": "***", "x": 1}',
        "machine x login me password abc\nmachine y": "machine x login me password ***\nmachine y",
        "me:p@q@host https://me:p@q@host/x": "me:p@q@host https://me:***@host/x",
    }.items():
        assert redact(text) == shown


def test_parts_of_a_command_are_hidden_by_the_option_before_them() -> None:
    for given, shown in {
        "mysql -u root -pabc db": "mysql -u root -p*** db",
        "/usr/bin/mysql -p abc": "/usr/bin/mysql -p ***",
        "mysql -p -h x": "mysql -p -h x",
        "docker login -p abc": "docker login -p ***",
        "docker run -p 80:80": "docker run -p 80:80",
        "redis-cli -a abc": "redis-cli -a ***",
    }.items():
        assert without_secrets(given.split()) == shown.split()


def test_who_is_asked_first_passes_over_nothing_that_would_be_hidden() -> None:
    for text in (*SECRETS, *SHAPED):
        for cut in range(0, len(text), 3):
            for piece in (text[cut:], text[: cut + 1]):
                assert suspicious(piece) or _hiding(piece) == piece, piece


def test_a_secret_that_a_cut_would_go_through_is_hidden_first() -> None:
    for margin in range(0, 60, 7):
        told = problem(ValueError("x" * (2048 - margin) + f" password=hunter2hunter2 {PEM} " + "y" * 6000))
        assert "hunter2" not in told.message + told.traceback
        assert len(told.message) < 5000
