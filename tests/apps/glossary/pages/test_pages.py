"""The pages as people use them: from a project without documents to a refined glossary, in two languages."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.apps.glossary.sample_texts import SAMPLES
from tests.dashboard.browsing import PATIENCE, Held, Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tests.dashboard.test_safety import serious
from tsuzuki.apps import glossary

PAGES = Path(glossary.__file__).parent / "pages"
HOSTILE = '<img src=x onerror="alert(1)">'
LONG = 60_000  # milliseconds


def test_words_have_the_same_keys_in_both_languages() -> None:
    english, japanese = [
        re.findall(r'"(glossary\.[\w.]+)":', part) for part in (PAGES / "words.js").read_text().split("ja: {")
    ]
    assert sorted(english) == sorted(set(japanese))
    modules = "".join(file.read_text() for file in PAGES.glob("*.js") if file.name != "words.js")
    assert set(re.findall(r't\("(glossary\.[\w.]+)"', modules)) <= set(english)


def _completed(window: Window, run: int) -> None:
    expect(window.find(f'[data-run="{run}"] [data-state="COMPLETED"]')).to_be_visible(timeout=LONG)


def _keeps_lists(window: Window) -> None:
    page = window.page
    page.locator('[data-tab="terms"]').click()
    notes = page.get_by_label("Notes drone", exact=True)
    notes.fill("flies late")
    expect(window.find(".glossary-notes small", "Saved")).to_be_visible()
    page.get_by_label("Exclude bee bread", exact=True).click()
    expect(page.get_by_label("Notes bee bread", exact=True)).to_have_count(0)
    page.locator('[data-tab="excluded"]').click()
    expect(window.find("tr", "bee bread")).to_contain_text("a person")
    page.locator('[data-tab="required"]').click()
    page.get_by_label("New term").fill("royal jelly")
    page.get_by_role("button", name="Require").click()
    expect(window.find("tr", "royal jelly")).to_be_visible()
    page.locator('[data-tab="synonyms"]').click()
    page.get_by_label("Term to be defined").fill("queen bee")
    page.get_by_label("Synonyms", exact=True).last.fill("queen, the mother")
    page.get_by_role("button", name="Make a group").click()
    expect(window.find(".card h2", "queen bee")).to_be_visible()


def _edits_and_asks_again(window: Window) -> None:
    page = window.page
    page.locator('[data-tab="provisional"]').click()
    page.get_by_label("Edit drone", exact=True).click()
    page.get_by_label("Definition drone", exact=True).fill(f"A he bee {HOSTILE}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(window.find('tr[data-row="drone"]')).to_contain_text(f"A he bee {HOSTILE}")
    page.get_by_label("Define again drone", exact=True).click()
    expect(window.find('tr[data-row="drone"]')).to_contain_text("male bee")


def _takes_results_away(window: Window) -> None:
    page = window.page
    page.locator('[data-tab="issues"]').click()
    page.get_by_role("button", name="contradiction").click()
    window.sees(".blank-title", "No issues")
    page.locator('[data-tab="refined"]').click()
    expect(window.find('tr[data-row="drone"]')).to_be_visible()
    window.sees('[data-asked="offline"]', "No language model is asked")
    page.get_by_label("Edit drone", exact=True).click()
    page.get_by_label("Definition drone", exact=True).fill("A male bee, signed off")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(window.find('tr[data-row="drone"]')).to_contain_text("yours")
    with page.expect_download() as download:
        page.get_by_role("button", name="Markdown").click()
    assert "A male bee, signed off" in download.value.path().read_text()


def _looks_at_a_document(window: Window) -> None:
    page = window.page
    page.locator('[data-tab="files"]').click()
    page.get_by_role("link", name="hive.md").click()
    line = window.find('[data-line="1"]')
    expect(line).to_contain_text(f"𠮷 {HOSTILE} The drone.")
    line.get_by_role("link", name="drone").click()
    card = window.find("dialog")
    expect(card).to_contain_text("flies late")
    expect(card).to_contain_text(f"line 1, column {len(f'𠮷 {HOSTILE} The ') + 1}")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)


def _keeps_nobody_out(window: Window) -> None:
    """On every page, wide and narrow: texts stay texts, axe finds nothing serious, nothing is wider than the window."""
    at = "/apps/glossary/projects/1"
    tabs = ["files", "terms", "terms?list=excluded", "synonyms", "provisional", "issues", "refined", "runs", "settings"]
    for width in (1280, 375):
        window.page.set_viewport_size({"width": width, "height": 860})
        for place in ("/apps/glossary", f"{at}/files/1", f"{at}/files/1?term=drone", *(f"{at}/{tab}" for tab in tabs)):
            window.go(place)
            window.sees("h1", "hive" if "files/1" in place else None)
            window.gone(".loading")
            assert serious(window) == [], place
            assert window.find("main img").count() == 0, place
            assert not window.page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"), place
    window.page.set_viewport_size({"width": 1280, "height": 860})


def _opens_a_log_at_its_end(window: Window) -> None:
    """Also where all its lines and its end come at once."""
    page = window.page
    page.route("**/logs*", lambda route: route.fulfill(content_type="text/event-stream", body=_log_of(300)))
    page.locator('[data-tab="runs"]').click()
    window.find("tbody tr button").first.click()
    expect(window.find("dialog .log-frame")).to_contain_text("line 299.")
    page.unroute("**/logs*")
    page.keyboard.press("Escape")


def _log_of(lines: int) -> str:
    said = [
        f"event: log\ndata: {json.dumps({'level': 'info', 'message': f'line {each}.'})}\n\n" for each in range(lines)
    ]
    return "".join([*said, 'event: complete\ndata: {"complete": true}\n\n'])


def _copies_and_deletes(window: Window) -> None:
    page = window.page
    window.go("/apps/glossary")
    row = window.find("tr", "bees")
    row.get_by_label("Copy").click()
    page.get_by_label("New name").fill("copy")
    page.get_by_role("dialog").get_by_role("button", name="Copy").click()
    page.get_by_label("Delete copy").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="copy", exact=True)).to_have_count(0)


@pytest.mark.timeout(300)
def test_from_documents_to_a_refined_glossary(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    expect.set_options(timeout=PATIENCE)
    window = opened(own_scene().url)
    page = window.page
    window.go("/apps/glossary")
    window.sees(".blank-title", "No project yet")
    page.get_by_label("Name", exact=True).fill(f"bees {HOSTILE}")
    page.get_by_role("button", name="Create").click()
    window.sees(".blank-title", "No documents yet")

    hive = (SAMPLES / "en/01-hive.md").read_text()
    first = tmp_path / "hive.md"
    first.write_text(f"𠮷 {HOSTILE} The drone.\n\n{hive}")
    page.locator('input[type=file][aria-label="Choose files"]').set_input_files([first, SAMPLES / "en/02-year.md"])
    expect(page.get_by_role("link", name="02-year.md")).to_be_visible()
    _completed(window, 1)

    _keeps_lists(window)
    page.get_by_role("button", name="Run", exact=True).click()
    _completed(window, 2)
    expect(window.find(".glossary-step[data-step-state=done]")).to_have_count(3)
    expect(window.find(".log-frame")).to_contain_text("Define:")
    _opens_a_log_at_its_end(window)
    _edits_and_asks_again(window)
    _takes_results_away(window)
    _looks_at_a_document(window)
    _keeps_nobody_out(window)
    _copies_and_deletes(window)


@pytest.mark.timeout(300)
def test_it_speaks_japanese(opened: Open, own_scene: Callable[..., Scene]) -> None:
    expect.set_options(timeout=PATIENCE)
    window = opened(own_scene().url, locale="ja-JP")
    page = window.page
    window.go("/apps/glossary")
    window.sees(".blank-title", "プロジェクトはまだありません")
    page.get_by_label("名前", exact=True).fill("酒")
    page.get_by_role("button", name="作成").click()
    (text,) = sorted((SAMPLES / "ja").glob("01*.md"))
    page.locator('input[type=file][aria-label="ファイルを選択"]').set_input_files(text)
    _completed(window, 1)
    page.locator('[data-tab="terms"]').click()
    expect(page.get_by_label("メモ 精米歩合", exact=True)).to_be_visible()
    page.get_by_role("button", name="実行", exact=True).click()
    _completed(window, 2)
    expect(window.find(".log-frame")).to_contain_text("最終用語集 ")
    page.locator('[data-tab="provisional"]').click()
    page.get_by_label("編集 精米", exact=True).press("Enter")
    expect(page.get_by_label("定義 精米", exact=True)).to_be_focused()
    page.get_by_label("定義 精米", exact=True).fill("米を磨くこと")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("編集 精米", exact=True)).to_be_focused()
    expect(window.find('tr[data-row="精米"]')).to_contain_text("米を磨くこと")
    page.locator('[data-tab="refined"]').click()
    expect(window.find('tr[data-row="精米"]')).to_be_visible()
    page.locator('[data-tab="files"]').click()
    page.get_by_role("link", name=text.name).click()
    window.find('[data-line="7"]').get_by_role("link", name="精米歩合").first.click()
    expect(window.find("dialog")).to_contain_text("7 行")
    page.keyboard.press("Escape")
    _shows_what_a_stopped_run_has(window)


def _shows_what_a_stopped_run_has(window: Window) -> None:
    page = window.page
    send = """([method, path, body]) =>
      fetch(path, {method, headers: {'content-type': 'application/json'}, body: JSON.stringify(body)})"""
    page.evaluate(f"each => ({send})(each).then(() => null)", ["PATCH", "/api/projects/1", {"llm_provider": "gemini"}])
    page.evaluate(f"each => ({send})(each).then(() => null)", ["POST", "/api/projects", {"name": "空"}])
    window.go("/apps/glossary/projects/1/provisional")
    page.get_by_role("button", name="実行", exact=True).click()
    expect(window.find('[data-run="3"] [data-state="FAILED"]')).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="途中の結果").click()
    expect(window.find("dialog")).to_contain_text("まだ定義はありません。")
    window.go("/apps/glossary/projects/2/files")
    page.get_by_role("button", name="実行", exact=True).click()
    expect(window.find(".notice")).to_contain_text("先に文書を追加してください", timeout=LONG)


DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  document.querySelector('[data-drop]').dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true}));
}"""


