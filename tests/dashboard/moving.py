"""The moving picture of the README: a worker is killed and its run goes on. `make moving-picture` makes it anew.

A real terminal above, the real dashboard below: what is typed is typed into a shell, and Chromium shows the rest.
"""

import html
import io
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from tests.bash import Bash
from tests.dashboard.browsing import Stage, Window, open_window

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/images"
WIDTH, TERMINAL, DASHBOARD = 1100, 240, 500
PACE, LONGEST, LAST = 0.25, 1.2, 4.0
"""How long a picture is shown, at the least and at the most, and the last one (seconds)."""
COLOURS = 64
FLOW = """import time

from tsuzuki import flow, task


@task
def translate(page: int) -> str:
    time.sleep(0.2)
    return f"page {page}"


@flow
def book(pages: int = 200) -> int:
    return len(translate.map(range(pages), concurrency=4))
"""
PAGE = """<style>
  body {{ margin: 0; padding: 14px 18px; background: #16181d; color: #d6d9df }}
  pre {{ font: 16px/23px "DejaVu Sans Mono", "Noto Sans Mono", monospace; margin: 0; white-space: pre }}
  b {{ color: #7ee0b8; font-weight: normal }}
</style><pre>{}</pre>"""
PICTURES = {"en-US": "kill.gif", "ja-JP": "kill.ja.gif"}
PROMPT = re.compile(r"^(\$ .*)$", re.MULTILINE)


class Film:
    """Pictures of a terminal above a dashboard, and how long each is shown."""

    def __init__(self, stage: Stage, bash: Bash, locale: str) -> None:
        self._stage, self._bash, self._locale = stage, bash, locale
        self._terminal = open_window(stage, "about:blank", viewport={"width": WIDTH, "height": TERMINAL})
        self._window: Window | None = None
        self._frames: list[tuple[Image.Image, float]] = []
        self._typed = ""
        self._heard = 0

    def look_at(self, url: str, place: str) -> None:
        """Opens the dashboard."""
        look: dict[str, Any] = {
            "viewport": {"width": WIDTH, "height": DASHBOARD},
            "locale": self._locale,
            "reduced_motion": "no-preference",
        }
        self._window = open_window(self._stage, url, **look)
        self._window.go(place)
        self._window.sees("h1")

    def type(self, line: str, shown: str = "") -> None:
        """Types a line into the shell; where it is long, a short form of it is shown."""
        self._listen()
        self._typed += f"$ {shown or line}\n"
        self._bash.write(line)

    def until(self, seen: Callable[[], object], least: float = 0.0) -> None:
        """Takes pictures until something is seen."""
        begun = time.monotonic()
        while not seen() or time.monotonic() < begun + least:
            assert time.monotonic() < begun + 60, self._bash.heard
            self._take()
        self._take()

    def heard(self, text: str) -> Callable[[], bool]:
        """Gives whether the terminal has said something."""
        return lambda: text in self._bash.heard

    def shows(self, state: str) -> Callable[[], bool]:
        """Gives whether the dashboard shows a state."""
        return lambda: self._window is not None and self._window.find(f'.status[data-state="{state}"]').count() > 0

    def _listen(self) -> None:
        heard = self._bash.heard
        self._typed += heard[self._heard :]
        self._heard = len(heard)

    def _take(self) -> None:
        begun = time.monotonic()
        self._listen()
        lines = [line[:108] for line in self._typed.splitlines()][-9:]
        self._terminal.page.set_content(
            PAGE.format(PROMPT.sub(r"<b>\1</b>", html.escape("\n".join(lines), quote=False)))
        )
        whole = Image.new("RGB", (WIDTH, TERMINAL + DASHBOARD), "white")
        whole.paste(Image.open(io.BytesIO(self._terminal.page.screenshot())), (0, 0))
        if self._window is not None:
            whole.paste(Image.open(io.BytesIO(self._window.page.screenshot())), (0, TERMINAL))
        time.sleep(max(0.0, begun + PACE - time.monotonic()))
        self._frames.append((whole, time.monotonic() - begun))

    def write(self, path: Path) -> None:
        """Writes the pictures as one that moves; those that are alike are one picture."""
        images: list[Image.Image] = []
        shown: list[int] = []
        for image, seconds in self._frames:
            if images and images[-1].tobytes() == image.tobytes():
                shown[-1] += int(seconds * 1000)
                continue
            images.append(image)
            shown.append(int(seconds * 1000))
        shown = [min(each, int(LONGEST * 1000)) for each in shown[:-1]] + [int(LAST * 1000)]
        palette = images[-1].quantize(COLOURS, dither=Image.Dither.NONE)
        small = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
        small[0].save(path, save_all=True, append_images=small[1:], duration=shown, loop=0, optimize=True)


def free_port() -> int:
    """Gives the port that people use, where nobody uses it; else any."""
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", 8000)) == 0
    return 0 if taken else 8000


def play(stage: Stage, bash: Bash, locale: str, path: Path) -> None:
    film = Film(stage, bash, locale)
    film.type(f"tsuzuki up --flows book.py --port {free_port()} > log &", "tsuzuki up --flows book.py &")
    film.until(film.heard("stop       Ctrl-C"))
    found = re.search(r"is up: (http://\S+)", bash.heard)
    assert found
    bash.write(f"export TSUZUKI_SERVER={found[1]}")
    film.type("tsuzuki submit book")
    film.until(lambda: re.search(r"^[0-9a-f-]{36}$", bash.heard, re.MULTILINE))
    film.look_at(found[1], "/runs/1")
    film.until(film.shows("RUNNING"), least=4.0)
    film.type("kill -9 $(pgrep -P $! -f ' worker ')")
    film.until(film.heard("worker 1"), least=5.0)
    film.until(film.shows("COMPLETED"), least=1.0)
    film.type("tsuzuki get 1 | grep -E 'status|started|items'")
    film.until(film.heard("items  "), least=1.0)
    film.write(path)


def main() -> None:
    stage = Stage()
    try:
        for locale, name in PICTURES.items():
            if sys.argv[1:] and locale not in sys.argv[1:]:
                continue
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                (folder / "book.py").write_text(FLOW)
                bash = Bash(folder, folder / "said", (), PYTHONPATH=str(ROOT / "src"), NO_COLOR="1")
                try:
                    stage.do(play, stage, bash, locale, FOLDER / name)
                finally:
                    bash.leave()
            sys.stdout.write(f"{FOLDER / name}: {(FOLDER / name).stat().st_size // 1024} KiB\n")
    finally:
        stage.close()


if __name__ == "__main__":
    main()
