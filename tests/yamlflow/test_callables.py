"""Which functions a workflow may call: asked before anything is imported, and told with the name of the setting."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.yamlflow import functions
from tests.yamlflow.making import nodes_text
from tsuzuki import Status, flow, task
from tsuzuki.errors import BadCallable
from tsuzuki.flow import Task
from tsuzuki.testing import run_flow
from tsuzuki.yamlflow import Callables, parse, workflow_flow
from tsuzuki.yamlflow.callables import registered_in

HERE = "tests.yamlflow.test_callables"
OURS = "tests.yamlflow.functions"


@task(name="greet")
def greeting(name: str) -> str:
    return f"hello {name}"


@flow
def a_flow() -> None:
    """Does nothing."""


class Thing:
    def __call__(self) -> None:
        """Does nothing."""


a_thing = Thing()
foreign = Path.home
imported = functions.load


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that must not be imported."""
    (tmp_path / "trap_of_tests.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "trap_of_tests"


def refused(name: str, *allowed: str, **registered: Task) -> str:
    with pytest.raises(BadCallable) as caught:
        Callables(allowed, registered).resolve(name)
    assert caught.value.error_id == "ERR-TSUZUKI-0105"
    return str(caught.value)


def test_a_registered_task_is_found_by_its_name_its_key_and_its_address() -> None:
    known = Callables(registered={"hello": greeting})
    assert all(known.resolve(name) is greeting for name in ("hello", "greet", f"{HERE}:greeting"))
    assert registered_in([sys.modules[__name__]])[f"{HERE}:greeting"] is greeting


def test_a_function_in_an_allowed_module_becomes_a_task() -> None:
    for glob in (OURS, "tests.*", "tests.yamlflow.*", "*", "tests.yamlflow.functions.*"):
        found = Callables([glob]).resolve(f"{OURS}:load")
        assert (found.function, found.is_async) == (functions.load, False)
    assert Callables(["*"]).resolve(f"{OURS}:double").is_async
    assert Callables(["*"]).resolve(f"{OURS}:node") is functions.node


def test_what_is_not_allowed_is_not_even_imported(trap: str) -> None:
    told = refused(f"{trap}:go", "mypkg.*", "other")
    assert trap not in sys.modules
    assert f"module {trap} is not covered by --allow-callables (mypkg.*, other)" in told
    assert f"Start the worker with --allow-callables '{trap}.*'" in told
    assert "nothing is allowed" in refused("os:system")


@pytest.mark.parametrize("glob", ["tests", "ests.*", "tests.yamlflow", "tests.yamlflow.function", "TESTS.*", "tests.?"])
def test_a_glob_means_what_it_says(glob: str) -> None:
    refused(f"{OURS}:load", glob)


@pytest.mark.parametrize(
    ("name", "allowed", "told"),
    [
        (f"{HERE}:foreign", "tests.*", "it comes from module pathlib, which is not covered by --allow-callables"),
        (f"{HERE}:foreign", "tests.*", "Start the worker with --allow-callables 'pathlib.*'"),
        (f"{HERE}:imported", HERE, f"it comes from module {OURS}, which is not covered"),
        (f"{HERE}:sys.exit", "tests.*", "has no function 'sys.exit'"),
        (f"{HERE}:sys", "tests.*", "is module, not a function"),
        (f"{HERE}:Thing", "tests.*", "is type, not a function"),
        (f"{HERE}:a_thing", "tests.*", "is Thing, not a function"),
        (f"{HERE}:__builtins__", "tests.*", "not a function"),
        (f"{HERE}:a_flow", "tests.*", "is a flow; a task calls a function or a @task"),
        (f"{HERE}:nope", "tests.*", f"module {HERE} has no function 'nope'"),
        ("tests.nope:f", "tests.*", "there is no module tests.nope on this worker"),
        ("nope", "*", "is not a registered task (there is none)"),
    ],
)
def test_what_is_not_a_function_of_an_allowed_module_is_refused(name: str, allowed: str, told: str) -> None:
    assert told in refused(name, allowed)


def test_a_module_that_cannot_be_imported_is_told_with_its_error(tmp_path: Path, trap: str) -> None:
    assert "cannot be imported: SystemExit: imported" in refused(f"{trap}:go", "trap*")
    (tmp_path / "trap_that_needs.py").write_text("import no_such_module_anywhere\n")
    assert "cannot be imported: No module named 'no_such_module_anywhere'" in refused("trap_that_needs:go", "trap*")


def test_a_registered_task_that_is_not_there_is_suggested() -> None:
    assert "did you mean 'greet'?" in refused("gret", greet=greeting)


async def test_a_callable_that_is_not_allowed_fails_the_run_and_names_the_setting(trap: str) -> None:
    text = nodes_text("a >> b", "ab").replace("fn:node", f"{OURS}:node", 1).replace("fn:node", f"{trap}:go")
    run = await run_flow(workflow_flow(parse(text), Callables(["tests.*"]).resolve))
    assert run.status is Status.FAILED
    assert run.error is not None
    assert run.error.type == "BadCallable"
    assert "--allow-callables" in run.error.message
    assert functions.ORDER == []
    assert trap not in sys.modules


async def test_two_tasks_of_a_graph_share_the_limits_of_the_task_that_they_call() -> None:
    at_once = []
    running = 0

    @task(concurrency=1)
    async def alone(name: str) -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1

    text = nodes_text("a & b & c", "abc").replace("fn:node", "alone")
    run = await run_flow(workflow_flow(parse(text), Callables(registered={"alone": alone}).resolve))
    assert run.status is Status.COMPLETED, run.error
    assert at_once == [1, 1, 1]
