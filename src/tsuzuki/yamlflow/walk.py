"""The flow that runs any workflow: it walks the graph, and each task of it is a durable step of its own name."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, Final

import msgspec

from tsuzuki.context import FRAME, MapOptions
from tsuzuki.errors import BadRequest, ClaimLost, StepFailure, StoreError
from tsuzuki.flow import Flow, Task, task
from tsuzuki.maps import settle
from tsuzuki.results import Collected
from tsuzuki.retry import Later
from tsuzuki.yamlflow.references import Sight
from tsuzuki.yamlflow.wiring import Resolve, Wired, stored, wire
from tsuzuki.yamlflow.workflow import Output, Workflow

_TOLD: Final = 5
"""So many failures and tasks that never started are told in the error of a run."""


@task(name="any of")
async def _any_of(names: list[str]) -> list[str]:
    """Records which alternatives a task went on with, so that a replay goes on with the same."""
    return names


class WorkflowFlow(Flow[..., Any]):
    """A workflow as a flow."""

    def __init__(self, workflow: Workflow, resolve: Resolve, *, name: str) -> None:
        self.workflow = workflow

        async def walk(**params: Any) -> Any:
            given = {**workflow.defaults, **params}
            # On a thread: it may import what takes seconds, and heartbeats must have their turn meanwhile.
            wired = await asyncio.to_thread(wire, workflow, resolve, given)
            return await Walk(workflow, wired, given).go()

        super().__init__(walk, name=name)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the workflow: its text belongs to the run, so it never changes under it."""
        return self.workflow.sha256[:16]


def workflow_flow(workflow: Workflow, resolve: Resolve, *, name: str = "workflow") -> WorkflowFlow:
    """Gives the flow that runs a workflow; `resolve` finds the tasks that its callables mean (`Callables.resolve`)."""
    return WorkflowFlow(workflow, resolve, name=name)


