"""The list of runs: live, filtered by its address, several at once; and how a run is started."""

import re

from playwright.sync_api import expect

from tests.dashboard.browsing import Window
from tests.dashboard.scenes import WORKFLOW, Scene

NEVER = """
  const soon = window.setTimeout;
  window.setTimeout = (work, wait, ...more) => (wait >= 4000 ? 0 : soon(work, wait, ...more));
"""
"""What is to be done in four seconds, as counting is, is not done at all."""


def test_a_new_run_appears_and_changes_by_itself(window: Window, scene: Scene) -> None:
    window.go("/runs")
    window.sees(".states")
    loads: list[str] = []
    window.page.on("request", lambda request: loads.append(request.url) if request.is_navigation_request() else None)
    number = scene.waiting("list")
    expect(window.row(number)).to_contain_text("Running")
    scene.open_gate("list")
    expect(window.row(number)).to_contain_text("Completed")
    assert not loads


def test_a_run_under_way_shows_how_far_it_is_and_when_it_may_end(window: Window, scene: Scene) -> None:
    number = scene.submit("crawl", site="slow", pages=4000, seconds=0.4)
    window.go("/runs?flow=crawl&status=RUNNING")
    row = window.row(number)
    expect(row.locator("[role=progressbar]")).to_be_visible()
    expect(row).to_contain_text(re.compile(r"\d+ / 4,000 .*left"))
    scene.post(f"/runs/{number}/cancel")
    expect(row).to_have_count(0)  # it is no longer running, and leaves by itself


def test_counts_of_states_are_the_way_to_them(window: Window, scene: Scene) -> None:
    number = scene.submit("nightly")
    scene.ended(number)
    window.go("/runs")
    window.find('.states [data-status="FAILED"]').click()
    window.is_at("#/runs?status=FAILED")
    expect(window.row(number)).to_contain_text("the disk is full")
    expect(window.find(".table tbody")).not_to_contain_text("Completed")
    figure = window.find('.states [data-status="FAILED"] b')
    window.until(lambda: figure.inner_text() == str(scene.get("/overview")["runs"]["FAILED"]), "they are counted")


def test_completed_runs_with_failures_are_told_apart_and_filtered(window: Window, scene: Scene) -> None:
    tags = ["partly"]
    partly, whole = scene.submit("crawl", tags=tags, site="x", pages=10), scene.submit("report", tags=tags, name="x")
    failed = scene.submit("nightly", tags=tags)
    for number in (partly, whole, failed):
        scene.ended(number)
    window.go("/runs?label=partly")
    state = window.row(partly).locator(".status")
    expect(state).to_have_text("Completed with failures")
    expect(state).to_have_class(re.compile("tone-warn"))
    expect(window.row(whole).locator(".status")).to_have_text("Completed")
    chip = window.find('.states [data-status="COMPLETED_WITH_FAILURES"]')
    expect(chip.locator("b")).to_have_text("1")
    expect(window.find('.states [data-status="COMPLETED"] b')).to_have_text("2")
    expect(window.find('.states [data-status="ALL"] b')).to_have_text("3")
    chip.click()
    expect(window.find(".table tbody tr")).to_have_count(1)
    expect(window.row(partly)).to_be_visible()
    expect(window.find(".total")).to_have_text("1 of 1 shown")
    late = scene.submit("crawl", tags=tags, site="late", pages=10)
    scene.ended(late)
    expect(window.row(late)).to_be_visible()  # it comes by itself


def test_counts_of_states_never_read_zero_or_more(window: Window) -> None:
    runs = {"PENDING": 0, "RUNNING": 0, "CANCELLING": 0, "COMPLETED": 1000, "FAILED": 0, "CANCELLED": 0}
    answer = {"runs": runs, "at_least": True, "more": ["COMPLETED"]}
    window.page.route("**/runs/counts?*", lambda route: route.fulfill(json=answer))
    window.go("/runs?flow=many")
    expect(window.find('.states [data-status="COMPLETED"] b')).to_have_text("1,000+")
    expect(window.find('.states [data-status="FAILED"] b')).to_have_text("0")
    assert "0+" not in window.find(".states").inner_text().replace("1,000+", "")


