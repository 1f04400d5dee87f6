"""Both languages: equal dictionaries, every word there, and whose choice counts."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.dashboard.browsing import Stage, Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tsuzuki import facts
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.pages import FOLDER
from tsuzuki.settings import dashboard_language, effective

ENTRY = re.compile(r'^  ("[^"]+"): (".*"),$', re.MULTILINE)
HOLE = re.compile(r"\{(\w+)(?:\|[^}]*)?\}")
NO_WORDS = {"settings.language.ja", "settings.language.en", "settings.times.utc", "fact.id"}
COMPETING = {
    r"キャンセル": "中止",
    r"フォルダ(?!ー)": "フォルダー",
    r"アイテム": "項目",
    r"待機中": "実行待ち",
    r"やめる": "戻る, or what is ended",
    r"[ぁ-んァ-ー一-龠] ?wheel\b": "ホイール",
    r"ワーカー(?:が|は)いません": "ワーカーはありません",
}
"""Japanese terms that were used beside another one for the same thing."""
SCREENS = (
    "/runs",
    "/start",
    "/start?flow=crawl",
    "/workers?all=1",
    "/wheels",
    "/letters",
    "/metrics",
    "/settings",
    "/nowhere",
)


def words(language: str) -> dict[str, str]:
    text = (FOLDER / f"words/{language}.js").read_text(encoding="utf-8")
    return {json.loads(key): json.loads(value) for key, value in ENTRY.findall(text)}


def modules() -> list[Path]:
    return [path for path in FOLDER.rglob("*.js") if path.parent.name not in ("vendor", "words")]


def test_the_dictionaries_have_equal_keys_and_holes() -> None:
    english, japanese = words("en"), words("ja")
    assert list(english) == list(japanese)
    assert len(english) > 200
    for key, text in english.items():
        assert text, key
        assert set(HOLE.findall(japanese[key])) == set(HOLE.findall(text)), key
        assert key in NO_WORDS or re.search(r"[぀-ヿ一-鿿ー]", japanese[key]) or "{" in text, key


def test_every_word_that_is_asked_for_is_there_and_none_is_left_over() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in modules())
    known = set(words("en"))
    asked = set(re.findall(r'\bt\("([\w.]+)"', text)) | set(re.findall(r'\? "([a-z]+\.[\w.]+)" :', text))
    assert not asked - known
    made = re.findall(r"\b(?:t|word)\(`([^`]*)`", text) + re.findall(r"\? `(state\.[^`]*)`", text)
    patterns = [re.compile(re.sub(r"\\\$\\\{.*?\\\}", r"[\\w.-]+", re.escape(one))) for one in made]
    quoted = set(re.findall(r'"([a-zA-Z]+\.[\w.]+)"', text))
    left = {key for key in known - quoted if not any(one.fullmatch(key) for one in patterns)}
    assert not left


def test_every_setting_is_explained_in_both_languages() -> None:
    text = (FOLDER / "words/settings-ja.js").read_text(encoding="utf-8")
    told = set(re.findall(r"^  ([A-Z_]+): ", text, re.MULTILINE))
    assert {found.setting.name.removeprefix("TSUZUKI_") for found in effective()} == told
    values = set(re.findall(r'^  "(\(.*\))": "（', text, re.MULTILINE))
    assert {found.shown for found in effective() if found.shown.startswith("(") and found.origin == "default"} <= values


def test_every_fact_of_a_journal_has_words() -> None:
    kinds, left = set[str](), [facts.Fact]
    while left:
        below = left.pop().__subclasses__()
        left += below
        kinds |= {one.__name__ for one in below if one.__module__ == facts.__name__ and not one.__subclasses__()}
    assert {f"events.{kind}" for kind in kinds} <= words("en").keys()


def test_every_reason_of_a_dead_letter_has_words() -> None:
    source = Path(facts.__file__).parent
    said = "\n".join((source / name).read_text(encoding="utf-8") for name in ("facts.py", "lifecycle.py", "runner.py"))
    reasons = set(re.findall(r'reason(?:: str)? ?= ?"(\w+)"', said)) | set(re.findall(r'_failed\(.*, "(\w+)"\)', said))
    assert reasons >= {"execution_error", "flow_not_found", "invalid_job", "max_claims"}
    assert {f"reason.{reason}" for reason in reasons} <= words("en").keys()


def test_japanese_has_one_word_for_one_thing() -> None:
    root = Path(__file__).parents[2]
    pages = [*FOLDER.glob("words/*ja.js"), root / "README.ja.md"]
    texts = {path: path.read_text(encoding="utf-8") for path in [*pages, *root.glob("src/tsuzuki/apps/**/*.js")]}
    texts |= {path: path.read_text(encoding="utf-8") for path in root.glob("src/tsuzuki/apps/**/*.py")}
    competing = {term: [path.name for path, text in texts.items() if re.search(term, text)] for term in COMPETING}
    assert not {f"{term}, not {COMPETING[term]}": found for term, found in competing.items() if found}
    counted = [
        match[0]
        for path in pages
        for match in re.finditer(r"[一二三四五六七八九十]+(?:つ|台|行|回|分|秒)", texts[path])
    ]
    assert not counted, "numbers are written with digits"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_no_screen_shows_a_key_instead_of_words(scene: Scene, opened: Open, stage: Stage, language: str) -> None:
    number = scene.submit("crawl", site="words", pages=8)
    scene.ended(number)
    window: Window = opened(scene.url, locale=language)
    tabs = [f"/runs/{number}{tab}" for tab in ("", "/items", "/logs", "/events", "/params")]
    known = set(words("en"))
    window.go("/settings")
    window.page.get_by_label({"en": "English", "ja": "日本語"}[language], exact=True).check()
    for place in (*SCREENS, *tabs):
        window.go(place)
        window.sees("h1")
        window.gone(".loading")
        text = window.page.inner_text("body")
        assert not [word for word in re.findall(r"\b[a-z]+\.[a-zA-Z.]+\b", text) if word in known], place
        if language == "ja":
            assert re.search(r"[ぁ-んァ-ヶ一-龠]", window.page.inner_text("main")), place
        assert window.page.evaluate("document.documentElement.lang") == language


def test_the_setting_counts_more_than_the_locale_and_a_choice_most(
    opened: Open, own_scene: Callable[..., Scene]
) -> None:
    scene = own_scene("--dashboard-lang", "ja", workers=0)
    window = opened(scene.url)
    window.go("/runs")
    window.sees("h1", "実行")
    window.find('[data-switch="language"]').click()
    window.sees("h1", "Runs")
    window.page.reload()
    window.sees("h1", "Runs")
    expect(window.find("html")).to_have_attribute("lang", "en")


def test_the_locale_of_the_server_counts_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert dashboard_language("auto") == ""  # the browser's counts
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert dashboard_language("auto") == "ja"
    assert dashboard_language("en") == "en"
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert dashboard_language("auto") == ""
    assert Options().dashboard_lang == "auto"