class Elements:
    """The input of a map: a list by another type, so that the map is known by its task and not by its items.

    Then a run that continues another one finds its items, also when the list has grown.
    """

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Walk:
    """One walk through a graph."""

    def __init__(self, workflow: Workflow, wired: Mapping[str, Wired], params: Mapping[str, Any]) -> None:
        self._workflow = workflow
        self._graph = workflow.graph
        self._wired = wired
        self._params = params
        self._waiting = dict.fromkeys(workflow.nodes)
        self._outputs: dict[str, Any] = {}
        self._stored: dict[str, dict[Output, Any]] = {}
        self._seen: dict[str, frozenset[str]] = {}
        self._failed: dict[str, Exception] = {}
        self._deciding: set[str] = set()
        self._chosen: dict[str, frozenset[str]] = {}

    async def go(self) -> dict[str, Any]:
        """Runs every task whose time comes, and gives the result of the run."""
        under_way: dict[asyncio.Task[None], str] = {}
        try:
            while True:
                for name, work in self._ready(idle=not under_way):
                    under_way[asyncio.create_task(work, name=f"tsuzuki-node-{name}")] = name
                if not under_way:
                    break
                done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for ended in done:
                    self._note(under_way.pop(ended), ended)
        finally:
            await _leave(list(under_way))
        if not self._graph.ends.met(self._outputs.keys()):
            raise self._failure()
        return self._result()

    def _ready(self, *, idle: bool) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Gives what can be done now; of alternatives it is first recorded which of them a task goes on with."""
        done = self._outputs.keys()
        ready: list[tuple[str, Coroutine[Any, Any, None]]] = []
        for name in [name for name in self._waiting if self._graph.needs[name].met(done)]:
            chosen = self._graph.needs[name].chosen(done)
            if self._graph.needs[name].any and name not in self._chosen:
                if name not in self._deciding:
                    self._deciding.add(name)
                    ready.append((name, self._decide(name, chosen)))
                continue
            taken = self._chosen.get(name, chosen)
            if not taken <= done and not idle:
                continue  # an earlier attempt went on with them: they have succeeded, and are on their way here
            del self._waiting[name]
            # Where nothing comes any more, they were tried again and failed: others have to do.
            ready.append((name, self._node(name, taken if taken <= done else chosen)))
        return ready

    def _note(self, name: str, ended: "asyncio.Task[None]") -> None:
        """Notes how a task ended; what is not its own failure ends the walk."""
        if ended.cancelled():
            raise asyncio.CancelledError
        error = ended.exception()
        if error is None:
            return
        if not isinstance(error, Exception) or isinstance(error, StoreError | ClaimLost | Later):
            raise error
        self._failed[name] = error

    # One task

    async def _decide(self, name: str, chosen: frozenset[str]) -> None:
        self._chosen[name] = frozenset(await FRAME.get().call(_any_of, (sorted(chosen),), {}, name))

    async def _node(self, name: str, chosen: frozenset[str]) -> None:
        wired = self._wired[name]
        self._seen[name] = chosen.union(*(self._seen[one] for one in chosen))
        value = await self._call(wired, self._sight(self._seen[name]))
        self._stored[name] = stored(wired.said, value)
        self._outputs[name] = value

    def _sight(self, seen: frozenset[str]) -> Sight:
        """Gives what a task can see: what came before it on its own way, the later over the earlier."""
        before = sorted(seen, key=self._graph.number)
        params, names = dict(self._params), dict[str, Any]()
        for name in before:
            for output, value in self._stored[name].items():
                (params if output.where == "params" else names)[output.name] = value
        return Sight(params, {name: self._outputs[name] for name in before}, names)

    async def _call(self, wired: Wired, sight: Sight) -> Any:
        frame, said = FRAME.get(), wired.said
        try:
            given = wired.arguments(sight)
            items = None if said.map is None else wired.items(sight)
        except BadRequest as error:  # recorded as the failure of this very step, where people look for it
            return await frame.call(_failing(said.name, error), (), {}, None)
        if said.map is None or items is None:
            return await frame.call(wired.task, (), given, None)
        given = deepcopy(given)  # once for all items: they share it, as in any map
        how = MapOptions(said.map.concurrency, wired.key(), said.map.on_error)
        outcomes = await frame.map(wired.task, Elements(items), given, how)
        if isinstance(outcomes, Collected):
            return {
                "succeeded": outcomes.succeeded,
                "failed": [msgspec.to_builtins(failure) for failure in outcomes.failed],
            }
        return outcomes

    # The end

    def _result(self) -> dict[str, Any]:
        """Gives what was stored as results, or else the outputs of the last tasks."""
        if any(output.where == "results" for name in self._workflow.nodes for output in self._said(name)):
            return {
                output.name: value
                for name in self._workflow.nodes
                for output, value in self._stored.get(name, {}).items()
                if output.where == "results"
            }
        return {name: self._outputs[name] for name in self._graph.last if name in self._outputs}

    def _said(self, name: str) -> tuple[Output, ...]:
        return self._workflow.tasks[name].outputs

    def _failure(self) -> StepFailure:
        """Makes the error of the run: what failed, and what was never started because of it."""
        failed = sorted(self._failed.items(), key=lambda pair: self._graph.number(pair[0]))
        told = "; ".join(_sentence(name, error) for name, error in failed[:_TOLD])
        never = [name for name in self._workflow.nodes if name in self._waiting]
        more = ", …" if len(never) > _TOLD else ""
        text = f"{told} (never started: {', '.join(never[:_TOLD])}{more})" if never else told
        name, first = failed[0]
        known = first if isinstance(first, StepFailure) else StepFailure(error_type=type(first).__name__)
        failure = StepFailure(text, task=name, key=known.key, error_type=known.error_type, tries=known.tries)
        failure.__cause__ = first.__cause__ or first
        return failure


def _sentence(name: str, error: Exception) -> str:
    return str(error) if isinstance(error, StepFailure) else f"{name} failed: {type(error).__name__}: {error}"


def _failing(name: str, error: Exception) -> Task[..., Any]:
    """Gives a task that fails with an error that was met before its function could be called."""

    async def fail() -> None:
        raise error

    return task(name=name)(fail)


async def _leave(under_way: list["asyncio.Task[None]"]) -> None:
    """Ends what is still under way when the walk ends early."""
    for one in under_way:
        one.cancel()
    await settle(under_way)
    for one in under_way:
        if not one.cancelled():
            one.exception()  # looked at, so that nobody complains that it was not