def test_filters_are_kept_in_the_address(window: Window, scene: Scene) -> None:
    wanted = scene.submit("report", tags=["blue", "june"], name="wanted")
    other = scene.submit("report", tags=["red"], name="other")
    scene.ended(wanted)
    scene.ended(other)
    window.go("/runs")
    window.page.get_by_label("Label", exact=True).fill("june")
    window.page.get_by_label("Flow", exact=True).fill("report")
    expect(window.row(other)).to_have_count(0)
    window.is_at("#/runs?label=june&flow=report")  # what is typed counts a little later
    window.page.get_by_label("Changed within").select_option("1h")
    window.is_at("#/runs?label=june&flow=report&since=1h")
    window.page.reload()
    expect(window.row(wanted)).to_be_visible()
    expect(window.row(other)).to_have_count(0)
    assert window.page.get_by_label("Label", exact=True).input_value() == "june"
    window.page.get_by_role("searchbox").fill("no such text")
    window.sees(".blank-title", "No run fits")
    window.find(".blank a", "Clear filters").click()
    expect(window.row(other)).to_be_visible()


def test_older_runs_are_shown_when_asked_for(window: Window, scene: Scene) -> None:
    numbers = [scene.submit("report", tags=["pages"], name=f"{place}") for place in range(55)]
    for number in numbers:
        scene.ended(number)  # one that changes comes to the top
    window.go("/runs?label=pages")
    expect(window.find(".table tbody tr")).to_have_count(50)
    window.page.get_by_label("Choose all").check()
    window.find('[data-bulk="everything"]', "Choose all 55 that fit").click()
    expect(window.find(".bulk")).to_contain_text("55 chosen")
    expect(window.find(".table tbody tr")).to_have_count(55)


def test_several_runs_are_cancelled_resumed_and_deleted_after_a_preview(window: Window, scene: Scene) -> None:
    one, two = (scene.waiting(name, tags=["bulk"]) for name in ("bulk1", "bulk2"))
    ended = scene.submit("report", tags=["bulk"], name="bulk")
    scene.ended(ended)
    window.page.add_init_script(NEVER)  # runs are counted anew when they are acted on, not when it is time
    window.go("/runs?label=bulk")

    def act(verb: str) -> None:
        window.row(ended).wait_for()
        window.page.get_by_label("Choose all").check()
        window.find(f'[data-bulk="{verb}"]').click()

    act("cancel")
    dialog = window.find("dialog")
    expect(dialog).to_contain_text("2 will be cancelled")
    expect(dialog).to_contain_text("1 cannot be cancelled")
    dialog.get_by_label("Reason").fill("too dear")
    expect(dialog.locator("code").first).to_have_text(re.compile(r"tsuzuki cancel \d+ --reason 'too dear' --server "))
    dialog.get_by_role("button", name="Cancel 2 runs").click()
    for number in (one, two):
        scene.is_in(number, "CANCELLED")
        expect(window.row(number)).to_contain_text("Cancelled")
    assert scene.run(one)["cancel_reason"] == "too dear"

    act("resume")
    expect(dialog).to_contain_text("2 will go on")
    dialog.get_by_role("button", name="Resume 2 runs").click()
    expect(dialog).to_have_count(0)
    scene.open_gate("bulk1")
    scene.open_gate("bulk2")
    for number in (one, two):
        assert scene.ended(number) == "COMPLETED"
        expect(window.row(number)).to_contain_text("Completed")

    act("remove")
    dialog.get_by_role("button", name="Delete 3 runs").click()
    window.sees(".blank-title", "No run fits")
    expect(window.find('[data-status="ALL"] b')).to_have_text("0")
    assert scene.client.get(f"/runs/{one}").status_code == 404


