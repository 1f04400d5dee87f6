"""A workflow that was killed, failed or was cancelled goes on: what had succeeded is never done again."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.yamlflow import functions
from tests.yamlflow.making import LOADED, flow_of, nodes, nodes_text, steps, until
from tests.yamlflow.test_graph import NAMES, graphs
from tests.yamlflow.test_walking import MAPPED
from tsuzuki import Runs, Status, Worker
from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.errors import StoreUnavailable
from tsuzuki.lifecycle import Run
from tsuzuki.script import StartOptions, run_here
from tsuzuki.testing import Crash, FaultyBackend, run_flow
from tsuzuki.yamlflow.walk import WorkflowFlow

GRAPH = "a >> (b & c) >> d\n(b | x) >> y"


async def crashed(flow: WorkflowFlow, backend: Backend, at: int, *, after: bool) -> bool:
    """Runs a flow until its process dies at a write; tells whether it came to that."""
    try:
        await run_flow(flow, backend=FaultyBackend(backend, fail="append", at=at, after=after, crash=True))
    except Crash:
        return True
    return False


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 8))
async def test_after_a_crash_at_any_write_nothing_acknowledged_is_done_again(
    backend: Backend, at: int, *, after: bool
) -> None:
    flow = nodes(GRAPH, "a b c d x y")
    await crashed(flow, backend, at, after=after)
    called = dict(functions.CALLS)
    done = {fact.name async for fact in recorded(backend)}
    runs = Runs(backend)
    [row] = await runs.list()
    async with Worker(backend, [flow], tags=()) as worker:
        row = await worker.carry_out(row.id)
    assert row.status is Status.COMPLETED, row.error
    assert await runs.result_data(row) == b'{"d":"D","y":"Y"}'
    assert {name: functions.CALLS[name] for name in done} == {name: called.get(name, 0) for name in done}
    assert set(functions.CALLS) == set("abcdxy")


async def recorded(backend: Backend) -> Any:
    runs = Runs(backend)
    for row in await runs.list():
        async for entry in runs.journal(row.id):
            if isinstance(entry.fact, f.StepDone):
                yield entry.fact


@settings(LOADED, max_examples=40)
@given(graphs(), st.sets(st.sampled_from(NAMES), max_size=2), st.integers(1, 8), st.booleans())
def test_any_graph_ends_alike_with_a_crash_and_without(text: str, broken: set[str], at: int, after: bool) -> None:
    flow = nodes(text, " ".join(NAMES))

    async def both() -> None:
        functions.forget()
        functions.BROKEN.update(broken)
        straight = await run_flow(flow, backend=MemoryBackend())
        functions.CALLS.clear()
        store = MemoryBackend()
        if not await crashed(flow, store, at, after=after):
            return  # it had ended before
        [row] = await Runs(store).list()
        done = {fact.name: functions.CALLS[fact.name] async for fact in recorded(store)}
        async with Worker(store, [flow], tags=()) as worker:
            row = await worker.carry_out(row.id)
        assert (row.status, row.error and row.error.message) == (
            straight.status,
            straight.error and straight.error.message,
        )
        assert all(functions.CALLS[name] == count for name, count in done.items())

    asyncio.run(both())


async def test_which_alternative_was_taken_stays_so(backend: Backend) -> None:
    """The replay meets both alternatives done; it goes on with the one that was first, as it did before."""
    functions.GATES["b"] = asyncio.Event()
    functions.BROKEN.add("d")
    flow = flow_of(
        nodes_text("(a | b) >> c >> d", "abd")
        + '  c: {callable: "fn:report", inputs: {first: $node.a.output, second: $node.b.output}}\n'
    )
    running = asyncio.create_task(run_flow(flow, backend=backend))
    await until(lambda: "d" in functions.ORDER)
    functions.GATES["b"].set()
    assert (await running).status is Status.FAILED
    functions.BROKEN.clear()
    run = await run_flow(flow, backend=backend)
    assert run.status is Status.COMPLETED, run.error
    [taken] = [fact for fact in run.facts if isinstance(fact, f.StepDone) and fact.name == "any of"]
    assert bytes(taken.result) == b'["a"]'
    assert functions.CALLS == {"a": 1, "b": 1, "report": 1, "d": 2}


async def test_an_alternative_that_was_taken_and_then_fails_gives_way_to_another(backend: Backend) -> None:
    """Its input has changed, so it is called again: what waited for it goes on with the other one."""
    text = """
    flow: {graph: square >> (a | b) >> c}
    tasks:
      square: {callable: "fn:square", map: {over: [1, 2], on_error: collect}}
      a: {callable: "fn:fails_with", inputs: {rows: $node.square.output.succeeded}}
      b: {callable: "fn:node", inputs: {name: b}}
      c: {callable: "fn:report", inputs: {first: $node.a.output, second: $node.b.output}}
    """
    functions.BROKEN.update(("square 2", "b"))
    runs, flow = Runs(backend), flow_of(text)
    ended = await run_here(runs, flow, {}, signals=False)
    assert ended.result["c"]["first"] == [1]
    functions.BROKEN.clear()
    functions.BROKEN.add("[1, 4]")
    row = await runs.resume(ended.id)
    async with Worker(backend, [flow], tags=()) as worker:
        row = await asyncio.wait_for(worker.carry_out(row.id), 30)
    assert row.status is Status.COMPLETED, row.error
    assert b'"first":null,"second":"B"' in await runs.result_data(row)


async def test_a_failed_run_that_is_resumed_tries_what_failed_and_what_comes_after(backend: Backend) -> None:
    functions.BROKEN.add("b")
    flow = nodes("a >> b >> c\na >> x", "a b c x")
    assert (await run_flow(flow, backend=backend)).status is Status.FAILED
    functions.BROKEN.clear()
    run = await run_flow(flow, backend=backend)
    assert run.status is Status.COMPLETED
    assert run.row.attempt == 2
    assert functions.CALLS == {"a": 1, "b": 2, "c": 1, "x": 1}


async def test_a_task_whose_arguments_could_not_be_had_is_tried_again(backend: Backend) -> None:
    text = "flow: {graph: a}\ntasks: {a: {callable: 'fn:echo', inputs: {value: $ctx.params.x.y}}}"
    runs = Runs(backend)
    row = (await run_here(runs, flow_of(text), {"x": {"z": 1}}, signals=False)).row
    assert row.status is Status.FAILED
    row = await runs.resume(row.id)
    mended = flow_of(text.replace(".y", ".z"))  # the text belongs to the run; here only to see that it is tried
    async with Worker(backend, [mended], tags=()) as worker:
        row = await worker.carry_out(row.id)
    assert row.status is Status.COMPLETED, row.error


async def test_a_changed_variable_does_not_do_a_finished_task_again(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions.BROKEN.add("b")
    text = (
        'flow: {graph: a >> b}\ntasks:\n  a: {callable: "fn:echo", inputs: {value: $env.TOKEN}}\n'
        '  b: {callable: "fn:node", inputs: {name: b}}\nruntime: {expose_env: [TOKEN]}'
    )
    monkeypatch.setenv("TOKEN", "one")
    assert (await run_flow(flow_of(text), backend=backend)).status is Status.FAILED
    functions.BROKEN.clear()
    monkeypatch.setenv("TOKEN", "two")
    assert (await run_flow(flow_of(text), backend=backend)).status is Status.COMPLETED
    assert functions.CALLS == {"echo one": 1, "b": 2}


async def test_what_a_task_changes_in_place_reaches_no_other_task(backend: Backend) -> None:
    text = """
    flow: {graph: load >> emptying >> items >> report >> b, defaults: {path: x, more: [1], rows: [{id: 1}]}}
    tasks:
      load:     {callable: "fn:load"}
      emptying: {callable: "fn:emptying", inputs: {rows: $node.load.output}}
      items:    {callable: "fn:emptying_item", map: {over: $ctx.params.rows, key: id}}
      report:
        callable: "fn:report"
        inputs: {first: $node.load.output, second: [$ctx.params.more, $ctx.params.rows]}
      b:        {callable: "fn:node", inputs: {name: b}}
    """
    functions.BROKEN.add("b")
    assert (await run_flow(flow_of(text), backend=backend)).status is Status.FAILED
    functions.BROKEN.clear()
    run = await run_flow(flow_of(text.replace("report >> b", "report")), backend=backend)
    assert run.result == {"report": {"title": "report", "first": [1, 2, 3], "second": [[1], [{"id": 1}]]}}
    assert functions.CALLS == {"load x": 1, "emptying": 1, "report": 1, "b": 1}


async def test_only_the_failed_items_of_a_map_are_tried_again(backend: Backend) -> None:
    functions.BROKEN.add("square 2")
    assert (await run_flow(flow_of(MAPPED), backend=backend)).status is Status.FAILED
    functions.BROKEN.clear()
    run = await run_flow(flow_of(MAPPED), backend=backend)
    assert run.result == {"total": 17}
    assert [functions.CALLS[f"square {n}"] for n in (1, 2, 3)] == [1, 2, 1]


COLLECTING = MAPPED.replace("map: $node.load.output", "map: {over: $node.load.output, on_error: collect}").replace(
    "$node.square.output}", "$node.square.output.succeeded}"
)


async def test_a_completed_run_tries_its_failed_items_again_and_what_depends_on_them(backend: Backend) -> None:
    functions.BROKEN.add("square 2")
    runs = Runs(backend)
    ended = await run_here(runs, flow_of(COLLECTING), {}, signals=False)
    assert (ended.status, ended.result, ended.failed) == (Status.COMPLETED, {"total": 12}, 1)
    functions.BROKEN.clear()
    row = await runs.resume(ended.id)
    async with Worker(backend, [flow_of(COLLECTING)], tags=()) as worker:
        row = await worker.carry_out(row.id)
    assert row.status is Status.COMPLETED
    assert await runs.result_data(row) == b'{"total":17}'
    assert [functions.CALLS[f"square {n}"] for n in (1, 2, 3)] == [1, 2, 1]


async def test_a_run_that_continues_another_skips_its_items_also_when_the_list_has_grown(backend: Backend) -> None:
    text = 'flow: {graph: a}\ntasks: {a: {callable: "fn:square", map: $ctx.params.numbers}}'
    runs = Runs(backend)
    first = await run_here(runs, flow_of(text), {"numbers": [1, 2]}, signals=False)
    second = await run_here(
        runs, flow_of(text), {"numbers": [3, 2, 1]}, StartOptions(continues=first.id), signals=False
    )
    assert second.result == {"a": [9, 4, 1]}
    assert (second.done, second.skipped) == (1, 2)


WORK = """
import pathlib, time