def test_refusals_are_told_and_a_run_is_stopped(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    window = opened(own_scene(workers=0).url)
    window.expected += ["400", "409"]
    page = window.page
    window.go("/apps/glossary")
    page.get_by_label("Name", exact=True).fill("one")
    page.get_by_role("button", name="Create").click()
    window.sees("[data-drop]")
    window.go("/apps/glossary")
    page.get_by_label("Name", exact=True).fill("one")
    page.get_by_role("button", name="Create").click()
    window.sees(".note.tone-bad")
    page.get_by_role("link", name="one", exact=True).click()
    window.sees("[data-drop]")
    page.evaluate(DROP, ["photo.png", "no document"])
    window.sees(".note.tone-bad", "photo.png")
    _takes_more(window)
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"\xff\xfe\x00")
    page.locator('input[type=file][aria-label="Choose files"]').set_input_files(broken)
    window.sees(".note", "neither UTF-8 nor Shift_JIS")
    expect(window.find("tbody tr")).to_have_count(0)
    _takes_more(window)
    many = [tmp_path / f"{number}.md" for number in range(3)]
    for file in many:
        file.write_text("A term is a word.\n" * 100_000)
    with page.expect_response(lambda answer: "extract=true" in answer.url) as last:
        page.locator('input[type=file][aria-label="Choose files"]').set_input_files([broken, *many])
    assert last.value.json()["extract_started"], (
        "more than a request takes is sent in parts, and the last looks for terms"
    )
    expect(window.find("tbody tr")).to_have_count(3)
    _takes_more(window)
    _what_cannot_be_added_costs_no_other(window, many[0])
    _takes_more(window)
    page.evaluate(DROP, ["dropped.md", "A term is a word."])
    expect(page.get_by_role("link", name="dropped.md")).to_be_visible()
    expect(window.find('[data-run="1"] [data-state="PENDING"]')).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(window.find('[data-run="1"] [data-state="CANCELLED"]')).to_be_visible()
    expect(window.find("main .notice")).to_contain_text("5")
    page.get_by_role("button", name="find terms").click()
    expect(window.find('[data-run="2"] [data-state="PENDING"]')).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(window.find('[data-run="2"] [data-state="CANCELLED"]')).to_be_visible()
    _keeps_settings(window)
    _stands_where_the_gateway_lists_it(window)


