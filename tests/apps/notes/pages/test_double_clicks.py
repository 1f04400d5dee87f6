"""A double click does a thing once: sessions are paid for."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Request, expect

from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_sessions import failing
from tests.dashboard.browsing import Held, Window
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene
from tests.llm.double import KEY, Double


def posts(window: Window, end: str) -> list[str]:
    """Notes what the page sends to an address that ends so."""
    sent: list[str] = []

    def asked(request: Request) -> None:
        if request.method == "POST" and request.url.endswith(end):
            sent.append(request.url)

    window.page.on("request", asked)
    return sent


@pytest.mark.parametrize("by", ["file", "path"])
def test_a_double_click_imports_once(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path, by: str) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(1)])
    scene = own_scene(workers=0, TSUZUKI_LLM_PROVIDER="offline")
    window = opened(scene.url)
    window.go("/apps/notes")
    if by == "file":
        window.page.get_by_label("File", exact=True).set_input_files(str(path))
    else:
        window.page.get_by_label("Export", exact=True).fill(str(path))
    sent = posts(window, "/api/notes/sessions")
    button = window.page.locator("form button.primary")
    button.evaluate("button => { button.click(); button.click(); }")  # before anything is drawn
    window.page.wait_for_url("**/sessions/20*")
    assert len(sent) == 1
    assert len(scene.get("/api/notes/sessions")) == 1
    window.go("/apps/notes")
    expect(window.page.get_by_label("Export", exact=True)).to_have_value("")


def test_the_button_waits_for_the_answer(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    window = opened(own_scene(workers=0, TSUZUKI_LLM_PROVIDER="offline").url)
    window.expected.append("400")
    window.go("/apps/notes")
    window.page.get_by_label("Export", exact=True).fill(str(tmp_path / "gone.zip"))
    looks = Held(window, "**/api/notes/sessions")
    button = window.page.get_by_role("button", name="Import")
    button.dblclick()
    expect(button).to_be_disabled()
    looks.let_go()
    expect(button).to_be_enabled()
    expect(window.page.get_by_label("Export", exact=True)).to_have_value(str(tmp_path / "gone.zip"))


def test_a_session_is_told_once_to_go_on_and_once_to_stop(
    opened: Open, own_scene: Callable[..., Scene], tmp_path: Path, model: Double
) -> None:
    path = written(tmp_path / "export/conversations.json", [claude(1)])
    model.answer = failing(1)
    at = {"TSUZUKI_LLM_PROVIDER": "openai", "TSUZUKI_LLM_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}
    scene = own_scene(**at)
    session = scene.client.post("/api/notes/sessions", json={"export": str(path)}).json()["session_id"]
    window = opened(scene.url)
    window.go(f"/apps/notes/sessions/{session}")
    resume, stop = (window.page.get_by_role("button", name=name) for name in ("Go on", "Cancel"))
    expect(resume).to_be_visible()
    model.delay = 20.0
    goes_on, stops = posts(window, "/resume"), posts(window, "/cancel")
    resume.dblclick()
    expect(stop).to_be_visible()
    assert (len(goes_on), len(stops)) == (1, 0), "the second click meets no other button"
    stop.evaluate("button => { button.click(); button.click(); }")
    expect(resume).to_be_visible()
    assert (len(goes_on), len(stops)) == (1, 1)