def note(name):
    with open("calls.txt", "a") as file:
        file.write(name + "\\n")

def first() -> list[int]:
    note("first")
    return [1, 2, 3]

def each(item: int) -> int:
    note(f"each-{item}")
    while item == 3 and not pathlib.Path("gate").exists():
        time.sleep(0.01)
    return item * 10

def last(each: list[int]) -> int:
    note("last")
    return sum(each)
"""
CARRY_OUT = """
import asyncio, sys
from pathlib import Path
from tsuzuki.script import run_here
from tsuzuki import Runs
from tsuzuki.yamlflow import Callables, parse, workflow_flow

async def main():
    flow = workflow_flow(parse(Path("flow.yaml").read_bytes()), Callables(["work"]).resolve)
    async with Runs.open(data_dir=".tsuzuki") as runs:
        print((await run_here(runs, flow, {})).result)

asyncio.run(main())
"""
TEXT = """
flow: {graph: first >> each >> last}
tasks:
  first: {callable: "work:first"}
  each:  {callable: "work:each", map: $node.first.output}
  last:  {callable: "work:last"}
"""


async def test_a_run_whose_process_is_killed_goes_on_in_another_one(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "flow.yaml").write_text(TEXT)
    calls = tmp_path / "calls.txt"

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", CARRY_OUT]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    child = start()
    async with Runs.open(data_dir=str(tmp_path / ".tsuzuki")) as runs:
        while not (rows := await runs.list()) or rows[0].done < 2 or "each-3" not in calls.read_text():
            assert child.poll() is None, child.communicate()
            await asyncio.sleep(0.01)
    child.kill()
    child.communicate()
    assert sorted(calls.read_text().split()) == ["each-1", "each-2", "each-3", "first"]
    (tmp_path / "gate").touch()
    out, err = start().communicate(timeout=60)
    assert out.strip() == "{'last': 60}", err
    assert sorted(calls.read_text().split()) == ["each-1", "each-2", "each-3", "each-3", "first", "last"]


# Stopping


async def stopped(backend: Backend, flow: WorkflowFlow, began: str) -> Run:
    """Cancels a run as soon as a task of it has begun."""
    runs = Runs(backend)
    row = await runs.submit(flow, {})
    async with Worker(backend, [flow]) as worker:
        carried = asyncio.create_task(worker.carry_out(row.id))
        await until(lambda: began in functions.ORDER)
        await runs.cancel(row.id)
        await asyncio.wait_for(carried, 30)
    return await runs.get(row.id)


async def test_a_cancel_is_seen_while_the_only_task_runs(backend: Backend) -> None:
    flow = flow_of(
        'flow: {graph: a >> b}\ntasks:\n  a: {callable: "fn:watchful"}\n  b: {callable: "fn:echo"}'.replace(
            '"fn:echo"', '"fn:echo", inputs: {value: 1}'
        )
    )
    row = await stopped(backend, flow, "watchful")
    assert row.status is Status.CANCELLED
    assert functions.ORDER == ["watchful"]


async def test_a_task_that_wants_to_be_called_later_hands_the_run_back(backend: Backend) -> None:
    flow = flow_of('flow: {graph: a >> b}\ntasks:\n  a: {callable: "fn:tomorrow"}\n  b: {callable: "fn:tomorrow"}')
    runs = Runs(backend)
    row = await runs.submit(flow, {})
    async with Worker(backend, [flow]) as worker:
        carried = asyncio.create_task(worker.carry_out(row.id))
        while (row := await runs.get(row.id)).not_before == 0:
            await asyncio.sleep(0.005)
        worker.stop()
        await carried
    assert row.status is Status.PENDING
    assert functions.ORDER == ["tomorrow"]


async def test_a_cancel_ends_async_tasks_at_once_and_starts_no_others(backend: Backend) -> None:
    functions.GATES.update(a=asyncio.Event(), b=asyncio.Event())
    row = await stopped(backend, nodes("(a & b) >> c", "a b c"), "b")
    assert row.status is Status.CANCELLED
    assert "c" not in functions.ORDER


async def test_a_cancelled_run_keeps_what_had_finished_and_can_be_resumed(backend: Backend) -> None:
    functions.GATES["b"] = asyncio.Event()
    flow = nodes("a >> b >> c", "a b c")
    row = await stopped(backend, flow, "b")
    assert row.status is Status.CANCELLED
    functions.GATES["b"].set()
    runs = Runs(backend)
    await runs.resume(row.id)
    async with Worker(backend, [flow]) as worker:
        row = await worker.carry_out(row.id)
    assert row.status is Status.COMPLETED
    assert functions.CALLS == {"a": 1, "b": 2, "c": 1}


async def test_a_store_that_cannot_be_written_fails_the_attempt_and_not_the_run() -> None:
    flow = nodes("a >> (b & c)", "a b c")
    store = MemoryBackend()
    with pytest.raises(StoreUnavailable):
        await run_flow(flow, backend=FaultyBackend(store, fail="append", at=2))
    run = await run_flow(flow, backend=store)
    assert run.status is Status.COMPLETED
    assert set(steps(run)) == {"a", "b", "c"}
    assert not any(isinstance(fact, f.RunFailed) for fact in run.facts)
