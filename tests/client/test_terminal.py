"""`tsuzuki watch` on a real terminal: what people see move, and what Ctrl-C does."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.client.conftest import Place
from tsuzuki import Client

PATIENCE = 60.0
UP = re.compile(r"\x1b\[(\d+)F\x1b\[J")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A terminal with `tsuzuki …` in it, whose keyboard and screen a test has."""

    def __init__(self, place: Place, *arguments: str, **variables: str) -> None:
        self._keyboard, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.said = ""

        def take() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it as it does at home

        kept = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
        kept |= {"TSUZUKI_SERVER": place.server, "TERM": "xterm"}
        kept.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tsuzuki.cli", *arguments],
            cwd=place.room.folder,
            env=kept | variables,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=take,  # noqa: PLW1509 - there are no threads of ours that could be in its way
        )
        os.close(theirs)
        os.set_blocking(self._keyboard, False)

    @property
    def screen(self) -> list[str]:
        """What stands on the screen: lines that were drawn over are gone."""
        lines: list[str] = []
        at = 0
        for found in [*UP.finditer(self.said), None]:
            lines += self.said[at : found.start() if found else None].replace("\r", "").splitlines()
            if found:
                del lines[-int(found[1]) :]
                at = found.end()
        return [COLOUR.sub("", line) for line in lines]

    def until(self, *words: str) -> None:
        """Reads until all words stand on the screen."""
        deadline = time.monotonic() + PATIENCE
        while not all(word in "\n".join(self.screen) for word in words):
            assert time.monotonic() < deadline, f"waited in vain for {words}: {self.said!r}"
            self._read()
            time.sleep(0.01)

    def _read(self) -> bool:
        try:
            part = os.read(self._keyboard, 65536)
        except BlockingIOError:
            return True
        except OSError:  # Linux says so at the end
            return False
        self.said += part.decode(errors="replace")
        return bool(part)

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def ended(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < deadline, self.said
            time.sleep(0.01)
        return self.process.wait(PATIENCE)

    def leave(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._keyboard)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


def let(place: Place, name: str, *numbers: int) -> None:
    for number in numbers:
        (place.room.folder / f"{name}.{number}").touch()


def submitted(place: Place, name: str) -> tuple[str, str]:
    with Client(place.server) as client:
        run = client.submit_run("paces", {"name": name})
    return run["run_id"], str(run["number"])


def test_items_move_in_place_and_the_last_log_lines_stand_below(place: Place, name: str) -> None:
    _, number = submitted(place, name)
    terminal = Terminal(place, "watch", number)
    try:
        terminal.until(f"run {number} of paces is RUNNING", "paced", "1/8", "12%", "item 0 is through")
        let(place, name, 1, 2)
        terminal.until("3/8", "37%", "━━━", "item 2 is through")
        let(place, name, 3)
        terminal.until("4/8", "50%", "ETA")
        assert sum("of paces is RUNNING" in line for line in terminal.screen) == 1
        assert sum("is through" in line for line in terminal.screen) == 3
        let(place, name, 4, 5, 6, 7)
        assert terminal.ended() == 0
        assert f"run {number} of paces is COMPLETED" in "\n".join(terminal.screen)
        assert terminal.screen[-1] == "COMPLETED"
        assert "\x1b[32mCOMPLETED\x1b[0m" in terminal.said
    finally:
        terminal.leave()


def test_ctrl_c_on_the_keyboard_detaches_says_so_and_cancels_nothing(place: Place, name: str) -> None:
    run_id, number = submitted(place, name)
    terminal = Terminal(place, "watch", run_id)
    try:
        terminal.until("is RUNNING", "1/8")
        terminal.type(b"\x03")
        assert terminal.ended() == 130
        assert f"the run goes on: `tsuzuki watch {number}` watches it again" in "\n".join(terminal.screen)
    finally:
        terminal.leave()
    with Client(place.server) as client:
        assert client.get_run(run_id)["status"] == "RUNNING"
        let(place, name, *range(1, 8))
        *_, last = client.watch_run(run_id)
    assert (last["status"], last["cancel_requested_at"]) == ("COMPLETED", None)


def test_who_wants_no_colours_gets_none(place: Place, name: str) -> None:
    let(place, name, *range(1, 8))
    _, number = submitted(place, name)
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        terminal = Terminal(place, "watch", number, **variables)
        try:
            assert terminal.ended() == 0
            assert "is COMPLETED" in terminal.said
            assert not COLOUR.search(terminal.said)
        finally:
            terminal.leave()


def test_what_to_do_next_with_failed_items_is_said_on_stderr(place: Place) -> None:
    process = place.room.start("submit", "partly", "--watch", "--server", place.server)
    assert process.ended() == 6
    assert len(process.out.read_text().splitlines()) == 2  # the id and the status, and nothing else
    assert re.search(r"3 items failed: `tsuzuki items \d+ --failed --server http\S+` shows why", process.said)
    assert re.search(r"`tsuzuki resume \d+ --server http\S+` tries only that again", process.said)
