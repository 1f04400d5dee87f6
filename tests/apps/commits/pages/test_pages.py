"""The pages as people use them: from the first connection to the statistics, in two languages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.apps.commits.repositories import eventful
from tests.dashboard.browsing import PATIENCE
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tsuzuki.apps import commits

WORDS = (Path(commits.__file__).parent / "pages/words.js").read_text()


def test_words_have_the_same_keys_in_both_languages() -> None:
    english, japanese = [re.findall(r'"(commits\.[\w.]+)":', part) for part in WORDS.split("ja: {")]
    assert sorted(english) == sorted(set(japanese))


@pytest.mark.timeout(240)
def test_from_the_first_connection_to_the_statistics(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    made = eventful(tmp_path / "eventful")
    made.git("branch", "old")
    expect.set_options(timeout=PATIENCE)
    window = opened(own_scene().url)
    page = window.page
    window.go("/apps/commits")
    window.sees(".blank-title", "No bulk run yet")
    page.get_by_role("link", name="Sources").click()
    page.get_by_label("Address").fill(str(made.path))
    page.get_by_role("button", name="Connect").click()
    page.get_by_role("button", name="Fetch projects").click()
    page.get_by_role("link", name="eventful").click()
    window.sees("tr", "feature/寿司")
    page.get_by_role("button", name="Collect all branches").click()
    expect(window.find('tr[data-row="main"]')).to_contain_text(str(len(made.logged())))
    expect(window.find('tr[data-row="old"]').get_by_role("button", name="Remove")).to_be_visible()
    window.sees("h2", "Collected")
    window.expected.append("502")  # the branches cannot be asked for meanwhile
    away = made.path.rename(tmp_path / "away")
    window.find('tr[data-row="main"]').get_by_role("button", name="Collect").click()
    expect(page.get_by_role("alert").filter(has_text="main")).to_contain_text("the repository cannot be read")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("the repository cannot be read")
    window.find('tr[data-row="release/1.0#hot"]').get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(window.find('tr[data-row="release/1.0#hot"]')).to_have_count(0)
    away.rename(made.path)
    made.git("branch", "-D", "old")
    window.go("/apps/commits")
    page.get_by_role("button", name="Collect everything new").click()
    failed = window.find("tr", "old")
    expect(failed).to_contain_text("the repository has no such branch")
    expect(failed).not_to_contain_text("見つかりません")
    made.git("branch", "old")
    page.get_by_role("button", name="Retry the failed").click()
    expect(window.find("tr", "old").first).to_contain_text("succeeded")
    window.sees("h2", "History")
    window.go("/apps/commits/statistics")
    expect(window.find("svg[role=img]")).to_be_visible()
    page.get_by_role("button", name="山田 純").click()
    expect(window.find("tbody tr", "Ada")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="山田 純")).to_have_attribute("aria-pressed", "true")


def test_every_tab_leads_to_its_page(opened: Open, own_scene: Callable[..., Scene]) -> None:
    window = opened(own_scene(workers=0).url)
    window.go("/apps/commits/sources")
    window.page.get_by_role("link", name="Bulk run").click()
    window.sees(".blank-title", "No bulk run yet")


def test_it_speaks_japanese(opened: Open, own_scene: Callable[..., Scene]) -> None:
    window = opened(own_scene(workers=0).url, locale="ja-JP")
    window.go("/apps/commits")
    window.sees(".blank-title", "一括収集はまだありません")
    window.page.get_by_role("button", name="新しいコミットをすべて収集").click()
    window.sees(".note", "収集対象が見つかりません")
    window.expected.append("400")
    window.page.route("**/api/commits/bulk*", lambda route: route.abort())
    window.page.get_by_role("button", name="新しいコミットをすべて収集").click()
    window.sees(".note", "ゲートウェイに接続できません")
    window.expected.append("ERR_FAILED")
