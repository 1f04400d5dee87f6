"""One run: its header, its tabs, its actions; live, and live again after the gateway was away."""

import json
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Route, expect

from tests.dashboard.browsing import Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tests.nats_server import NatsServer, free_port

SCROLLBAR = "() => { document.querySelector('.fall-calls').style.borderRight = '15px solid' }"
"""Takes as much room as a scrollbar does on most machines; a browser without a screen has none."""
EDGES = """(selector) => [...document.querySelectorAll(selector)].map((element) => {
  const { left, right } = element.getBoundingClientRect();
  return [Math.round(left), Math.round(right)];
})"""


@pytest.fixture(scope="session")
def crawled(scene: Scene) -> int:
    """A run that has ended, with 40 items of which 5 failed."""
    number = scene.submit("crawl", site="example", tags=["docs"])
    assert scene.ended(number) == "COMPLETED"
    return number


def test_the_header_says_what_a_run_is(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}")
    window.sees('.connection[data-link="settled"]')
    header = window.find(".facts")
    for text in ("Attempt", "Worker", "worker-", "35 done", "5 failed", "docs"):
        expect(header).to_contain_text(text)
    expect(window.find("h1 .status")).to_have_text("Completed with failures")
    expect(window.find('[data-task="fetch"] [title]').first).to_have_attribute("title", "Completed with failures")
    window.find(".facts button").click()
    window.until(lambda: len(window.copied) == 36, "the id is copied")


def test_steps_are_a_waterfall_and_a_map_has_a_strip(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}")
    expect(window.find(".fall-row[data-task]")).to_have_count(3)
    row = window.find('.fall-row[data-task="fetch"]')
    expect(row).to_contain_text("40 / 40")
    assert row.locator(".density rect").count() > 1
    assert "35 done, 5 failed" in (row.locator(".density").get_attribute("aria-label") or "")
    row.get_by_role("button").click()
    expect(window.find(".fall-call")).to_have_count(40)
    row.locator("a", has_text="5 failed").click()
    window.is_at("status=failed&step=fetch")


@pytest.mark.parametrize("width", [1440, 390])
def test_bars_of_opened_calls_line_up_with_the_time_axis(opened: Open, scene: Scene, crawled: int, width: int) -> None:
    window = opened(scene.url, viewport={"width": width, "height": 900})
    window.go(f"/runs/{crawled}")
    window.find('.fall-row[data-task="fetch"]').get_by_role("button").click()
    expect(window.find(".fall-call")).to_have_count(40)
    window.page.evaluate(SCROLLBAR)
    [axis] = window.page.evaluate(EDGES, ".axis")
    lanes = window.page.evaluate(EDGES, ".fall-lane")
    assert len(lanes) == 43
    assert {tuple(edges) for edges in lanes} == {tuple(axis)}


def test_the_graph_of_a_yaml_flow_shows_states(window: Window, scene: Scene) -> None:
    number = scene.submit_yaml("pipeline")
    window.go(f"/runs/{number}/graph")
    for node in ("load", "double", "triple", "sum"):
        expect(window.find(f'.node[data-node="{node}"]')).to_have_attribute("data-state", "SUCCEEDED")
    expect(window.find(".edge")).to_have_count(4)
    expect(window.find("pre.code")).to_contain_text("load >> (double & triple) >> sum")


def test_items_are_filtered_and_looked_at(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}/items")
    window.sees(".long-row", "Done")
    window.find('[data-item-status="failed"]').click()
    expect(window.find(".long-space .long-row")).to_have_count(5)
    window.page.get_by_placeholder("Search keys").fill("9")
    expect(window.find(".long-space .long-row")).to_have_count(1)
    window.page.get_by_placeholder("Search keys").fill("")
    expect(window.find(".long-space .long-row")).to_have_count(5)
    window.page.get_by_placeholder("Search errors").fill("page 19")
    expect(window.find(".long-space .long-row")).to_have_count(1)
    window.find(".long-space .long-row").click()
    dialog = window.find("dialog")
    expect(dialog).to_contain_text("ConnectionError: example does not answer for page 19")
    expect(dialog.locator("pre")).to_contain_text("flows.py")
    expect(dialog.get_by_role("region", name="Inputs")).to_contain_text("page19seconds0.01")
    expect(dialog).to_contain_text("--position")
    window.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    window.go(f"/runs/{crawled}/items?step=plan")
    window.find(".long-space .long-row").click()
    expect(dialog).to_contain_text("Output")
    expect(dialog).to_contain_text("40 entries")
    expect(dialog.get_by_role("region", name="Inputs")).to_contain_text("pages40")


