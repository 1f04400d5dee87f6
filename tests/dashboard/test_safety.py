"""What a hostile text cannot do, what nobody is kept out by, and how light the pages are."""

import gzip
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Route, expect

from tests.dashboard.browsing import Stage, Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tsuzuki.gateway.pages import FOLDER

AXE = Path(__file__).parent / "vendor/axe.min.js"
MOST_BYTES = 120_000  # of the first picture
AS_IT_IS = {"reduced_motion": "no-preference"}  # what is measured is what people have
EVIL = '<img src=x onerror="window.hacked=1">'
EVILS = [
    EVIL,
    "</script><script>window.hacked=1</script>",
    "javascript:window.hacked=1",
    '"><svg onload=window.hacked=1>',
    "{{constructor.constructor('window.hacked=1')()}}",
    "${window.hacked=1}",
    "!<iframe srcdoc='<script>parent.hacked=1</script>'>",
]


def test_texts_from_elsewhere_stay_texts_everywhere(window: Window, scene: Scene) -> None:
    body = {"flow_name": "nasty", "params": {"texts": EVILS}, "tags": [EVIL, "evil"], "key": EVIL}
    number = scene.post("/runs", body)["number"]
    scene.ended(number)
    stranger = {"flow_name": EVIL, "params": {EVIL: EVIL}, "tag": "nobody", "tags": ["evil"]}
    unknown = scene.post("/runs", stranger)["number"]
    places = ["/runs?label=evil", f"/runs/{number}", f"/runs/{unknown}", "/letters", "/metrics", "/workers"]
    places += [f"/runs/{number}/{tab}" for tab in ("items", "logs", "events", "params")]
    places += [f"/start?like={number}", f"/start?like={unknown}"]
    quoted = "%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E"
    places += [f"/runs?text={quoted}&flow={quoted}", f"/{quoted}", f"/runs/{number}/items?step={quoted}"]
    for place in places:
        window.go(place)
        window.sees("h1")
        window.gone(".loading")
        assert window.page.evaluate("window.hacked") is None, place
        assert window.find("main img, main iframe, main script").count() == 0, place
    window.go(f"/runs/{number}/items?status=failed")
    window.find(".long-space .long-row").first.click()
    window.sees("dialog pre", "srcdoc")
    assert window.page.evaluate("window.hacked") is None
    window.go(f"/runs/{number}/logs")
    window.sees(".log-text", EVIL)
    scene.post(f"/runs/{unknown}/cancel", {"reason": EVIL})
    window.go(f"/runs/{unknown}")
    window.sees(".fact", EVIL)
    assert window.page.evaluate("window.hacked") is None


def test_the_page_has_no_inline_script_and_could_run_none(window: Window, scene: Scene) -> None:
    window.go("/runs")
    window.sees(".states")
    policy = scene.client.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    window.expected += [
        "inline script",
        "TrustedHTML",
        "TrustedScript",
        "script-src",
        "style-src",
        "require-trusted-types-for",
    ]
    tried = """() => {
      const script = document.createElement('script');
      try { script.textContent = 'window.hacked = 1'; document.body.append(script); } catch (e) { return 'refused'; }
      return String(window.hacked);
    }"""
    assert window.page.evaluate(tried) in ("refused", "undefined")
    refused = (
        "() => { try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch (e) { return e.name; } }"
    )
    assert window.page.evaluate(refused) == "TypeError"


def test_nothing_builds_html_from_text() -> None:
    for path in FOLDER.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        if path.parent.name != "vendor":
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), path
            assert "dangerouslySetInnerHTML" not in text, path
            assert "http://" not in text, path
            assert "https://" not in text, path


def begun_with() -> set[Path]:
    """Gives the modules that the first picture needs: those that others import by name, from the first one on."""
    found: set[Path] = set()
    left = [FOLDER / "app.js"]
    while left:
        path = left.pop().resolve()
        if path not in found:
            found.add(path)
            named = re.findall(r'^(?:import|export)\b[^;]*? from "([^"]+)";', path.read_text(), re.MULTILINE)
            left += [path.parent / name for name in named]
    return found


def test_script_and_style_of_the_first_picture_are_light() -> None:
    files = [*begun_with(), *FOLDER.rglob("*.css")]
    sizes = {str(path.relative_to(FOLDER)): len(gzip.compress(path.read_bytes(), 9)) for path in files}
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_the_page_names_every_module_it_begins_with() -> None:
    page = (FOLDER / "index.html").read_text()
    named = set(re.findall(r'modulepreload" href="static/([^"]+)"', page))
    assert named == {str(path.relative_to(FOLDER)) for path in begun_with()} - {"app.js"}


def test_every_part_for_applications_is_told_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs/dashboard.md").read_text(encoding="utf-8")
    exported = re.findall(r"^export \{ (.+) \} from", (FOLDER / "parts.js").read_text(), re.MULTILINE)
    names = [name for listing in exported for name in listing.split(", ")]
    assert len(names) > 40
    assert not [name for name in names if not re.search(rf"`{name}\b", text)]


def test_vendored_files_are_as_they_were_written_down() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (FOLDER / "vendor/README.md").read_text(), re.MULTILINE
    )
    assert len(rows) == 7
    for name, digest in rows:
        path = AXE if name == AXE.name else FOLDER / "vendor" / name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest, name


