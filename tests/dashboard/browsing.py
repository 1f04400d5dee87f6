"""One browser for all tests of a process, in a thread of its own, and pages that tell of everything that went wrong.

Playwright keeps an event loop running in the thread it was started in: no asyncio test could run there after it.
"""

import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Route,
    expect,
    sync_playwright,
)

Thing = TypeVar("Thing")

PATIENCE = 45_000  # milliseconds: others may work on the same machine
expect.set_options(timeout=PATIENCE)
FLAGS = [
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DRAWN = """() => new Promise((drawn) => {
  requestAnimationFrame(() => setTimeout(drawn));
  setTimeout(drawn, 2000);  // a page that nobody sees is not drawn
})"""
WATCH = """
  window.violations = [];
  document.addEventListener('securitypolicyviolation', (event) => {
    window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
  });
"""


def chromium() -> str:
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "there is no Chromium: `make browser` installs it on Debian"
    return found


class Stage:
    """A thread with a browser in it; whatever touches the browser is done there."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._open = True
        self.playwright: Playwright
        self.browser: Browser
        self.do(self._launch)

    def do(self, work: Callable[..., Thing], *arguments: Any, **named: Any) -> Thing:
        return self._thread.submit(work, *arguments, **named).result()

    def _launch(self) -> None:
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=chromium(), args=FLAGS)

    def close(self) -> None:
        if self._open:
            self._open = False
            self.do(self._close)
            self._thread.shutdown()

    def _close(self) -> None:
        self.browser.close()
        self.playwright.stop()


@cache
def stage_of_all() -> Stage:
    """Gives the one browser of this process: tests of several folders have a fixture for it, and would open as many."""
    return Stage()


@dataclass
class Window:
    """A page of the dashboard in a browser of its own, with what went wrong in it."""

    context: BrowserContext
    page: Page
    url: str
    alone: bool = True
    """Whether nobody else has this context."""
    wrong: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of what may go wrong in this test."""

    def go(self, place: str = "/runs") -> None:
        """Goes to a place, and waits until it is drawn: the page hears of another hash a moment later."""
        self.page.goto(f"{self.url}/#{place}")
        self.page.evaluate(DRAWN)

    def is_at(self, end: str) -> None:
        """Waits until the address ends so."""
        self.page.wait_for_url(lambda url: url.endswith(end))

    def find(self, selector: str, text: str | re.Pattern[str] | None = None) -> Any:
        return self.page.locator(selector, has_text=text) if text else self.page.locator(selector)

    def sees(self, selector: str, text: str | re.Pattern[str] | None = None) -> None:
        self.find(selector, text).first.wait_for()

    def gone(self, selector: str, text: str | None = None) -> None:
        self.page.wait_for_function(
            "([s, t]) => ![...document.querySelectorAll(s)].some((e) => !t || e.textContent.includes(t))",
            arg=[selector, text],
        )

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for something that the page alone does not show."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            self.page.wait_for_timeout(30)  # here events of the browser are taken in

    @property
    def copied(self) -> str:
        text: str = self.page.evaluate("navigator.clipboard.readText()")
        return text

    def row(self, number: int) -> Any:
        return self.find(f'tr[data-row="{number}"]')

    def check(self) -> None:
        found: list[str] = self.page.evaluate("window.violations ?? []")
        wrong = [*self.wrong, *(f"CSP: {one}" for one in found)]
        assert not (left := [text for text in wrong if not any(part in text for part in self.expected)]), left

    def close(self) -> None:
        """Closes it; who comes next into a context that is shared finds nothing of what was chosen here."""
        if self.alone:
            self.context.close()
            return
        self.page.evaluate("() => { if (location.protocol.startsWith('http')) localStorage.clear(); }")
        self.page.close()


class Held:
    """Requests of a page that reach the gateway when they are let go: all that fit, or the first ones."""

    def __init__(self, window: Window, pattern: str, most: int | None = None) -> None:
        self._window, self._pattern = window, pattern
        self._routes: list[Route] = []
        self._free = False
        window.page.route(pattern, self._hold, times=most)

    def _hold(self, route: Route) -> None:
        if self._free:
            route.continue_()
        else:
            self._routes.append(route)

    def let_go(self) -> None:
        self._window.until(lambda: self._routes, f"something is asked that fits {self._pattern}")
        self._free = True
        for route in self._routes:
            route.continue_()


def open_context(stage: Stage, **options: Any) -> BrowserContext:
    """Opens a browser that knows nothing yet. Called in the browser's thread.

    Unless told otherwise it is in English, and nothing turns or breathes for as long as something runs: sixty pictures
    a second, of each page, are drawn for nobody.
    """
    usual = {"viewport": {"width": 1280, "height": 860}, "locale": "en-US", "reduced_motion": "reduce"}
    context = stage.browser.new_context(**usual | options)
    context.set_default_timeout(PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(WATCH)
    return context


def open_window(stage: Stage, url: str, within: BrowserContext | None = None, **options: Any) -> Window:
    """Opens a window, in a context that is there or in one of its own. Called in the browser's thread."""
    context = within or open_context(stage, **options)
    page = context.new_page()
    window = Window(context, page, url, alone=within is None)
    host = urlsplit(url).netloc

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            window.wrong.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc != host:
            window.wrong.append(f"foreign: {request.url}")

    page.on("console", said)
    page.on("pageerror", lambda error: window.wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: window.wrong.append(f"dialog: {dialog.message}"))
    if within is None:
        context.on("request", asked)
    else:
        page.on("request", asked)
    return window