def test_items_come_in_while_a_run_is_under_way_each_of_them_once(window: Window, scene: Scene) -> None:
    number = scene.submit("crawl", site="growing", pages=120, seconds=0.1)
    window.go(f"/runs/{number}/items?step=fetch")
    window.sees(".long-space .long-row")
    assert scene.ended(number) == "COMPLETED"
    expect(window.find(".long-foot")).to_contain_text("120 of 120 read")
    window.go(f"/runs/{number}/events")
    expect(window.find(".long-foot")).to_contain_text(f"{scene.run(number)['position']} of")


def test_what_comes_while_the_last_page_is_read_is_not_missed(window: Window) -> None:
    """A list is woken while it still reads what it took for the end."""
    read = """async () => {
        const { Pager } = await import("/static/core/pager.js");
        const pages = [["a"], ["b"], []];
        let go;
        const pager = new Pager(async () => {
            if (pages.length === 3) await new Promise((resolve) => (go = resolve));
            return { items: pages.shift() ?? [], next: null };
        });
        const reading = pager.reach(10);
        void pager.wake(10);
        go();
        await reading;
        return [pager.rows.value, pager.ended.value];
    }"""
    window.go("/runs")
    window.sees(".filters")
    assert window.page.evaluate(read) == [["a", "b"], True]


def test_a_table_of_items_is_used_by_keys(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}/items?step=fetch")
    window.sees(".long-space .long-row")
    window.find(".long-frame").focus()
    window.page.keyboard.press("End")
    window.page.keyboard.press("ArrowUp")
    window.page.keyboard.press("Enter")
    window.sees("dialog h2", "fetch")


def test_the_log_is_searched_paused_copied_and_leads_to_the_failure(window: Window, scene: Scene) -> None:
    number = scene.submit("nightly")
    scene.ended(number)
    window.go(f"/runs/{number}/logs")
    window.sees(".log-line", "nearly full")
    window.page.get_by_role("button", name="Jump to failure").click()
    expect(window.find(".log-line.found")).to_contain_text("cannot write")
    assert window.page.get_by_role("button", name="Pause").count() == 0  # nothing more comes
    window.page.get_by_label("Level").select_option(label="Warnings and above")
    window.gone(".log-line", "planning")
    window.page.get_by_placeholder("Search the log").fill("disk")
    window.gone(".log-line", "cannot write")
    window.page.get_by_placeholder("Search the log").fill("nowhere")
    window.sees(".blank-title", "No line fits")
    window.page.get_by_placeholder("Search the log").fill("disk")
    window.page.get_by_role("button", name="Copy", exact=True).first.click()
    window.until(lambda: "the disk is nearly full" in window.copied, "what was found is copied")


def test_a_log_grows_while_its_run_is_under_way_and_stands_still_when_paused(window: Window, scene: Scene) -> None:
    number = scene.submit("crawl", site="slow", pages=8000, seconds=0.15)
    window.go(f"/runs/{number}/logs")
    window.sees(".log-line", re.compile(r"page \d+ has"))  # of a long log only the end is drawn
    window.page.get_by_role("button", name="Pause").click()
    window.sees(".toolbar-note", "waiting")
    scene.post(f"/runs/{number}/cancel")
    scene.ended(number)


def test_a_failure_is_told_with_its_traceback_and_is_not_counted_as_done(window: Window, scene: Scene) -> None:
    number, other = scene.submit("stumbles"), scene.submit("nightly")
    assert (scene.ended(number), scene.ended(other)) == ("FAILED", "FAILED")
    window.go(f"/runs/{number}")
    expect(window.find(".facts .tally span")).to_have_text("3 steps")
    expect(window.find(".facts .tally b")).to_have_text("1 failed")
    expect(window.find(".trouble summary")).to_have_text("Traceback of speak")
    window.go(f"/runs/{other}")
    expect(window.find(".trouble summary")).to_have_text("Traceback of nightly")
    expect(window.find(".trouble pre")).to_contain_text("nothing was written")


def test_events_are_the_journal(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}/events")
    window.sees(".fact-kind", "Submitted")
    window.sees(".long-row", "fetch[0]")
    window.find(".long-row", "Claimed").click()
    expect(window.find("dialog")).to_contain_text("worker")


def test_params_and_result_are_shown_with_the_command_that_does_it_again(window: Window, crawled: int) -> None:
    window.go(f"/runs/{crawled}/params")
    expect(window.find(".value", "Params")).to_contain_text("example")
    expect(window.find(".value", "Result")).to_contain_text("35")
    expect(window.find(".command code")).to_contain_text("tsuzuki submit crawl --param site=example")


