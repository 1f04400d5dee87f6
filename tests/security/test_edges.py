"""What a browser, a terminal, a spreadsheet and a reader of logs get to see, whatever somebody has put into it."""

import csv
import io
import logging
import re
import statistics
import time
from pathlib import Path

import click
import pytest

from tests.gateway.conftest import House, Serve
from tests.gateway.test_auth import key_of
from tests.wheels.making import make_wheel
from tsuzuki.apps.glossary.exports import separated
from tsuzuki.apps.glossary.records import Entry
from tsuzuki.backends import Line
from tsuzuki.cli import render
from tsuzuki.gateway.options import Options
from tsuzuki.logs import PlainLines
from tsuzuki.wheelerrors import BadWheel, WheelSyncFailed
from tsuzuki.wheels import naming, resolving, unpacking

HOSTILE = "a\x1b[2J\x1b]0;title\x07\r\n2026-01-01T00:00:00 INFO tsuzuki: all is well\u202e\x9b31m\x00b"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
async def locked(serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> House:
    monkeypatch.setenv("TSUZUKI_DATA_DIR", str(tmp_path / "files"))
    return await serve(Options(auth=True))


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_every_answer_has_the_headers_that_keep_a_browser_careful(
    locked: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await key_of(locked, "ours")
    page = (await locked.client.get("/")).text
    paths = ["/", "/health", "/runs", "/nowhere", "/openapi.json", *re.findall(r'(?:src|href)="(/[^"]+)"', page)]
    paths += [one["module"] for one in (await locked.client.get("/apps", headers=key)).json() if one["module"]]
    asked: list[tuple[str, str, dict[str, str]]] = [("GET", path, {}) for path in paths] + [
        ("GET", "/runs", key),
        ("PUT", "/runs", key),
    ]
    asked += [("POST", "/runs", {**key, "origin": "http://evil.example"}), ("OPTIONS", "/runs", {"origin": "http://a"})]

    async def broken() -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(locked.app.state.gateway.overview, "figures", broken)
    asked.append(("GET", "/overview", key))
    seen = set()
    for method, path, headers in asked:
        answer = await locked.client.request(method, path, headers=headers)
        seen.add(answer.status_code)
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["x-frame-options"] == "DENY", path
        assert answer.headers["referrer-policy"] == "no-referrer", path
        assert "default-src 'self'" in answer.headers["content-security-policy"], path
        assert "unsafe" not in answer.headers["content-security-policy"], path
        assert answer.headers["cache-control"] in ("no-store", "no-cache"), path
        assert not {"access-control-allow-origin", "set-cookie", "location"} & set(answer.headers), path
        assert "tsuzuki" not in answer.headers.get("server", "").lower(), path
    assert {200, 401, 403, 404, 405, 500} <= seen


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_no_path_leads_out_of_a_folder_of_files(locked: House, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside")
    ups = ["../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%5c", "....//", "%252e%252e%252f", "/etc/passwd", "%00", "..;/"]
    for top in ("/static/", "/apps/glossary/", "/static/core/"):
        for up in ups:
            for name in ("app.py", "desk.py", "__init__.py", "secret.txt"):
                answer = await locked.client.get(f"{top}{up * 3}{name}")
                assert answer.status_code in (400, 401, 404, 405), (top, up)
    for top in ("/static", "/static/", "/apps/glossary", "/apps/glossary/", "/static/core", "//evil.example/%2e%2e"):
        answer = await locked.client.get(top, follow_redirects=False)
        assert answer.status_code in (404, 401), top  # neither a list of files, nor a redirect


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_wrong_key_takes_as_long_wherever_it_begins_to_be_wrong(serve: Serve) -> None:
    """The digest of a key is compared, and in constant time: how much of it is right cannot be measured."""
    house = await serve(Options(auth=True))
    key = (await key_of(house, "ours"))["X-API-Key"]
    early, late = key[:-43] + "A" * 43, key[:-1] + ("A" if key[-1] != "A" else "B")
    keyring, took = house.app.state.gateway.keyring, {early: list[float](), late: list[float]()}
    for _ in range(300):
        for text, times in took.items():
            began = time.perf_counter()
            assert await keyring.holder(text) is None
            times.append(time.perf_counter() - began)
    first, second = (statistics.median(times) for times in took.values())
    assert 0.5 < first / second < 2


def test_what_a_terminal_shows_cannot_steer_it() -> None:
    line = render.log_line(Line(0.0, HOSTILE, "info", name=HOSTILE, key=HOSTILE))
    for shown in (line, render.harmless(HOSTILE), render.one_line(HOSTILE), *render.table(["A"], [[HOSTILE]])):
        assert not STEERING.search(shown), repr(shown)
    assert not any(each.startswith("2026") for each in line.splitlines()[1:])
    assert render.harmless("続き\u3000と\n次の行\tx") == "続き\u3000と\n次の行\tx"


def test_a_log_for_people_has_one_beginning_of_a_line_for_each_record() -> None:
    record = logging.LogRecord("shop", logging.INFO, "", 0, "run %s", (HOSTILE,), None)
    record.worker_id = HOSTILE
    shown = PlainLines("tsuzuki").format(record)
    assert not STEERING.search(shown), repr(shown)
    assert all(line.startswith("    ") for line in shown.splitlines()[1:])


def test_no_cell_of_an_exported_glossary_becomes_a_formula() -> None:
    for start in ("=", "+", "-", "@", "\t", "\r", "\n=", "a\r=", "a\r\n=", "＝"):
        risky = f"{start}cmd|'/c calc'!A1"
        lines = separated("t", [Entry(risky, risky, 0.5, [risky], [], 1)])
        assert not re.search(r'(?:^|,)"?[=+@＝\t\r-]', lines.partition("\n")[2]), lines
        _, cells = csv.reader(io.StringIO(lines, newline=""))  # a carriage return in a cell begins no row
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


@pytest.mark.parametrize(
    ("path", "why"),
    [("demo/x", "a file and a folder"), ("n" * 256, "no file can have"), ("a\x1b[2J.py", "no file can")],
)
def test_a_wheel_that_no_folder_can_hold_is_refused_before_any_worker_tries(
    path: str, why: str, tmp_path: Path
) -> None:
    made = make_wheel(tmp_path, "demo", "1.0", {"demo": "", path: ""})
    with pytest.raises(BadWheel, match=why):
        unpacking.unpack(made, made.name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_version_of_thousands_of_digits_stops_no_worker() -> None:
    assert naming.accepts_python(f">={'9' * 5000}", "3.11.2")
    with pytest.raises(WheelSyncFailed, match="makes no sense"):
        resolving.missing([f"click>={'9' * 5000}"], [str(Path(click.__file__).parents[1])])
