"""Runs that nobody goes on with: interrupted, without their worker, without any; and many tabs at once."""

import signal
from collections.abc import Callable

from playwright.sync_api import expect

from tests.dashboard.browsing import Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene

TABS = 12


def test_a_run_whose_process_was_killed_is_interrupted_and_can_be_resumed(
    opened: Open, own_scene: Callable[..., Scene]
) -> None:
    scene = own_scene(workers=0)
    script = scene.room.start("run", "flows.py:waits", "-p", "name=script")
    scene.until(lambda: scene.get("/runs", status="RUNNING"), "the script runs")
    number = scene.get("/runs")[0]["number"]
    window = opened(scene.url)
    window.expected.append("409")
    window.go("/runs")
    window.row(number).locator("a").first.click()
    expect(window.find("h1 .status")).to_have_text("Running")
    script.send(signal.SIGKILL)
    script.ended()
    expect(window.find("h1 .status")).to_have_text("Interrupted")
    expect(window.find(".connection")).to_have_attribute("data-link", "settled")
    expect(window.find('[data-task="gate"] [title="Interrupted"]')).to_have_count(1)
    expect(window.find("[data-standing] code")).to_contain_text(f"tsuzuki resume {number}")
    assert scene.run(number)["interrupted"]
    window.find('[data-act="resume"]').click()
    button = window.find("dialog").get_by_role("button", name="Resume run")
    button.click()
    window.sees("dialog .notice .detail")  # nobody is there to take it
    scene.room.worker()
    button.click()
    expect(window.find("h1 .status")).to_have_text("Running")
    scene.open_gate("script")
    expect(window.find("h1 .status")).to_have_text("Completed")


def test_a_run_without_its_worker_says_so_and_so_does_one_that_nobody_takes(
    opened: Open, own_scene: Callable[..., Scene]
) -> None:
    scene = own_scene(workers=0)
    worker = scene.room.worker()
    number = scene.waiting("orphan")
    window = opened(scene.url)
    window.go(f"/runs/{number}")
    window.sees('.connection[data-link="live"]')
    worker.send(signal.SIGKILL)
    worker.ended()
    window.sees("[data-standing]", "is gone")
    expect(window.find(".connection")).to_have_attribute("data-link", "settled")
    waits = scene.post("/runs", {"flow_name": "waits", "params": {}, "tag": "gpu"})["number"]
    window.go(f"/runs/{waits}")
    window.sees("[data-standing]", "No living worker takes runs of the tag gpu")
    expect(window.find("[data-standing] code")).to_have_text("tsuzuki worker --flows FILE.py --tags gpu")


def test_twelve_tabs_with_runs_under_way_are_live_at_once(window: Window, scene: Scene) -> None:
    second = scene.room.worker()  # one takes ten at a time
    numbers = [scene.waiting(f"tab{place}") for place in range(TABS)]
    pages = [window.context.new_page() for _ in numbers]
    for page, number in zip(pages, numbers, strict=True):
        page.goto(f"{scene.url}/#/runs/{number}")
        expect(page.locator("h1 .status")).to_have_text("Running")
        expect(page.locator(".connection")).to_have_attribute("data-link", "live")
    for place, page in enumerate(pages):
        scene.open_gate(f"tab{place}")
        expect(page.locator("h1 .status")).to_have_text("Completed")
        page.close()
    second.send(signal.SIGTERM)
    second.ended()