def test_a_run_is_cancelled_resumed_and_deleted(window: Window, scene: Scene) -> None:
    number = scene.waiting("acts")
    window.go(f"/runs/{number}")
    dialog = window.find("dialog")
    window.find('[data-act="cancel"]').click()
    dialog.wait_for()
    window.go("/workers")
    expect(window.find("tr", f"waits #{number}")).to_have_count(1)
    expect(dialog).to_have_count(0)  # it was asked of a page that is left
    window.page.go_back()
    window.find('[data-act="cancel"]').click()
    expect(dialog.get_by_role("heading", level=2)).to_have_text(f"Cancel run #{number} of waits?")
    expect(dialog.locator("h3, .preview")).to_have_count(0)  # of one run there is nothing to list
    expect(dialog.locator("code")).to_have_text(f"tsuzuki cancel {number} --server {scene.url}")
    dialog.get_by_role("button", name="Cancel run").click()
    expect(window.find("h1 .status")).to_have_text("Cancelled")
    expect(window.find("[data-cut]")).to_contain_text("1 interrupted")
    window.find('[data-act="resume"]').click()
    dialog.get_by_label("Also try again what failed").uncheck()
    expect(dialog.locator("code")).to_contain_text(f"tsuzuki resume {number} --keep-failed")
    dialog.get_by_role("button", name="Resume run").click()
    expect(window.find("h1 .status")).to_have_text("Running")
    scene.open_gate("acts")
    expect(window.find("h1 .status")).to_have_text("Completed")
    window.find('[data-act="remove"]').click()
    expect(dialog.locator("code")).to_have_text(f"tsuzuki delete {number} --yes --server {scene.url}")
    dialog.get_by_role("button", name="Delete run").click()
    window.page.wait_for_url("**/#/runs")
    assert scene.client.get(f"/runs/{number}").status_code == 404


def test_failed_items_are_tried_again(window: Window, scene: Scene) -> None:
    number = scene.submit("crawl", site="again", pages=10)
    scene.ended(number)
    window.go(f"/runs/{number}")
    window.page.get_by_role("button", name="Retry 1 failed").click()
    window.find("dialog").get_by_role("button", name="Retry 1 item").click()
    expect(window.find(".fact", "Attempt")).to_contain_text("2")
    scene.is_in(number, "COMPLETED")


def test_an_unknown_flow_is_told_of_in_a_sentence(window: Window, scene: Scene) -> None:
    number = scene.submit("misspelt")
    assert scene.ended(number) == "FAILED"
    window.go(f"/runs/{number}")
    expect(window.find(".trouble")).to_contain_text("No worker with the tag default has a flow named misspelt.")
    expect(window.find(".tab-body")).to_contain_text("The run ended before its first step.")
    window.go("/runs?flow=misspelt")
    expect(window.row(number)).to_contain_text("No worker with the tag default has a flow named misspelt.")
    assert "flow_not_found" not in window.page.inner_text("main")


def test_a_long_key_is_cut_in_the_middle(window: Window, scene: Scene) -> None:
    key = "https://docs.example.com/" + "section/" * 40 + "page-17"
    number = scene.submit("nasty", texts=[key])
    scene.ended(number)

    def both_ends_are_seen_in(frame: str) -> None:
        parts = window.find(f"{frame} .middle > span")
        expect(parts).to_have_count(2)
        assert "".join(parts.all_inner_texts()) == key
        assert parts.first.evaluate("(e) => e.scrollWidth > e.clientWidth")
        right = "(e) => e.getBoundingClientRect().right"
        assert parts.last.evaluate(right) <= window.find(frame).first.evaluate(right)

    window.go(f"/runs/{number}")
    window.find('[data-task="speak"]').get_by_role("button").click()
    both_ends_are_seen_in(".fall-call .fall-name")
    window.go(f"/runs/{number}/items?step=speak")
    both_ends_are_seen_in(".long-space .long-row [role=cell]")


