"""`python -m tests.dashboard.figures`: how long the page computes, beside its goals. Tests assert counts, not times."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.dashboard.browsing import Stage, open_window
from tests.dashboard.scenes import Scene
from tests.dashboard.tracing import traced

FIRST_PICTURE = 100.0
"""Script of the first picture on a second visit (milliseconds of processor time)."""
LONGEST_TASK = 200.0
"""What may keep a person waiting while a run of 20,000 items goes on, and while its items are scrolled through."""
AS_IT_IS: dict[str, Any] = {"reduced_motion": "no-preference"}


def first_picture(stage: Stage, scene: Scene) -> float:
    window = open_window(stage, scene.url, **AS_IT_IS)
    window.go("/settings")  # the browser has compiled nothing yet, but its caches are as on a second visit
    window.sees("h1")
    with traced(stage, window) as trace:
        window.page.goto("about:blank")
        window.go("/runs")
        window.sees(".states")
    window.close()
    return trace.script()


def longest_task(stage: Stage, scene: Scene) -> float:
    window = open_window(stage, scene.url, **AS_IT_IS)
    number = scene.submit("many")
    window.go(f"/runs/{number}")
    window.sees('.fall-row[data-task="one"]')
    with traced(stage, window) as live:
        scene.ended(number)
        expect(window.find('.fall-row[data-task="one"]')).to_contain_text("20,000 / 20,000")
    with traced(stage, window) as scrolled:
        window.find('[data-tab="items"]').click()
        window.sees(".long-space .long-row")
        for row in (100, 5000, 12_000, 19_990):
            window.page.evaluate("(row) => { document.querySelector('.long-frame').scrollTop = row * 34; }", row)
            window.sees(f'.long-row[aria-rowindex="{row}"]', "Done")
    window.close()
    return max(live.longest(), scrolled.longest())


def main() -> None:
    stage = Stage()
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder) / "scene")
        try:
            for name, measure, goal in (
                ("script of the first picture", first_picture, FIRST_PICTURE),
                ("longest task with 20,000 items", longest_task, LONGEST_TASK),
            ):
                sys.stdout.write(f"{name}: {stage.do(measure, stage, scene):.0f} ms (goal: {goal:.0f})\n")
        finally:
            scene.close()
            stage.close()


if __name__ == "__main__":
    main()
