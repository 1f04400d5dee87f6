"""Hundreds of conversations that failed or were passed over: all can be seen, and told apart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.apps.notes.exports import claude, written
from tests.dashboard.browsing import PATIENCE
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene


def broken(number: int) -> dict[str, Any]:
    return {**claude(number, name="Same title"), "chat_messages": ""}


def test_all_that_failed_or_was_passed_over_is_there_page_by_page(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    empty, long = [{"sender": "human", "text": ""}], [{"sender": "human", "text": "word " * 6000}]
    failed = [broken(number) for number in range(120)]
    skipped = [claude(number, *empty) for number in range(200, 260)]
    done = [claude(number) for number in range(1000, 2010)]
    path = written(tmp_path / "export/conversations.json", [*failed, *skipped, claude(300, *long), *done])
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    session = scene.client.post("/api/notes/sessions", json={"export": str(path)}).json()["session_id"]
    window = opened(scene.url)
    window.go(f"/apps/notes/sessions/{session}")
    page = window.page
    expect(window.find('[data-state="PARTIAL"]')).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("done 1,010 · failed 120 · skipped 61 · pending 0 / 1,191")).to_be_visible()
    for title in ("Failed conversations (120)", "Skipped conversations (61)", "Notes (1,010)"):
        expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("button", name="Cut the long ones (1)")).to_be_visible()
    rows = page.get_by_role("table", name="Failed conversations").locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("conversations.json:1")
    expect(rows.first).to_contain_text("extract")
    pager = page.get_by_role("group", name="Failed conversations")
    for _ in range(2):
        pager.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(20)
    expect(rows.last).to_contain_text("conversations.json:120")
    expect(pager).to_contain_text("101–120 / 120")
    expect(pager.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("group", name="Skipped conversations").get_by_role("button", name="Next").click()
    expect(page.get_by_role("table", name="Skipped conversations").locator("tbody tr").last).to_contain_text("too long")


def test_the_notes_on_the_page_are_as_many_as_are_done(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(number) for number in range(300)])
    scene = own_scene(TSUZUKI_LLM_PROVIDER="offline")
    window = opened(scene.url)
    session = scene.client.post("/api/notes/sessions", json={"export": str(path)}).json()["session_id"]
    window.page.add_init_script(
        """new MutationObserver(() => {
          const text = document.body?.innerText ?? "";
          const told = /done (\\d+)/.exec(text), listed = /Notes \\((\\d+)\\)/.exec(text);
          if (told && listed) (window.seen ??= []).push([told[1], listed[1]]);
        }).observe(document, { subtree: true, childList: true, characterData: true });"""
    )
    window.go(f"/apps/notes/sessions/{session}")
    expect(window.find('[data-state="COMPLETED"]')).to_be_visible(timeout=PATIENCE)
    expect(window.page.get_by_role("heading", name="Notes (300)")).to_be_visible()
    seen = window.page.evaluate("window.seen")
    assert seen
    assert [pair for pair in seen if pair[0] != pair[1]] == []
