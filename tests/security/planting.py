"""Secrets that are planted, the flows that let them slip, and a search for them in whatever form they may have."""

import base64
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

FLOWS = """
import json, logging, os
from tsuzuki import current, flow, task

TEXTS = json.loads(os.environ["PLANTED"])

@task
async def says(note: str) -> int:
    for text in TEXTS:
        current().log.info(text)
        logging.getLogger("shop").warning("said %s", text)
        current().progress(1, 2, text)
    return len(note)

@task
async def breaks(note: str) -> int:
    raise RuntimeError("the server refused it: " + " | ".join(TEXTS))

@task
async def takes(given: dict, argv: list[str], password: str) -> int:
    return len(given)

@task
async def opens(address: str) -> int:
    current().log.info("opens it")
    return len(address)

@flow
async def talks(note: str) -> int:
    hidden = os.environ["HIDDEN"]
    given = {"headers": {"Cookie": "sid=" + hidden, "X-Api-Key": hidden}, "db": {"user": "app", "pwd": hidden}}
    argv = ["mysql", "--password", hidden, f"--token={hidden}"]
    await takes(given, argv, hidden)
    await takes.map([given], argv=argv, password=hidden, key=lambda one: "one")
    await opens.map(["https://example.org/?token=" + os.environ["KEY"]])
    return await says(note)

@flow
async def fails(note: str) -> int:
    try:
        raise ConnectionError(TEXTS[0])
    except ConnectionError:
        return await breaks(note)
"""


def plants() -> dict[str, str]:
    """Gives fresh secrets by what they are."""
    names = (
        "bearer",
        "basic",
        "query",
        "address",
        "password",
        "json",
        "openai",
        "gitlab",
        "github",
        "header",
        "signed",
        "hidden",
    )
    made = {name: secrets.token_hex(12) for name in names}
    return made | {
        "passphrase": f"{secrets.token_hex(5)} horse, {secrets.token_hex(5)}",
        "odd": f"{secrets.token_hex(6)}+/é",
    }


def texts(planted: Mapping[str, str]) -> list[str]:
    """Gives what programs say that let secrets slip."""
    basic = base64.b64encode(f"user:{planted['basic']}".encode()).decode()
    return [
        f"GET https://example.org/x?token={planted['query']}&page=1 answered 401",
        f"Authorization: Bearer {planted['bearer']}",
        f"{{'Authorization': 'Basic {basic}', 'Accept': '*/*'}}",
        f"fatal: could not read from https://git:{planted['address']}@example.org/x.git",
        f"connect(user='app', password='{planted['password']}', passphrase='{planted['passphrase']}')",
        json.dumps({"api_key": planted["json"], "client_secret": planted["odd"]}),
        json.dumps(json.dumps({"access_token": planted["json"]})),
        f"Incorrect API key provided: sk-{planted['openai']}",
        f"glpat-{planted['gitlab']} and ghp_{planted['github']}",
        f"X-Api-Key: {planted['header']}",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{planted['signed']}",
    ]


def forms(secret: str) -> set[bytes]:
    """Gives a secret as it is, in JSON, in addresses and in base64, wherever in that it begins."""
    plain = secret.encode()
    found = {plain, quote(secret).encode(), quote_plus(secret, safe="").encode()}
    found |= {json.dumps(secret)[1:-1].encode(), json.dumps(json.dumps(secret))[3:-3].encode()}
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + plain).rstrip(b"=")
        inner = coded[(0, 2, 3)[shift] : -1]  # without what the bytes around it would change
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def leaks(places: Iterable[tuple[str, bytes]], planted: Mapping[str, str]) -> Iterator[str]:
    """Tells which secret stands where."""
    wanted = [(name, form) for name, secret in planted.items() for form in forms(secret)]
    for place, content in places:
        for name, form in wanted:
            if form in content:
                at = content.index(form)
                yield f"{name} in {place}: {content[max(at - 60, 0) : at + 60]!r}"


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
