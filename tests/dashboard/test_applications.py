"""Pages of applications: installed as packages, made of the dashboard's parts, in both languages."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests import example_application
from tests.dashboard.conftest import Open
from tests.dashboard.scenes import Scene

PAGES = Path(__file__).parent / "example_application.js"


def test_the_application_of_the_docs_has_a_page(opened: Open, own_scene: Callable[..., Scene], site: Path) -> None:
    scene = own_scene(PYTHONPATH=str(site))
    window = opened(scene.url)
    window.go("/runs")
    window.find(".menu a", "Greetings").click()
    scene.client.post("/api/greetings/greet", json=["Ada", "Grace"])
    window.sees(".table td", "Ada")
    window.sees(".table td", "Grace")


def test_an_application_uses_every_kind_of_part(opened: Open, own_scene: Callable[..., Scene], tmp_path: Path) -> None:
    files = example_application.files() | {"greetings/pages/main.js": PAGES.read_text()}
    folder = tmp_path / "package"
    folder.mkdir()
    scene = own_scene(PYTHONPATH=str(example_application.unpack(folder, files)))
    window = opened(scene.url)
    number = scene.submit("crawl", site="application", pages=6)
    scene.ended(number)
    window.go("/runs")
    window.find(".menu a", "Greetings").click()
    window.sees("h1", "Greetings")
    expect(window.find(".hello")).to_have_text("Hello from an application: 1,234")
    expect(window.find(".table tbody tr")).to_have_count(2)
    expect(window.find(".chart canvas")).to_have_count(1)
    window.page.get_by_label("name").fill("word")
    window.page.get_by_role("button", name="Send").click()
    window.sees(".sent", '{"name":"word"}')
    window.go(f"/apps/greetings/log/{number}")
    window.sees(".log-line", "planning 6 pages")
    window.find('[data-switch="language"]').click()
    window.sees("h1", "あいさつ")
