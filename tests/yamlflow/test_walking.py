"""A workflow runs: in order, in parallel, wired by references and by name, with a result people can use."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.yamlflow import functions
from tests.yamlflow.making import LOADED, failure, flow_of, nodes, nodes_text, result, steps, until
from tests.yamlflow.test_graph import NAMES, graphs
from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.backends import Backend
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.testing import FinishedRun, run_flow
from tsuzuki.yamlflow.walk import WorkflowFlow

PIPELINE = """
flow:
  graph: load >> (double & total) >> report
  defaults: {path: data.csv}
tasks:
  load:   {callable: "fn:load", outputs: [scratch.rows]}
  double: {callable: "fn:double"}
  total:  {callable: "fn:total", inputs: {rows: $node.load.output}}
  report: {callable: "fn:report", inputs: {first: $node.double.output.2, second: [$node.total.output, {t: $$}]}}
"""


async def test_a_pipeline_runs_to_its_result(backend: Backend) -> None:
    run = await run_flow(flow_of(PIPELINE), backend=backend)
    assert run.status is Status.COMPLETED, run.error
    assert run.result == {"report": {"title": "report", "first": 6, "second": [6, {"t": "$"}]}}
    assert steps(run) == dict.fromkeys(["load", "double", "total", "report"], "StepDone")
    assert functions.ORDER[0] == "load data.csv"
    assert functions.ORDER[-1] == "report"


async def test_params_come_before_defaults() -> None:
    await result(PIPELINE, path="other.csv")
    assert functions.ORDER[0] == "load other.csv"


async def test_outside_a_run_the_functions_are_simply_called() -> None:
    assert (await flow_of(PIPELINE)())["report"]["first"] == 6


async def test_independent_tasks_run_at_the_same_time(backend: Backend) -> None:
    functions.GATES.update({name: asyncio.Event() for name in "bc"})
    running = asyncio.create_task(run_flow(nodes("a >> (b & c) >> d\nx", "a b c d x"), backend=backend))
    await until(lambda: {"b", "c"} <= set(functions.ORDER))
    assert "d" not in functions.ORDER
    for gate in functions.GATES.values():
        gate.set()
    assert (await running).result == {"d": "D", "x": "X"}


async def test_only_tasks_in_the_graph_run() -> None:
    assert await result(nodes_text("a", "ab")) == {"a": "A"}
    assert functions.ORDER == ["a"]


# Failing


async def test_when_a_task_fails_those_after_it_never_start_and_the_run_says_so(backend: Backend) -> None:
    functions.BROKEN.add("b")
    flow = nodes("a >> b >> c >> d\na >> x", "a b c d x")
    run = await run_flow(flow, backend=backend)
    assert run.status is Status.FAILED
    assert run.error is not None
    assert run.error.message == "b failed: ValueError: b is broken (never started: c, d)"
    assert "ValueError: b is broken" in run.error.traceback
    assert steps(run) == {"a": "StepDone", "b": "StepFailed", "x": "StepDone"}
    assert [name for name in flow.workflow.nodes if name not in steps(run)] == ["c", "d"]


async def test_several_failures_are_told_together() -> None:
    functions.BROKEN.update("ab")
    assert await failure(nodes_text("(a & b) >> c", "abc")) == (
        "a failed: ValueError: a is broken; b failed: ValueError: b is broken (never started: c)"
    )


# Alternatives


async def test_one_alternative_is_enough_and_the_others_go_on(backend: Backend) -> None:
    functions.GATES["b"] = asyncio.Event()
    running = asyncio.create_task(run_flow(nodes("(a | b) >> c", "a b c"), backend=backend))
    await until(lambda: "c" in functions.ORDER)
    functions.GATES["b"].set()
    run = await running
    assert run.result == {"c": "C"}
    assert {"a", "b", "c"} <= set(steps(run))


async def test_an_alternative_may_fail_when_another_one_succeeds(backend: Backend) -> None:
    functions.BROKEN.add("a")
    run = await run_flow(nodes("(a | b) >> c", "a b c"), backend=backend)
    assert run.status is Status.COMPLETED
    assert steps(run) == {"a": "StepFailed", "b": "StepDone", "any of": "StepDone", "c": "StepDone"}


async def test_when_all_alternatives_fail_the_run_fails() -> None:
    functions.BROKEN.update("ab")
    assert "never started: c" in await failure(nodes_text("(a | b) >> c", "abc"))


async def test_alternatives_at_the_end_are_enough_too() -> None:
    functions.BROKEN.add("a")
    assert await result(nodes_text("s >> (a | b)", "sab")) == {"b": "B"}
    functions.BROKEN.add("b")
    assert "a failed" in await failure(nodes_text("s >> (a | b)", "sab"))


async def test_a_failure_that_something_else_needs_fails_the_run() -> None:
    functions.BROKEN.add("a")
    assert "never started: d" in await failure(nodes_text("(a | b) >> c\na >> d", "abcd"))


async def test_a_choice_may_be_a_group() -> None:
    functions.BROKEN.add("b")
    assert await result(nodes_text("((a & b) | c) >> d", "abcd")) == {"d": "D"}


async def test_the_output_of_an_alternative_that_was_not_taken_is_null(backend: Backend) -> None:
    functions.GATES["b"] = asyncio.Event()
    text = nodes_text("(a | b) >> c", "ab") + (
        '  c: {callable: "fn:report", inputs: {first: $node.a.output, second: $node.b.output}}\n'
    )
    running = asyncio.create_task(run_flow(flow_of(text), backend=backend))
    await until(lambda: "report" in functions.ORDER)
    functions.GATES["b"].set()
    assert (await running).result == {"c": {"title": "report", "first": "A", "second": None}}


async def test_alternatives_may_store_the_same_name() -> None:
    functions.BROKEN.add("a")
    text = nodes_text("(a | b) >> c", "ab").replace("}}", "}, outputs: [scratch.value]}")
    assert await result(text + '  c: {callable: "fn:echo"}\n') == {"c": "B"}


# Retry, timeout and map


async def test_a_registered_task_keeps_its_own_retries_unless_the_workflow_says_others() -> None:
    text = 'flow: {graph: a}\ntasks: {a: {callable: "fn:flaky", inputs: {times: 3}, retry: {attempts: 3, backoff: 0}}}'
    assert await result(text) == {"a": 3}
    functions.forget()
    assert "a failed after 2 tries" in await failure(text.replace("attempts: 3", "attempts: 2"))


async def test_a_timeout_ends_a_task() -> None:
    text = 'flow: {graph: a}\ntasks: {a: {callable: "fn:slow", timeout: 0.05}}'
    assert "timed out after 0.05 s" in await failure(text)


MAPPED = """
flow: {graph: load >> square >> total, defaults: {path: x}}
tasks:
  load:   {callable: "fn:load"}
  square: {callable: "fn:square", map: $node.load.output, inputs: {plus: 1}}
  total:  {callable: "fn:total", inputs: {rows: $node.square.output}}