def test_a_run_that_waits_says_until_when_and_why_and_can_be_woken(window: Window, scene: Scene) -> None:
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    body = {"flow_name": "report", "params": {"name": "waits"}, "not_before": later.isoformat()}
    number = scene.post("/runs", body)["number"]
    waits = {"waiting_reason": "waiting for the approval of Ms Sato", "waiting_until": later.timestamp()}

    def listed(route: Route) -> None:
        answer = route.fetch()
        page = answer.json()
        route.fulfill(response=answer, json={**page, "items": [run | waits for run in page["items"]]})

    def watched(route: Route) -> None:
        told = json.dumps({"run_id": "", "snapshot": scene.run(number) | waits, "ts": later.timestamp()})
        route.fulfill(content_type="text/event-stream", body=f"event: snapshot\ndata: {told}\n\n")

    window.page.route("**/runs?*", listed)
    window.page.route("**/watch?*", watched)
    window.go(f"/runs?text=%23{number}")
    expect(window.row(number)).to_contain_text("waiting for the approval of Ms Sato · Resumes in")
    window.row(number).get_by_role("button", name=f"Run now #{number}").wait_for()
    window.find(".run-name").click()
    expect(window.find(".fact", "Resumes")).to_contain_text(re.compile(r"in (59|60) min"))
    expect(window.find(".fact", "Waits because")).to_contain_text("waiting for the approval of Ms Sato")
    window.find('[data-act="wake"]').click()
    expect(window.find("dialog code")).to_have_text(f"tsuzuki resume {number} --server {scene.url}")
    with window.page.expect_request(lambda request: request.method == "POST") as sent:
        window.find("dialog").get_by_role("button", name="Run now").click()
    assert sent.value.url.endswith("/resume")
    expect(window.find("dialog")).to_have_count(0)


def test_what_is_not_there_is_told_of(window: Window, scene: Scene, crawled: int) -> None:
    window.expected.append("404")
    window.go("/runs/999999")
    window.sees(".blank-title", "Not found")
    window.sees(".blank-text", "Search for it in the list")
    window.sees(".blank-code", "ERR-TSUZUKI-0005")
    window.go(f"/runs/{crawled}/nonsense")
    window.sees(".blank-title", "There is no such tab")
    window.go(f"/runs/{crawled}/items?item=99999")
    window.sees("dialog .blank-title", "There is no such item")
    removed = scene.submit("report", name="removed")
    scene.ended(removed)
    window.go(f"/runs/{removed}")
    window.sees('.connection[data-link="settled"]')
    scene.client.delete(f"/runs/{removed}")
    window.sees('.connection[data-link="gone"]')
    expect(window.find("h1")).to_contain_text("report")  # what was there stays


def test_a_page_is_live_again_after_the_gateway_was_away(opened: Open, own_scene: Callable[..., Scene]) -> None:
    scene = own_scene()
    place = ["serve", "--port", str(free_port()), "--backend", f"sqlite:{scene.room.store}/tsuzuki.db"]
    url = f"http://127.0.0.1:{place[2]}"
    gateway = scene.room.start(*place)
    scene.room.until(lambda: "serving" in gateway.said, "the second gateway serves")
    number = scene.waiting("away")
    window = opened(url)
    window.expected += ["ERR_", "Failed to fetch", "Failed to load"]
    window.go(f"/runs/{number}")
    window.sees('.connection[data-link="live"]')
    gateway.send(signal.SIGKILL)
    gateway.ended()
    window.sees('.connection[data-link="waiting"]')
    window.sees('[data-pulse="lost"]')
    expect(window.find("h1")).to_contain_text("waits")  # what was there stays
    scene.open_gate("away")
    scene.ended(number)
    gateway = scene.room.start(*place)
    window.sees('.connection[data-link="settled"]')
    expect(window.find("h1 .status")).to_have_text("Completed")
    window.sees('[data-pulse="live"]')
    gateway.send(signal.SIGTERM)  # now in order: streams end, and it is told just the same
    window.sees('.connection[data-link="waiting"]')


def test_on_nats_runs_are_listed_followed_and_acted_on(
    opened: Open, own_scene: Callable[..., Scene], nats_server: NatsServer
) -> None:
    scene = own_scene("--backend", f"{nats_server.url}?prefix={nats_server.fresh()}")
    window = opened(scene.url)
    window.go("/runs")
    window.sees(".blank-title", "No runs yet")
    number = scene.waiting("nats")
    expect(window.row(number)).to_contain_text("Running")
    window.find(".run-name").click()
    window.sees('.connection[data-link="live"]')
    window.find('[data-act="cancel"]').click()
    window.find("dialog").get_by_role("button", name="Cancel run").click()
    expect(window.find("h1 .status")).to_have_text("Cancelled")
    crawl = scene.submit("crawl", site="nats")
    window.go(f"/runs/{crawl}")
    expect(window.find("h1 .status")).to_have_text("Completed with failures")
    expect(window.find('.fall-row[data-task="fetch"]')).to_contain_text("40 / 40")
    window.find('[data-tab="items"]').click()
    window.find('[data-item-status="failed"]').click()
    expect(window.find(".long-space .long-row")).to_have_count(5)
    window.find('[data-tab="logs"]').click()
    window.sees(".log-line", "planning 40 pages")
    window.go("/letters")
    scene.ended(scene.submit("nightly"))
    window.sees(".error-line", "the disk is full")
    expect(window.find('[data-nav="/letters"]')).to_contain_text(re.compile(r"\d"))
