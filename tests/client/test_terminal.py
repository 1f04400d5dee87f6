"""`tsuzuki watch` on a real terminal: what people see move, and what Ctrl-C does."""

import re

import pytest

from tests.client.conftest import Place
from tests.terminals import COLOUR, Terminal
from tsuzuki import Client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


def watching(place: Place, *arguments: str, **variables: str) -> Terminal:
    return Terminal(place.room.folder, *arguments, columns=120, TSUZUKI_SERVER=place.server, **variables)


def let(place: Place, name: str, *numbers: int) -> None:
    for number in numbers:
        (place.room.folder / f"{name}.{number}").touch()


def submitted(place: Place, name: str) -> tuple[str, str]:
    with Client(place.server) as client:
        run = client.submit_run("paces", {"name": name})
    return run["run_id"], str(run["number"])


def test_items_move_in_place_and_the_last_log_lines_stand_below(place: Place, name: str) -> None:
    _, number = submitted(place, name)
    terminal = watching(place, "watch", number)
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
    terminal = watching(place, "watch", run_id)
    try:
        terminal.until("is RUNNING", "1/8")
        terminal.type(b"\x03")
        assert terminal.ended() == 130
        assert re.search(rf"the run goes on: `\S*tsuzuki watch {number}` watches", "\n".join(terminal.screen))
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
        terminal = watching(place, "watch", number, **variables)
        try:
            assert terminal.ended() == 0
            assert "is COMPLETED" in terminal.said
            assert not COLOUR.search(terminal.said)
        finally:
            terminal.leave()


def test_what_to_do_next_with_failed_items_is_said_on_stderr(place: Place) -> None:
    process = place.room.start("submit", "partly", "--watch", "--server", place.server)
    assert process.ended() == 6
    assert process.out.read_text() == "6\n"  # the result, and nothing else
    assert re.search(r"3 items failed: `\S*tsuzuki items \d+ --failed --server http\S+` shows why", process.said)
    assert re.search(r"`\S*tsuzuki resume \d+ --server http\S+` tries only that again", process.said)
