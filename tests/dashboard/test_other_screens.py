"""Workers, dead letters, metrics, settings, and the doors: keys, other languages, nothing there."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.dashboard.browsing import Held, Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene


def test_workers_are_hidden_and_shown_again(window: Window, scene: Scene) -> None:
    name = next(worker["worker_id"] for worker in scene.get("/workers") if worker["tags"] == ["default"])
    window.go("/workers")
    row = window.find(f'tr[data-row="{name}"]')
    expect(row).to_contain_text("default")
    row.get_by_role("button").click()
    expect(window.find("dialog code")).to_contain_text(f"tsuzuki workers --hide {name}")
    window.find("dialog").get_by_role("button", name="Hide").click()
    expect(row).to_have_count(0)
    window.page.get_by_label("Show hidden ones").check()
    expect(row).to_contain_text("hidden")
    row.get_by_role("button").click()
    window.find("dialog").get_by_role("button", name="Show again").click()
    expect(row).not_to_contain_text("hidden")


def test_workers_that_left_are_shown_when_asked_for(window: Window, scene: Scene) -> None:
    worker = scene.room.worker("--worker-id", "leaver")
    window.go("/workers")
    window.sees("tr", "leaver")
    worker.send(15)
    worker.ended()
    window.gone("tr", "leaver")
    window.page.get_by_label("Show those that left").check()
    expect(window.find("tr", "leaver")).to_contain_text("Stopped")


def test_dead_letters_are_looked_at_replayed_and_dropped(window: Window, scene: Scene) -> None:
    one, two = scene.submit("nightly"), scene.submit("nightly")
    scene.ended(one)
    scene.ended(two)
    letters = {letter["number"]: letter["id"] for letter in scene.get("/dlq")["items"]}
    window.go("/letters")

    def act(number: int, verb: str) -> None:
        window.find(f'tr[data-row="{letters[number]}"] [data-verb="{verb}"]').click()

    dialog = window.find("dialog")
    expect(window.find(f'tr[data-row="{letters[one]}"]')).to_contain_text("The flow failed")
    act(one, "show")
    expect(dialog.get_by_title("execution_error")).to_have_text("The flow failed")
    expect(dialog.locator("pre")).to_contain_text("the disk is full")
    window.page.keyboard.press("Escape")
    act(one, "replay")
    expect(dialog.locator("code")).to_contain_text(f"tsuzuki dlq replay {letters[one]}")
    dialog.get_by_role("button", name="Replay").click()
    window.gone(f'tr[data-row="{letters[one]}"]')
    scene.until(lambda: scene.run(one)["attempt"] == 2, "it was tried again")
    act(two, "drop")
    dialog.get_by_role("button", name="Drop").click()
    window.gone(f'tr[data-row="{letters[two]}"]')
    assert scene.run(two)["attempt"] == 1


def test_language_models_are_shown_with_what_they_cost(window: Window, scene: Scene) -> None:
    number = scene.submit("asks", count=7)
    assert scene.ended(number) == "COMPLETED"
    plain = scene.submit("report", name="without")
    assert scene.ended(plain) == "COMPLETED"
    window.go(f"/runs/{plain}")
    window.sees('[data-tab="items"]')
    assert window.find('[data-tab="llm"]').count() == 0
    window.go(f"/runs/{number}")
    window.find('[data-tab="llm"]').click()
    row = window.find("tbody tr", "rules")
    for text in ("rules", "offline", "7", "$0.00"):
        expect(row).to_contain_text(text)
    window.find(".tab-body").get_by_role("link", name="LLM").click()
    expect(window.find("h1")).to_have_text("LLM")
    window.sees("tbody tr", "rules offline")
    window.sees("tbody tr", f"asks #{number}")
    window.sees("p.hint", "the machine of this gateway")
    window.go(f"/runs/{number}/items?step=llm.request")
    rows = window.find(".long-frame .long-row")
    expect(rows).to_have_count(7)
    rows.first.click()
    expect(window.find("dialog")).to_contain_text("$0.00")
    assert scene.run(number)["usage"]["requests"] == 7
    assert [item["usage"]["requests"] for item in scene.get(f"/runs/{number}/items", spent="true")["items"]] == [1] * 7


def test_metrics_are_figures_and_charts(window: Window, scene: Scene) -> None:
    scene.ended(scene.submit("report", name="metrics"))
    waits = scene.post("/runs", {"flow_name": "waits", "params": {}, "tag": "nobody"})["number"]
    scene.until(lambda: scene.get("/overview")["queue_age"] > 1, "it waits")
    assert scene.get("/overview/history", seconds=3600)["bars"][-1]["queue_age"] > 1
    scene.post(f"/runs/{waits}/cancel", {})
    bars = scene.get("/overview/history", seconds=3600)["bars"]
    assert max(bar["queue_age"] for bar in bars[-2:]) >= 1, "what has waited is remembered"
    assert bars[0]["queue_age"] == 0
    window.go("/metrics?span=1h")
    workers = window.find('[data-figure="nav.workers"]')
    window.until(lambda: workers.inner_text() == str(scene.get("/overview")["workers_alive"]), "workers are counted")
    expect(window.find(".chart canvas")).to_have_count(4)
    ended = "document.querySelector('[data-figure=\"state.COMPLETED\"]').textContent"
    drawn = "document.querySelector('.legend-entry.tone-good em').textContent.trim()"
    card, legend = window.page.evaluate(f"[{ended}, {drawn}]")
    assert card == legend != "0"
    window.page.get_by_role("button", name="7 days").click()
    window.page.wait_for_url("**/#/metrics?span=7d")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_metrics_below_a_second_are_shown_and_no_card_breaks(opened: Open, scene: Scene, language: str) -> None:
    scene.ended(scene.submit("report", name="short"))
    window = opened(scene.url, locale=language, viewport={"width": 1440, "height": 900})
    window.go("/metrics?span=24h")
    expect(window.find(".chart canvas")).to_have_count(4)
    took = window.find(".legend").nth(1)
    expect(took).to_contain_text(re.compile(r"\d ?(ms|ミリ秒)"))
    lines = "[...document.querySelectorAll('.figure-card dt, .figure-card dd')].map((e) => e.getClientRects().length)"
    heights = "[...document.querySelectorAll('.figure-card')].map((e) => e.offsetHeight)"
    tall = "[...document.querySelectorAll('.figure-card dt')].map((e) => e.offsetHeight)"
    assert set(window.page.evaluate(lines)) == {1}
    assert len(set(window.page.evaluate(heights))) == len(set(window.page.evaluate(tall))) == 1
    assert max(window.page.evaluate(tall)) < 30  # one line


def test_applications_keep_their_order_whichever_comes_first(window: Window) -> None:
    first = Held(window, "**/apps/commits/main.js")
    window.go("/settings")
    window.sees('[data-nav="/apps/notes"]')
    first.let_go()
    window.sees('[data-nav="/apps/commits"]')
    order = window.page.evaluate("[...document.querySelectorAll('[data-nav]')].map((one) => one.dataset.nav)")
    assert order[-4:] == ["/apps/commits", "/apps/glossary", "/apps/notes", "/settings"]


def test_settings_change_language_theme_and_times_and_are_kept(window: Window, scene: Scene) -> None:
    number = scene.submit("report", name="times")
    scene.ended(number)
    window.go("/settings")
    page = window.page
    page.get_by_label("Dark", exact=True).check()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_label("UTC", exact=True).check()
    page.get_by_label("日本語", exact=True).check()
    window.sees("h1", "設定")
    page.reload()
    window.sees("h1", "設定")
    assert page.evaluate("[document.documentElement.dataset.theme, document.documentElement.lang]") == ["dark", "ja"]
    window.go(f"/runs/{number}")
    expect(window.find(".fact time").first).to_contain_text("UTC")
    window.find('[data-switch="language"]').click()
    expect(window.find("h1 .status")).to_have_text("Completed")


def test_the_effective_configuration_is_shown_without_secrets(opened: Open, own_scene: Callable[..., Scene]) -> None:
    variables = {"TSUZUKI_DEFAULT_TAG": "gpu", "TSUZUKI_NATS_PASSWORD": "hush-hush"}
    scene = own_scene("--data-dir", "elsewhere", workers=0, **variables)
    window = opened(scene.url)
    window.go("/settings")
    window.page.get_by_label("Only what is set").check()
    expect(window.find('tr[data-row="TSUZUKI_DEFAULT_TAG"]')).to_contain_text("gpu")
    expect(window.find('tr[data-row="TSUZUKI_NATS_PASSWORD"]')).to_contain_text("••••••")
    assert "hush-hush" not in window.page.content()
    assert "hush-hush" not in scene.client.get("/config").text
    window.go("/runs")
    window.sees(".blank-title", "No runs yet")
    window.go("/workers")
    window.sees(".blank-title", "No workers")
    expect(window.find(".command code")).to_have_text("tsuzuki worker --flows FILE.py --data-dir elsewhere")
    window.go("/letters")
    window.sees(".blank-title", "No dead letters")
    window.go("/metrics")
    window.sees(".blank-title", "Nothing happened")
    window.go("/start")
    window.sees(".blank-title", "No flow is known")
    window.go("/nowhere")
    window.sees(".blank-title", "There is no such page")


def test_a_key_is_asked_for_kept_for_the_session_and_refused_when_wrong(
    opened: Open, own_scene: Callable[..., Scene]
) -> None:
    scene = own_scene(workers=0, TSUZUKI_HTTP_AUTH="api_key")
    keys = scene.room.start("keys", "create", "--tenant", "lab")
    assert keys.ended() == 0
    key = next(word for word in keys.out.read_text().split() if word.startswith("tsz_"))
    window = opened(scene.url)
    window.expected += ["401", "403"]
    late = Held(window, "**/apps", 1)
    window.go("/runs")
    window.sees("h1", "This gateway asks for a key")
    window.page.get_by_label("API key").fill("tsz_wrong")
    window.page.get_by_role("button", name="Use this key").click()
    window.sees("h1", "This key is refused")
    window.page.get_by_label("API key").fill(key)
    window.page.get_by_role("button", name="Use this key").click()
    window.sees(".blank-title", "No runs yet")
    with window.page.expect_response("**/apps") as refused:
        late.let_go()  # what was asked before there was a key says nothing of it
    assert refused.value.status == 401
    answer = scene.client.post("/runs", json={"flow_name": "report"}, headers={"X-API-Key": key})
    number = answer.json()["number"]
    expect(window.row(number)).to_contain_text("Waiting")
    window.find(".run-name").click()
    window.sees('.connection[data-link="live"]')
    window.page.reload()
    window.sees('.connection[data-link="live"]')
    assert key not in window.page.evaluate("JSON.stringify(localStorage)")
    assert key not in window.page.content()
    window.go("/settings")
    window.page.get_by_role("button", name="Forget").click()
    window.sees("h1", "This gateway asks for a key")
