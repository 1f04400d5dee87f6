"""The dashboard in a real Chromium against a real gateway and real workers."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.dashboard.browsing import Stage, Window, open_context, open_window, stage_of_all
from tests.dashboard.scenes import Scene

Open = Callable[..., Window]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Lets a test that uses the browser run in the browser's thread."""
    stage = pyfuncitem.funcargs.get("stage")
    if not isinstance(stage, Stage):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}  # noqa: SLF001 - as pytest itself
    stage.do(partial(pyfuncitem.obj, **wanted))
    return True


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """One browser for all tests of this process."""
    stage = stage_of_all()
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Gateway and worker on SQLite, for all tests of this process: each makes its own runs."""
    scene = Scene(tmp_path_factory.mktemp("dashboard") / "scene-of-all-tests")
    yield scene
    scene.close()


@pytest.fixture
def own_scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Makes scenes that a test has for itself."""
    scenes: list[Scene] = []

    def make(*arguments: str, **options: Any) -> Scene:
        scenes.append(Scene(tmp_path / f"scene{len(scenes)}", *arguments, **options))
        return scenes[-1]

    yield make
    for made in scenes:
        made.close()


@pytest.fixture
def opened(stage: Stage, own_scene: Callable[..., Scene]) -> Iterator[Open]:
    """Opens windows; at the end nothing may have gone wrong in any of them. They close before their scenes do."""
    windows: list[Window] = []

    def make(url: str, within: BrowserContext | None = None, **options: Any) -> Window:
        windows.append(open_window(stage, url, within, **options))
        return windows[-1]

    yield make

    def end() -> None:
        try:
            for window in windows:
                window.check()
        finally:
            for window in windows:
                window.close()

    stage.do(end)


@pytest.fixture(scope="session")
def visitor(stage: Stage) -> BrowserContext:
    """The context of all who look at the shared scene: only the first of them has to fetch and compile the pages."""
    return stage.do(open_context, stage)


@pytest.fixture
def window(scene: Scene, opened: Open, stage: Stage, visitor: BrowserContext) -> Window:
    """A window on the shared scene, in English."""
    return stage.do(opened, scene.url, visitor)