"""


async def test_a_task_is_mapped_over_a_list(backend: Backend) -> None:
    run = await run_flow(flow_of(MAPPED), backend=backend)
    assert run.result == {"total": 2 + 5 + 10}
    done = [fact.key for fact in run.facts if isinstance(fact, f.ItemDone)]
    assert sorted(done) == ["1", "2", "3"]
    [started] = [fact for fact in run.facts if isinstance(fact, f.StepStarted) and fact.map]
    assert (started.name, started.total) == ("square", 3)


async def test_a_failed_item_fails_the_task_unless_failures_are_collected() -> None:
    functions.BROKEN.add("square 2")
    assert "square[2] failed: ValueError: 2 is broken (never started: total)" in await failure(MAPPED)
    collecting = MAPPED.replace("map: $node.load.output", "map: {over: $node.load.output, on_error: collect}")
    collecting = collecting.replace("$node.square.output}", "$node.square.output.succeeded}")
    assert await result(collecting + "\n", path="y") == {"total": 2 + 10}
    alone = collecting.replace("square >> total", "square")
    assert await result(alone, path="z") == {
        "square": {
            "succeeded": [2, 10],
            "failed": [{"key": "2", "error": "2 is broken", "error_type": "ValueError", "attempts": 1}],
        }
    }


async def test_items_that_are_mappings_are_known_by_a_field() -> None:
    rows = "[{id: {n: 7}, name: x}, {id: {n: 8}, name: y}]"
    text = f'flow: {{graph: a, defaults: {{rows: {rows}}}}}\ntasks:\n  a: {{callable: "fn:name_of", map: '
    run = await run_flow(flow_of(text + "{over: $ctx.params.rows, key: id.n, concurrency: 1}}"))
    assert run.result == {"a": ["x", "y"]}
    assert [fact.key for fact in run.facts if isinstance(fact, f.ItemDone)] == ["7", "8"]
    assert "is not its own key" in await failure(text + "$ctx.params.rows}")


async def test_the_item_goes_to_the_first_parameter_without_an_input() -> None:
    text = 'flow: {graph: a}\ntasks: {a: {callable: "fn:second_word", map: [x, y], inputs: {prefix: p}}}'
    assert await result(text) == {"a": ["p x", "p y"]}


async def test_only_a_list_can_be_mapped_over() -> None:
    text = 'flow: {graph: a, defaults: {x: {y: 1}}}\ntasks: {a: {callable: "fn:square", map: $ctx.params.x}}'
    assert "task a: map goes over a list, not {'y': 1}" in await failure(text)


async def test_an_empty_list_is_mapped_at_once() -> None:
    assert await result('flow: {graph: a}\ntasks: {a: {callable: "fn:square", map: []}}') == {"a": []}


# Any graph


def ran(flow: WorkflowFlow, broken: set[str]) -> FinishedRun:
    functions.forget()
    functions.BROKEN.update(broken)
    return asyncio.run(run_flow(flow, backend=MemoryBackend()))


@settings(LOADED, max_examples=60)
@given(graphs(), st.sets(st.sampled_from(NAMES), max_size=2))
def test_any_graph_is_walked_in_order_and_ends_as_it_should(text: str, broken: set[str]) -> None:
    flow = nodes(text, " ".join(NAMES))
    run = ran(flow, broken)
    graph = flow.workflow.graph
    done: set[str] = set()
    for what, name in functions.EVENTS:
        assert what == "returned" or graph.needs[name].met(done), f"{name} began too early"
        if what == "returned":
            done.add(name)
    expected = set[str]()
    for name in graph.order:
        if name not in broken and graph.needs[name].met(expected):
            expected.add(name)
    assert done == expected
    assert all(count == 1 for count in functions.CALLS.values())
    assert {name for name, how in steps(run).items() if how == "StepDone"} - {"any of"} == expected
    assert (run.status is Status.COMPLETED) == graph.ends.met(expected)