def test_a_run_is_started_from_a_form_of_its_parameters(window: Window, scene: Scene) -> None:
    window.go("/start")
    window.find(".flow", "crawl").click()
    page = window.page
    assert page.get_by_label("pages").input_value() == "40"  # as the flow has it
    assert page.get_by_label("follow").is_checked()
    page.get_by_role("button", name="Start", exact=True).click()
    window.sees(".wrong-text", "This is needed.")
    page.get_by_label("site").fill("example")
    page.get_by_label("pages").fill("many")
    page.get_by_role("button", name="Start", exact=True).click()
    window.sees(".wrong-text", "A whole number is needed.")
    page.get_by_label("pages").fill("5")
    page.get_by_label("mode").select_option(label="thorough")
    page.get_by_label("skip").fill("a\nb c")
    expect(window.find(".command code")).to_contain_text("tsuzuki submit crawl --param site=example --param pages=5")
    page.get_by_text("Routing, labels, key, priority").click()
    page.get_by_label("Labels").fill("form, test")
    page.get_by_role("button", name="Start", exact=True).click()
    window.sees("h1", "crawl")
    number = int(re.findall(r"runs/(\d+)", page.url)[0])
    run = scene.run(number)
    assert run["params"] == {"site": "example", "pages": 5, "mode": "thorough", "skip": ["a", "b c"]}
    assert run["tags"] == ["form", "test"]


def test_a_flow_whose_tag_no_worker_serves_says_so_before_it_is_started(window: Window) -> None:
    window.go("/start")
    expect(window.find(".flow", "paint")).to_contain_text("no worker for gpu")
    expect(window.find(".flow", "nightly")).not_to_contain_text("no worker")
    window.find(".flow", "paint").click()
    expect(window.find(".card-head .label")).to_have_text("gpu")
    told = window.find("[data-unserved]")
    expect(told).to_contain_text("No worker serves the tag gpu.")
    expect(told.locator("code")).to_contain_text("tsuzuki worker --flows FILE.py --tags gpu")
    window.page.get_by_text("Routing, labels, key, priority").click()
    tag = window.page.get_by_label("Tag", exact=True)
    assert tag.input_value() == "gpu"
    tag.fill("default")
    expect(told).to_have_count(0)
    expect(window.find(".card-head .label")).to_have_text("default")


def test_a_key_that_is_held_is_told_of_with_the_run_that_holds_it(window: Window, scene: Scene) -> None:
    holder = scene.post("/runs", {"flow_name": "waits", "params": {"name": "held"}, "key": "only one"})["number"]
    window.expected.append("409")
    window.go("/start?flow=waits")
    window.page.get_by_text("Routing, labels, key, priority").click()
    window.page.get_by_label("Key", exact=True).fill("only one")
    window.page.get_by_role("button", name="Start", exact=True).click()
    window.find(".notice a").click()
    window.sees("h1", f"#{holder}")
    scene.open_gate("held")
    scene.ended(holder)


def test_a_run_is_started_like_another_one(window: Window, scene: Scene) -> None:
    number = scene.submit("report", tags=["like"], name="twice", layout={"language": "en", "limit": 3})
    scene.ended(number)
    window.go(f"/runs/{number}")
    window.find('[data-act="like"]').click()
    window.sees("h1", f"like #{number}")
    assert window.page.get_by_label("name", exact=False).first.input_value() == "twice"
    window.page.get_by_role("button", name="Start", exact=True).click()
    window.page.wait_for_url(re.compile(r"runs/\d+$"))
    again = int(window.page.url.rpartition("/")[2])
    assert again != number
    assert scene.run(again)["params"] == scene.run(number)["params"]
    assert scene.run(again)["tags"] == ["like"]