def serious(window: Window, *rules: str) -> list[str]:
    """Gives what axe finds that keeps people out, by some rules, or by all and one that it does not apply by itself."""
    if not window.page.evaluate("'axe' in window"):
        window.page.evaluate(AXE.read_text(encoding="utf-8"))
    applied = {"runOnly": list(rules)} if rules else {"rules": {"label-content-name-mismatch": {"enabled": True}}}
    options = {"resultTypes": ["violations"]} | applied
    found = window.page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_axe_finds_nothing_serious_on_any_screen(scene: Scene, opened: Open, stage: Stage, look: str) -> None:
    number, yaml = scene.submit("crawl", site="axe", pages=10), scene.submit_yaml("axe")
    failed = scene.submit("nightly")
    for one in (number, yaml, failed):
        scene.ended(one)
    options: dict[str, Any] = {"color_scheme": "dark" if look == "dark" else "light"}
    if look == "narrow":
        options["viewport"] = {"width": 375, "height": 740}
    window: Window = opened(scene.url, **options)
    places = [
        "/runs",
        "/start",
        "/start?flow=crawl",
        "/workers",
        "/letters",
        "/metrics",
        "/settings",
        f"/runs/{failed}",
    ]
    item = f"/items?item={scene.get(f'/runs/{number}/items')['items'][0]['position']}"
    places += [f"/runs/{number}{tab}" for tab in ("", "/items", item, "/logs", "/events", "/params")]
    for place in (*places, f"/runs/{yaml}/graph", "/runs?text=nothing%20fits"):
        window.go(place)
        window.sees("h1")
        window.gone(".loading")
        assert serious(window, *({"dark": ["color-contrast"]}.get(look, []))) == [], place
        wide = window.page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")
        assert not wide, f"{place} is wider than the window"


def test_it_works_behind_a_path_prefix(scene: Scene, opened: Open, stage: Stage) -> None:
    window = opened(scene.url)

    def proxied(route: Route) -> None:
        route.continue_(url=route.request.url.replace("/team/tsuzuki/", "/", 1))

    window.context.route("**/team/tsuzuki/**", proxied)
    outside: list[str] = []
    window.page.on(
        "request", lambda request: outside.append(request.url) if "/team/tsuzuki/" not in request.url else None
    )
    number = scene.submit("crawl", site="prefix", pages=4)
    scene.ended(number)
    window.page.goto(f"{scene.url}/team/tsuzuki/#/runs/{number}")
    window.sees('.connection[data-link="settled"]')
    expect(window.find("h1 .status")).to_have_text("Completed")
    expect(window.find(".command code")).to_contain_text(f"--server {scene.url}/team/tsuzuki")
    assert not outside


def test_the_first_picture_runs_no_script_but_what_it_begins_with(opened: Open, scene: Scene, stage: Stage) -> None:
    window = opened(scene.url, **AS_IT_IS)
    ran: list[str] = []
    window.page.on("request", lambda one: ran.append(one.url) if one.resource_type == "script" else None)
    window.go("/runs")
    window.sees(".states")
    named = {str(path.relative_to(FOLDER)) for path in begun_with()}
    assert {url.partition("/static/")[2] for url in ran[: len(named)]} == named, "other screens come after it"
    assert len(ran) == len(set(ran)), "each comes once"


def test_a_run_of_20000_items_stays_smooth_and_small(opened: Open, scene: Scene, stage: Stage) -> None:
    window = opened(scene.url, **AS_IT_IS)
    number = scene.submit("many")
    window.go(f"/runs/{number}")
    window.sees('.fall-row[data-task="one"]')
    page = window.page
    client = window.context.new_cdp_session(page)
    client.send("HeapProfiler.enable")

    def heap() -> float:
        client.send("HeapProfiler.collectGarbage")
        used: float = client.send("Runtime.getHeapUsage")["usedSize"]
        return used

    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "/items?" in one.url else None)
    before = heap()
    scene.ended(number)
    expect(window.find('.fall-row[data-task="one"]')).to_contain_text("20,000 / 20,000")
    assert heap() - before < 4_000_000
    window.find('[data-tab="items"]').click()
    window.sees(".long-space .long-row")
    for row in (100, 5000, 12_000, 19_990):
        page.evaluate("(row) => { document.querySelector('.long-frame').scrollTop = row * 34; }", row)
        window.sees(f'.long-row[aria-rowindex="{row}"]', "Done")
        assert page.locator(".long-space .long-row").count() < 80
    expect(window.find(".long-foot")).to_contain_text("20,000 of 20,000 read")
    assert heap() - before < 30_000_000
    assert {parse_qs(urlsplit(url).query)["limit"][0] for url in asked} == {"1000"}, "no answer keeps the page busy"
    assert len(asked) <= 22, "each item is read once"


def test_live_updates_leave_nothing_behind(opened: Open, scene: Scene) -> None:
    """Ten minutes of updates in a shorter time: hundreds of changes, and memory and nodes stay as they were."""
    window = opened(scene.url, **AS_IT_IS)
    window.go("/runs?label=churn")
    window.sees(".states")
    client = window.context.new_cdp_session(window.page)
    client.send("HeapProfiler.enable")

    def figures() -> tuple[int, int]:
        client.send("HeapProfiler.collectGarbage")
        counted = client.send("Memory.getDOMCounters")
        return client.send("Runtime.getHeapUsage")["usedSize"], counted["nodes"]

    def churn(rounds: int) -> None:
        number = scene.submit("crawl", tags=["churn"], site="churn", pages=rounds, seconds=0.02)
        expect(window.row(number)).to_contain_text("Completed", timeout=30_000)
        scene.client.delete(f"/runs/{number}")

    churn(200)
    bytes_before, nodes_before = figures()
    for _ in range(3):
        churn(400)
    bytes_after, nodes_after = figures()
    assert bytes_after - bytes_before < 1_500_000
    assert nodes_after - nodes_before < 2000
