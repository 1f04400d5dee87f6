"""What everything costs while nothing happens: how often gateway and worker wake, however busy the machine is."""

import time
from pathlib import Path

from tests.rooms import Room

WINDOW = 3.0
MOST = {"serve": 6.0, "worker": 14.0}
"""So many times a second; uvicorn's own tick is 10, a look every 50 ms is 20."""


def waited(pid: int) -> int:
    """Counts how often the threads of a process have gone to wait for something."""
    told = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in told)


def parts(pid: int) -> dict[str, int]:
    """Gives the gateway and the worker among the children of a process."""
    found = [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]
    words = {each: Path(f"/proc/{each}/cmdline").read_text().split("\0") for each in found}
    return {name: each for each, said in words.items() for name in MOST if name in said}


def test_who_has_nothing_to_do_wakes_seldom(any_room: Room) -> None:
    process, _ = any_room.up("--flows", "flows.py")
    there = parts(process.pid)
    assert there.keys() == MOST.keys()

    def seldom() -> bool:
        before, began = {name: waited(pid) for name, pid in there.items()}, time.monotonic()
        time.sleep(WINDOW)  # what is counted is waking, so there has to be a while to wake in
        took = time.monotonic() - began
        return all((waited(pid) - before[name]) / took <= MOST[name] for name, pid in there.items())

    any_room.until(seldom, f"they wake no more often than {MOST} times a second")