def test_params_with_parts_are_filled_in_by_fields_and_checked(window: Window, scene: Scene) -> None:
    window.expected.append("422")
    page, big = window.page, 2**63 - 1
    window.go("/start?flow=library")
    window.find('input[name="title"]').fill("Kokoro")
    page.get_by_role("button", name="Add to authors").click()
    window.find('input[name="name"]').fill("Sōseki")
    window.find('input[name="born"]').fill("1867-02-09")
    page.get_by_label("Type of shelf").select_option(label="Text")
    page.get_by_label("shelf", exact=True).fill("A3")
    page.get_by_role("button", name="Fill in weights").click()
    page.get_by_role("button", name="Add to weights").click()
    key, value = page.get_by_label("Key 1"), window.find(".entry-key + .field input")
    value.fill("0.4")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(key).to_have_attribute("aria-invalid", "true")
    expect(value).not_to_have_attribute("aria-invalid", "true")
    key.fill("paper")
    expect(key).not_to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("weights paper", exact=True)).to_have_value("0.4")
    window.find('input[name="due"]').fill("2026-02-28T10:00:00")
    page.get_by_label("Time zone").select_option("Z")
    window.find('input[name="number"]').fill(str(big))
    page.get_by_text("Routing, labels, key, priority").click()
    page.get_by_label("Priority").fill("high")
    page.get_by_role("button", name="Start", exact=True).click()
    window.sees(".wrong-text", "A whole number is needed.")
    page.get_by_label("Priority").fill("2")
    expect(window.find(".command code")).to_contain_text(f"--param number={big}")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(r"runs/\d+$"))
    number = int(page.url.rpartition("/")[2])
    book = {"title": "Kokoro", "authors": [{"name": "Sōseki", "born": "1867-02-09"}]}
    said = {"book": book, "shelf": "A3", "weights": {"paper": 0.4}, "due": "2026-02-28T10:00:00Z", "number": big}
    assert scene.run(number)["params"] == said
    scene.ended(number)
    window.go(f"/runs/{number}/params")
    expect(window.find(".value", "Result")).to_contain_text(str(big))
    expect(window.find(".command code")).to_contain_text(f"number={big}")
    window.go(f"/start?like={number}")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(r"runs/\d+$"))
    again = int(page.url.rpartition("/")[2])
    assert scene.run(again)["params"] == said
    window.go(f"/runs/{number}")
    window.find('.fall-row[data-task="one"]').get_by_role("button").click()
    expect(window.find(".fall-call")).to_contain_text([f'{{"number":{n}}} → {n}' for n in range(3)])
    refused = scene.client.post("/runs", json={"flow_name": "library", "params": said | {"due": "2026-02-30T10:00:00"}})
    assert refused.status_code == 422


def test_a_run_is_found_by_its_number_and_counts_follow_the_filters(window: Window, scene: Scene) -> None:
    number = scene.submit("report", tags=["counted"], name="found")
    failed = scene.submit("nightly", tags=["counted"])
    scene.ended(number)
    scene.ended(failed)
    window.go("/runs")
    window.page.get_by_role("searchbox").fill(f"#{number}")
    expect(window.find(".table tbody tr")).to_have_count(1)
    expect(window.row(number)).to_be_visible()
    window.page.go_back()
    window.is_at("#/runs")
    window.go("/runs?label=counted&status=FAILED")
    expect(window.find('.states [data-status="ALL"] b')).to_have_text("2")
    expect(window.find('.states [data-status="FAILED"] b')).to_have_text("1")
    expect(window.find(".total")).to_have_text("1 of 1 shown")
    window.find(".filters a", "Clear filters").click()
    expect(window.row(number)).to_be_visible()


def test_a_run_that_brings_its_flow_is_started_and_started_again(window: Window, scene: Scene) -> None:
    window.expected.append("422")
    window.go("/start")
    window.page.get_by_role("link", name="From YAML").click()
    window.page.get_by_label("Name of the flow").fill("written")
    text = window.page.get_by_label("YAML", exact=True)
    text.fill(WORKFLOW.replace("load >>", "lode >>"))
    window.page.get_by_role("button", name="Start", exact=True).click()
    window.sees(".notice li", "lode")
    said = window.find(".notice").inner_text()
    assert (said.count("lode"), said.lower().count("line 4")) == (1, 1)
    text.fill(WORKFLOW)
    expect(window.find(".command code")).to_contain_text("tsuzuki submit-yaml FILE.yaml --flow-name written")
    window.page.get_by_role("button", name="Start", exact=True).click()
    expect(window.find('.node[data-node="sum"]')).to_have_attribute("data-state", "SUCCEEDED")
    window.find('[data-act="like"]').click()
    expect(window.page.get_by_label("YAML", exact=True)).to_have_value(WORKFLOW)
    assert window.page.get_by_label("Name of the flow").input_value() == "written"


def test_a_slash_leads_to_the_search(window: Window) -> None:
    window.go("/runs")
    field = window.find(".filters [name=text]")
    field.wait_for()
    window.page.keyboard.press("/")
    expect(field).to_be_focused()
    assert field.input_value() == ""