def _keeps_settings(window: Window) -> None:
    page = window.page
    page.locator('[data-tab="settings"]').click()
    page.get_by_label("Model", exact=True).fill("small")
    page.get_by_role("button", name="Save").click()
    window.sees(".note", "Saved")
    page.locator('[data-tab="runs"]').click()
    expect(window.find("tbody tr").last).to_contain_text("new documents")
    page.reload()
    page.locator('[data-tab="settings"]').click()
    expect(page.get_by_label("Model", exact=True)).to_have_value("small")


def _takes_more(window: Window) -> None:
    """Waits until what was added before is through: documents are seen before that, and others not taken."""
    expect(window.find("[data-drop]")).to_have_attribute("aria-busy", "false")


def _what_cannot_be_added_costs_no_other(window: Window, there: Path) -> None:
    page = window.page
    others = [there.with_name(name) for name in ("note.pdf", "CON.md", "4.md")]
    for file in others:
        file.write_text("A term is a word.")
    page.locator('input[type=file][aria-label="Choose files"]').set_input_files([there, *others])
    note = page.locator(".note.tone-bad", has_text="CON.md (")
    expect(note).to_contain_text("0.md (a document of that name")
    expect(note).to_contain_text("note.pdf (only .txt")
    expect(window.find("tbody tr")).to_have_count(4)


def _stands_where_the_gateway_lists_it(window: Window) -> None:
    page = window.page
    listed = [each for each in page.evaluate("() => fetch('/apps').then((answer) => answer.json())") if each["module"]]
    window.go("/workers")
    first = Held(window, f"**{listed[0]['module']}*")
    page.reload()
    links = page.locator('nav a[href*="/apps/"]')
    expect(links).to_have_count(len(listed) - 1)
    first.let_go()
    expect(links).to_have_count(len(listed))
    order = [str(link.get_attribute("href")).rsplit("/", 1)[-1] for link in links.all()]
    assert order == [each["name"] for each in listed], "whichever module came first"
