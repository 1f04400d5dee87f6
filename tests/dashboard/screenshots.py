"""Pictures of every screen, for people to look at: `make screenshots` writes them to `screenshots/`.

`make screenshots ARGS=--docs` also makes those of the README anew.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from tests.dashboard.browsing import Stage, Window, open_window
from tests.dashboard.scenes import Scene

ROOT = Path(__file__).parents[2]
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 375, "height": 780}
LOOKS: dict[str, dict[str, Any]] = {
    "en": {"viewport": WIDE, "locale": "en-US"},
    "ja": {"viewport": WIDE, "locale": "ja-JP"},
    "dark": {"viewport": WIDE, "locale": "en-US", "color_scheme": "dark"},
    "narrow": {"viewport": NARROW, "locale": "ja-JP", "has_touch": True},
}
KEPT = {
    "runs.en.png": "runs.png",
    "run-busy.dark.png": "run.png",
    "runs.ja.png": "runs.ja.png",
    "run-busy.ja.png": "run.ja.png",
}
"""Which of them stand in the README, and under which names."""


def furnish(scene: Scene) -> dict[str, int]:
    """Makes runs of every kind."""
    crawl = scene.submit("crawl", tags=["docs", "weekly"], site="example", pages=400, seconds=0.02)
    for month in ("may", "june", "july"):
        scene.ended(scene.submit("report", tags=["finance"], name=month))
    failed, yaml = scene.submit("nightly"), scene.submit_yaml("pipeline")
    cancelled = scene.waiting("cancelled")
    scene.post(f"/runs/{cancelled}/cancel", {"reason": "no longer needed"})
    for number in (crawl, failed, yaml, cancelled):
        scene.ended(number)
    scene.post("/runs", {"flow_name": "train", "params": {"epochs": 3}, "tag": "gpu"})
    asks = scene.submit("asks", count=12)
    scene.ended(asks)
    busy = scene.submit("crawl", site="example.org", pages=30_000, seconds=0.3)
    scene.waiting("long")
    return {"crawl": crawl, "failed": failed, "yaml": yaml, "busy": busy, "asks": asks}


def places(runs: dict[str, int]) -> Iterator[tuple[str, str]]:
    crawl = runs["crawl"]
    yield from (("runs", "/runs"), ("runs-failed", "/runs?status=FAILED"), ("runs-none", "/runs?text=no%20such%20run"))
    yield from (("start", "/start"), ("start-form", "/start?flow=crawl"), ("start-yaml", "/start?yaml=1"))
    yield from (
        ("run", f"/runs/{crawl}"),
        ("run-busy", f"/runs/{runs['busy']}"),
        ("run-failed", f"/runs/{runs['failed']}"),
    )
    yield ("run-graph", f"/runs/{runs['yaml']}/graph")
    yield from ((f"run-{tab}", f"/runs/{crawl}/{tab}") for tab in ("items", "logs", "events", "params"))
    yield ("run-item", f"/runs/{crawl}/items?status=failed&item=12")
    yield from ((name, f"/{name}") for name in ("workers", "wheels", "letters", "llm", "metrics", "settings"))
    yield ("run-llm", f"/runs/{runs['asks']}/llm")
    yield ("not-found", "/runs/999999")


def picture(window: Window, path: Path, place: str) -> None:
    window.go(place)
    window.sees("h1")
    window.gone(".loading")
    window.page.wait_for_timeout(350)  # charts and bars settle; only people look at the result
    window.page.screenshot(path=path)


def take(stage: Stage, scene: Scene, folder: Path) -> None:
    runs = furnish(scene)
    for look, options in LOOKS.items():
        window = open_window(stage, scene.url, **options)
        for name, place in places(runs):
            picture(window, folder / f"{name}.{look}.png", place)
        window.go(f"/runs/{runs['busy']}")
        window.find('[data-act="cancel"]').click()
        window.page.screenshot(path=folder / f"cancel.{look}.png")
        window.context.close()


def keep(folder: Path) -> None:
    """Makes the pictures of the README of these: small ones, with as many colours as they need."""
    for name, kept in KEPT.items():
        Image.open(folder / name).convert("RGB").quantize(128).save(ROOT / "docs/images" / kept, optimize=True)


def main() -> None:
    named = [argument for argument in sys.argv[1:] if argument != "--docs"]
    folder = Path(named[0]) if named else ROOT / "screenshots"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        scene, stage = Scene(Path(temporary) / "scene"), Stage()
        try:
            stage.do(take, stage, scene, folder)
        finally:
            stage.close()
            scene.close()
    if "--docs" in sys.argv[1:]:
        keep(folder)
    sys.stdout.write(f"wrote {len(list(folder.iterdir()))} pictures to {folder}\n")


if __name__ == "__main__":
    main()
