"""The pages as people use them: from an export to notes, what failed and why, in two languages."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.apps.notes.conftest import knowledge
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_sessions import failing
from tests.dashboard.browsing import PATIENCE, Held
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tests.llm.double import KEY, Double
from tsuzuki.apps import notes

WORDS = (Path(notes.__file__).parent / "pages/words.js").read_text()


def test_words_have_the_same_keys_in_both_languages() -> None:
    english, japanese = [re.findall(r'"(notes\.[\w.]+)":', part) for part in WORDS.split("ja: {")]
    assert sorted(english) == sorted(set(japanese))


@pytest.mark.timeout(240)
def test_from_an_export_to_notes_with_a_retry(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path, model: Double
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(number) for number in range(4)])
    model.answer = failing(2)
    expect.set_options(timeout=PATIENCE)
    at = {"TSUZUKI_LLM_PROVIDER": "openai", "TSUZUKI_LLM_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}
    scene = own_scene(**at)
    window = opened(scene.url)
    page = window.page
    window.go("/apps/notes")
    window.sees(".blank-title", "No session yet")
    page.get_by_label("File", exact=True).set_input_files(str(path))
    expect(page.get_by_label("Export", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Import").click()
    expect(window.find('[data-state="PARTIAL"]')).to_be_visible()
    failed = window.find("tr", "Otters 2")
    expect(failed).to_contain_text("no summary or no content")
    model.answer = knowledge
    looks = Held(window, "**/api/notes/sessions/*")
    page.get_by_role("button", name="Retry the failed").click()
    scene.until(
        lambda: scene.get("/api/notes/sessions")[0]["status"] == "COMPLETED", "it is over before the page looks"
    )
    looks.let_go()
    expect(window.find('[data-state="COMPLETED"]')).to_be_visible()
    page.get_by_role("button", name="Otters 2").click()
    expect(window.find("dialog pre")).to_contain_text('summary: "In short."')
    page.keyboard.press("Escape")
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download the notes").click()
    with zipfile.ZipFile(downloaded.value.path()) as archive:
        assert len(archive.namelist()) == 4
    window.go("/apps/notes")
    expect(window.find("tr", "conversations.json")).to_contain_text("completed")


def test_it_speaks_japanese(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    window = opened(own_scene(workers=0).url, locale="ja-JP")
    window.go("/apps/notes")
    window.sees(".blank-title", "セッションはまだありません")
    window.page.get_by_label("エクスポート", exact=True).fill(str(tmp_path / "export.txt"))
    (tmp_path / "export.txt").mkdir()
    (tmp_path / "export.txt/photo.png").touch()
    window.page.get_by_label("保存先", exact=True).fill(str(tmp_path))
    window.page.get_by_role("button", name="取り込む").click()
    window.sees(".note", "形式がわかりません")
    window.page.get_by_label("形式", exact=True).select_option("chatgpt")
    window.page.get_by_label("モデル", exact=True).fill("qwen")
    window.page.get_by_label("要約の翻訳", exact=True).select_option(label="日本語に翻訳")
    with window.page.expect_request(lambda asked: asked.method == "POST") as sent:  # the page also looks for sessions
        window.page.get_by_role("button", name="取り込む").click()
    body = sent.value.post_data_json
    assert body is not None
    assert (body["provider"], body["model"], body["translate"]) == ("chatgpt", "qwen", "ja")
    window.expected.append("400")


def test_a_model_without_a_provider_is_refused_in_words_of_the_reader(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(1)])
    scene = own_scene(workers=0, TSUZUKI_LLM_PROVIDER="offline")
    for locale, export, model, begin, words in (
        ("ja-JP", "エクスポート", "モデル", "取り込む", "プロバイダーも指定してください"),
        ("en-US", "Export", "Model", "Import", "Name its provider too"),
    ):
        window = opened(scene.url, locale=locale)
        window.expected.append("422")
        window.go("/apps/notes")
        window.page.get_by_label(export, exact=True).fill(str(path))
        window.page.get_by_label(model, exact=True).fill("qwen3:8b")
        window.page.get_by_role("button", name=begin).click()
        window.sees(".note", words)
    assert scene.get("/api/notes/sessions") == []


def test_an_export_that_breaks_off_offers_no_resume(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(1), claude(2)])
    path.write_text(path.read_text()[:-30])
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    answer = scene.client.post("/api/notes/sessions", json={"export": str(path)})
    window = opened(scene.url)
    window.go(f"/apps/notes/sessions/{answer.json()['session_id']}")
    expect(window.find('[data-state="CRASHED"]')).to_be_visible(timeout=PATIENCE)
    expect(window.page.get_by_text("Get a new export")).to_be_visible()
    expect(window.page.get_by_role("button", name="Go on")).to_have_count(0)


def test_a_long_title_hides_no_column(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    said = [{"sender": "human", "text": "word " * 6000}]
    long = [
        claude(1, name="otter " * 100),
        claude(2, *said, name="otter" * 100),
        {**claude(3, name="x" * 300), "chat_messages": ""},
    ]
    path = written(tmp_path / "export/conversations.json", long)
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    answer = scene.client.post("/api/notes/sessions", json={"export": str(path), "vault": str(tmp_path / "vault")})
    session = answer.json()["session_id"]
    window = opened(scene.url)
    window.go(f"/apps/notes/sessions/{session}")
    expect(window.page.locator(".table-frame")).to_have_count(3, timeout=PATIENCE)
    widths = window.page.locator(".table-frame").evaluate_all(
        "all => all.map(each => each.scrollWidth - each.clientWidth)"
    )
    assert widths == [0, 0, 0]
    window.sees(".notice", "1 conversations got no note")
    cut = window.page.get_by_role("button", name="Cut the long ones")
    assert cut.evaluate("button => button.offsetLeft - button.closest('.card').offsetLeft") > 8, (
        "it does not touch the edge"
    )


def test_with_keys_a_file_is_sent_and_no_path_is_offered(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(1)])
    scene = own_scene(workers=0, TSUZUKI_HTTP_AUTH="api_key", TSUZUKI_LLM_PROVIDER="offline")
    keys = scene.room.start("keys", "create", "--tenant", "lab")
    assert keys.ended() == 0
    key = next(word for word in keys.out.read_text().split() if word.startswith("tsz_"))
    window = opened(scene.url)
    window.expected.append("401")
    window.go("/apps/notes")
    window.page.get_by_label("API key").fill(key)
    with window.page.expect_response("**/api/notes/limits"):
        window.page.get_by_role("button", name="Use this key").click()
    begin = window.page.get_by_role("button", name="Import")
    expect(begin).to_be_disabled()
    for label in ("Export", "Vault"):
        expect(window.page.get_by_label(label, exact=True)).to_have_count(0)
    window.page.get_by_label("File", exact=True).set_input_files(str(path))
    begin.click()
    window.page.wait_for_url("**/sessions/20*")


def test_a_session_that_is_none_is_told_in_one_language(opened: Open, own_scene: Callable[..., Scene]) -> None:
    window = opened(own_scene(workers=0).url, locale="ja-JP")
    window.expected.append("422")
    window.go("/apps/notes/sessions/nonsense")
    told = window.find("main")
    expect(told).to_contain_text("セッション ID ではありません")
    expect(told).not_to_contain_text("is no session id")


@pytest.mark.parametrize(
    "words",
    [
        ("en-US", "Another vault or model", "Vault", "Go on"),
        ("ja-JP", "保存先やモデルを変更する", "保存先", "再開"),
    ],
    ids=["en", "ja"],
)
def test_who_named_a_wrong_model_names_another_and_goes_on(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path, model: Double, words: tuple[str, str, str, str]
) -> None:
    locale, fold, vault, resume = words
    path = written(tmp_path / "export/conversations.json", [claude(number) for number in range(6)])
    model.refusals = [(401, {})] * 100
    at = {"TSUZUKI_LLM_PROVIDER": "openai", "TSUZUKI_LLM_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}
    scene = own_scene(**at)
    body = {"export": str(path), "vault": str(tmp_path / "one"), "concurrency": 1}
    session = scene.client.post("/api/notes/sessions", json=body).json()["session_id"]
    window = opened(scene.url, locale=locale)
    window.go(f"/apps/notes/sessions/{session}")
    expect(window.find('[data-state="CRASHED"]')).to_be_visible(timeout=PATIENCE)
    window.page.get_by_text(fold, exact=True).click()
    window.page.get_by_label(vault, exact=True).fill(f' "{tmp_path / "two"}" ')
    window.page.locator(".fold select").select_option("offline")
    expect(window.page.locator(".fold input")).to_have_count(1)  # nobody is asked for rules
    window.page.get_by_role("button", name=resume, exact=True).click()
    expect(window.find('[data-state="COMPLETED"]')).to_be_visible(timeout=PATIENCE)
    assert len(list((tmp_path / "two").glob("*.md"))) == 6
    assert scene.get(f"/api/notes/sessions/{session}")["vault"] == str(tmp_path / "two")


def test_equal_exports_are_told_apart_and_a_preview_fills_its_drawer(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    said = [{"sender": "human", "text": f"Line {number} of a long note.\n"} for number in range(60)]
    path = written(tmp_path / "export/conversations.json", [claude(1, *said)])
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    ids = []
    for name in ("one", "two"):
        body = {"export": str(path), "vault": str(tmp_path / name)}
        ids.append(scene.client.post("/api/notes/sessions", json=body).json()["session_id"])
        scene.until(lambda: scene.get(f"/api/notes/sessions/{ids[-1]}")["status"] == "COMPLETED", "it is done")
    window = opened(scene.url)
    window.go("/apps/notes")
    for session, name in zip(ids, ("one", "two"), strict=True):
        expect(window.find("tr", session)).to_contain_text(str(tmp_path / name))
    window.page.get_by_role("link", name="conversations.json").first.click()
    window.page.get_by_role("button", name="Otters 1").click()
    text = window.find("dialog pre")
    expect(text).to_contain_text("title: Otters 1")
    below = text.evaluate("pre => innerHeight - pre.getBoundingClientRect().bottom")
    assert 0 <= below < 40, "it is as high as the drawer"
    window.page.keyboard.press("Escape")
    with window.page.expect_download() as downloaded:
        window.page.get_by_role("button", name="Download the notes").click()
    assert downloaded.value.suggested_filename == "conversations-notes.zip"


def test_the_link_above_a_session_leads_to_all_sessions(opened: Open, own_scene: Callable[..., Scene]) -> None:
    window = opened(own_scene(workers=0, TSUZUKI_LLM_PROVIDER="offline").url)
    window.expected.append("404")
    window.go("/apps/notes/sessions/20260101_000000")
    window.find("main a", "Notes").first.click()
    window.sees(".blank-title", "No session yet")


def test_notes_are_searched_by_title(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    many = [claude(number, name=f"Whales {number}") for number in range(120)]
    path = written(tmp_path / "export/conversations.json", [*many, claude(200, name="Sea otters")])
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    session = scene.client.post("/api/notes/sessions", json={"export": str(path)}).json()["session_id"]
    window = opened(scene.url)
    window.go(f"/apps/notes/sessions/{session}")
    expect(window.find('[data-state="COMPLETED"]')).to_be_visible(timeout=PATIENCE)
    rows = window.page.get_by_role("table", name="Notes").locator("tbody tr")
    window.page.get_by_label("Search by title").fill("OTTERS")
    expect(rows).to_have_count(1)
    window.page.get_by_label("Search by title").fill("whales")
    expect(rows).to_have_count(50)
    pager = window.page.get_by_role("group", name="Notes")
    expect(pager).to_contain_text("1–50 / 120")
    pager.get_by_role("button", name="Next").click()
    expect(pager).to_contain_text("51–100 / 120")
    window.page.get_by_label("Search by title").fill("nobody")
    window.sees(".blank-title", "No note has that title")
    expect(window.page.get_by_role("heading", name="Notes (121)")).to_be_visible()
