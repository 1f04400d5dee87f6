"""Makes workflows out of graphs in a line, and runs them."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings

from tsuzuki import Status
from tsuzuki import facts as f
from tsuzuki.testing import FinishedRun, run_flow
from tsuzuki.yamlflow import Callables, Workflow, parse, workflow_flow
from tsuzuki.yamlflow.walk import WorkflowFlow

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes says something of the machine, and nothing of the workflow."""
OURS = Callables(allowed=["tests.yamlflow.*"])


def flow_of(text: str) -> WorkflowFlow:
    """A flow whose callables are functions of these tests."""
    return workflow_flow(parse(text.replace("fn:", "tests.yamlflow.functions:")), OURS.resolve)


def nodes_text(graph: str, names: Any) -> str:
    """A workflow in which every task is the same, and is told its own name."""
    lines = "\n".join(f"    {line}" for line in graph.splitlines())
    tasks = "\n".join(f'  {name}: {{callable: "fn:node", inputs: {{name: {name}}}}}' for name in names)
    return f"flow:\n  graph: |\n{lines}\ntasks:\n{tasks}\n"


def nodes(graph: str, names: str) -> WorkflowFlow:
    return flow_of(nodes_text(graph, names.split()))


def graph_of(graph: str, names: str = "a b c d e f s x y z") -> Workflow:
    return parse(nodes_text(graph, names.split()))


def steps(run: FinishedRun) -> dict[str, str]:
    """How each step ended, by its name."""
    return {fact.name: type(fact).__name__ for fact in run.facts if isinstance(fact, f.StepDone | f.StepFailed)}


async def result(text: str, **params: Any) -> Any:
    run = await run_flow(flow_of(text), **params)
    assert run.status is Status.COMPLETED, run.error
    return run.result


async def failure(text: str, **params: Any) -> str:
    run = await run_flow(flow_of(text), **params)
    assert run.status is Status.FAILED
    assert run.error is not None
    return run.error.message


async def until(condition: Any) -> None:
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")
