"""What the documents promise is shown by tests that are there, and the numbers in them are those of the code."""

import subprocess
from pathlib import Path

from tests.house import evidence
from tsuzuki import content, defaults, journal, lifecycle, redact, runlog
from tsuzuki.backends.sqlite import store
from tsuzuki.gateway import options, server
from tsuzuki.yamlflow import graph, parsing

ROOT = Path(__file__).parents[2]
SETTINGS = {each.name: each.default for each in (*defaults.GATEWAY, *defaults.WORKERS, *defaults.WHEELS)}
MIB, KIB = 1 << 20, 1 << 10
LIMITS = [
    f"{int(SETTINGS['TSUZUKI_HTTP_MAX_REQUEST_BYTES']) // MIB} MiB (`TSUZUKI_HTTP_MAX_REQUEST_BYTES`)",
    f"{int(SETTINGS['TSUZUKI_MAX_RUN_SNAPSHOT_BYTES']) // KIB} KiB (`TSUZUKI_MAX_RUN_SNAPSHOT_BYTES`)",
    f"{int(SETTINGS['TSUZUKI_HTTP_MAX_STREAMS']):,} (`TSUZUKI_HTTP_MAX_STREAMS`)",
    f"{int(SETTINGS['TSUZUKI_WHEEL_MAX_BYTES']) // MIB} MiB (`TSUZUKI_WHEEL_MAX_BYTES`)",
    f"above {journal.LARGE // KIB} KiB it is kept as a blob",
    f"{content.MOST_PARTS:,} parts or {content.MOST_BYTES // MIB} MiB",
    f"{store.MOST_LINES:,}, each of {runlog.MOST_TEXT:,} characters",
    f"{redact._MOST:,} and {redact._MOST_TRACE:,} characters",  # noqa: SLF001 - compared, not used
    f"{parsing.MOST_BYTES:,} bytes, {graph.MOST_TASKS} tasks",
    f"| address and headers of a request | {server.MOST_HEADERS // 1024} KiB |",
    f"of which {lifecycle.MAX_CLAIMS_ALONE} with no other run beside it",
    f"{lifecycle.MOST_CLAIMS} for the run of a script",
]
HELD_TO = (
    f"{server.MOST_HEADERS // 1024} KiB of them address and headers",
    f"headers within {server.HEADERS_WAIT:g} s, a body within {options.BODY_WAIT:g} s",
    f"{server.SPARE:,} connections beside them; who reads nothing is let go after {options.STALL:g} s",
)


def test_what_documents_name_as_evidence_is_there() -> None:
    assert not evidence.missing(ROOT)


def test_links_to_headings_lead_to_headings(tmp_path: Path) -> None:
    assert not evidence.lost_headings(ROOT)
    (tmp_path / "a.md").write_text("## One heading\n\n[here](#one-heading) [gone](#another) [out](https://a/b.md#c)")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert evidence.lost_headings(tmp_path) == ["a.md: links to #another, and there is no such heading"]


def test_every_promise_names_what_shows_it() -> None:
    assert not evidence.unproven(ROOT)


def test_the_limits_that_are_told_are_those_of_the_code() -> None:
    told = (ROOT / "docs/limits.md").read_text()
    assert [limit for limit in LIMITS if limit not in told] == []
    secured = (ROOT / "SECURITY.md").read_text()
    assert [limit for limit in HELD_TO if limit not in secured] == []


def test_the_map_of_the_docs_leads_to_every_page() -> None:
    told = (ROOT / "docs/index.md").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"]
    assert [str(page) for page in pages if f"({page})" not in told and page.name != "index.md"] == []
