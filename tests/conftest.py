"""What every test gets: a check that it leaves nothing behind, and the number of kills for crash tests.

Tests keep their files under pytest's `tmp_path`; there is no other place to write to.
"""

import asyncio
import inspect
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests import example_application
from tests.nats_server import NatsServer
from tests.order import Sharing, arrange
from tsuzuki.testing.stopwatch import Stopwatch

# Before anything imports them: the assertions of the shared contract explain themselves when they fail.
pytest.register_assert_rewrite("tsuzuki.testing.builders", "tsuzuki.testing.contract")

Thing = TypeVar("Thing")

SERVANTS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "nats-of-all-tests")
PATIENCE = 2.0  # seconds in which what was told to stop may still be stopping, on a machine that has time for it
# How long an example takes says something of the machine, and nothing of what is tried.
settings.register_profile("any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: half of what tests do is waiting for processes, servers and browsers."""
    return 2 * (os.cpu_count() or 1)


def pytest_configure() -> None:
    """Hears Ctrl-C, as do the processes of tests: who is started in the background of a script is deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos-kills", type=int, default=30, help="how often the crash tests kill their process")
    parser.addoption("--chaos-outages", default="3", help="how long the outages of a server last (seconds, by commas)")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing | None:
    """Lets groups share a process."""
    return Sharing(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Arranges tests that several processes share."""
    if hasattr(config, "workerinput"):
        arrange(items)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes each outage a test of its own: seconds in `make test`, a minute and five in `make chaos`."""
    if "outage" in metafunc.fixturenames:
        metafunc.parametrize(
            "outage", [float(text) for text in metafunc.config.getoption("--chaos-outages").split(",")]
        )


@pytest.fixture
def chaos_kills(request: pytest.FixtureRequest) -> int:
    """How often a crash test kills its process: 30 in `make test`, hundreds in `make chaos`."""
    kills: int = request.config.getoption("--chaos-kills")
    return kills


@pytest.fixture(scope="session", autouse=True)
def projections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where stores on NATS keep their lists: not in the folder that the tests are started in."""
    folder = tmp_path_factory.mktemp("projections")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TSUZUKI_PROJECTION_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server with JetStream, one for each process that runs tests; every store has its own prefix."""
    server = NatsServer(tmp_path_factory.mktemp("nats-of-all-tests"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the application of the docs installed in it: on the path of a process, it is there."""
    return example_application.install(tmp_path_factory.mktemp("greetings"), example_application.files())


@pytest.fixture
def greetings(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The application of the docs, installed for this process while a test runs."""
    monkeypatch.syspath_prepend(site)
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == "greetings"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a thread of ours, a child process or (async tests) an asyncio task.

    It is set up before a test's own fixtures, hence looks after they have been torn down.
    """
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("no_task_left_behind")
    threads_before, children_before = engine_threads(), child_processes()
    yield
    left = wait_until_empty(lambda: engine_threads() - threads_before)
    assert not left, f"threads still running: {sorted(thread.name for thread in left)}; close what started them"
    children = wait_until_empty(lambda: child_processes() - children_before)
    assert not children, f"child processes left: {[describe(pid) for pid in children]}; stop them and wait for them"


@pytest.fixture
async def no_task_left_behind() -> AsyncIterator[None]:
    """Looks from inside the test's own loop, before pytest-asyncio silently cancels what is left in it."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    if left:
        with Stopwatch() as since:
            while left and since.fair < PATIENCE:
                _, left = await asyncio.wait(left, timeout=0.05)
    assert not left, f"asyncio tasks left: {sorted(str(task.get_coro()) for task in left)}; await or cancel them"


def engine_threads() -> set[threading.Thread]:
    """Our threads that would keep a process alive; the pool of sync tasks is daemonic and may idle on."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("tsuzuki-") and not thread.daemon}


def child_processes() -> set[int]:
    """Ids of children, zombies included, without servants, which live as long as we do."""
    listings = list(Path("/proc/self/task").glob("*/children"))
    if not listings:  # not Linux
        return {child.pid for child in multiprocessing.active_children() if child.pid}
    return {pid for listing in listings for pid in pids_in(listing) if not is_servant(pid)}


def pids_in(listing: Path) -> list[int]:
    try:
        return [int(pid) for pid in listing.read_text().split()]
    except OSError:  # the thread ended meanwhile
        return []


def is_servant(pid: int) -> bool:
    return any(word in describe(pid) for word in SERVANTS)


def describe(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        command = ""
    return f"{pid} {command or '(ended, but nobody waited for it)'}"


def wait_until_empty(look: Callable[[], set[Thing]]) -> set[Thing]:
    """Returns what is still there when patience ends; looks once and returns at once in the usual case."""
    if not look():
        return set()
    with Stopwatch() as since:
        while (left := look()) and since.fair < PATIENCE:
            time.sleep(0.01)
    return left
