"""Joins a task of the graph with its function: which parameter gets what, and what becomes of the result."""

import functools
import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from tsuzuki.codec import short, signature
from tsuzuki.errors import BadUsage
from tsuzuki.flow import Task
from tsuzuki.yamlflow.flaws import did_you_mean
from tsuzuki.yamlflow.references import FromEnv, Sight, field, plain, references_in, resolve, with_variables
from tsuzuki.yamlflow.workflow import Output, Workflow, YamlTask

Resolve: TypeAlias = Callable[[str], Task[..., Any]]


@dataclass(frozen=True, slots=True)
class Wired:
    """A task of the graph, ready to be called: `by_name` are the parameters without an input."""

    said: YamlTask
    task: Task[..., Any]
    by_name: tuple[inspect.Parameter, ...]

    def arguments(self, sight: Sight) -> dict[str, Any]:
        """Gives the arguments of the call; raises `BadUsage` where one cannot be had."""
        given = {name: resolve(value, sight) for name, value in self.said.inputs.items()}
        for parameter in self.by_name:
            found, value = sight.by_name(parameter.name)
            if found:
                given[parameter.name] = value
            elif parameter.default is parameter.empty:
                raise BadUsage(_unwired(self.said.name, parameter.name))
        return given

    def items(self, sight: Sight) -> list[Any]:
        """Gives the list that a map goes over."""
        over = None if self.said.map is None else resolve(self.said.map.over, sight)
        items = plain(over)
        if not isinstance(items, list | tuple):
            raise BadUsage(f"task {self.said.name}: map goes over a list, not {short(items)}")
        return list(items)

    def key(self) -> Callable[[Any], object] | None:
        """Gives what finds the key of an item."""
        path = () if self.said.map is None else self.said.map.key
        text = f"task {self.said.name}: map.key {'.'.join(path)}"
        return (lambda item: field(item, path, text)) if path else None


def wire(workflow: Workflow, resolve_callable: Resolve, params: Mapping[str, Any]) -> dict[str, Wired]:
    """Finds the functions of all tasks of the graph, so that what is missing is told before anything is done."""
    return {name: _wired(workflow, workflow.tasks[name], resolve_callable, params) for name in workflow.nodes}


def _wired(workflow: Workflow, said: YamlTask, resolve_callable: Resolve, params: Mapping[str, Any]) -> Wired:
    called = resolve_callable(said.callable)
    shape = _shape(called.function)
    _check_inputs(said, shape)
    free = [parameter for parameter in shape.parameters if parameter.name not in said.inputs]
    item = ""
    if said.map is not None and shape.readable:
        if not free:
            raise BadUsage(f"task {said.name}: {said.callable} has no parameter left for the item of its map")
        item = free.pop(0).name
    _check_names(workflow, said, free, params)
    function = _prepared(called, said, workflow.expose_env, item)
    return Wired(said, called.under(said.name, function, retry=said.retry, timeout=said.timeout), tuple(free))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parameters of a function that can be given by name, and whether it takes others too."""

    parameters: tuple[inspect.Parameter, ...]
    takes_any: bool
    readable: bool


def _shape(function: Callable[..., Any]) -> _Shape:
    try:
        found = signature(function).parameters.values()
    except ValueError:  # some functions written in C do not tell
        return _Shape((), takes_any=True, readable=False)
    named = tuple(p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return _Shape(named, takes_any=any(p.kind is p.VAR_KEYWORD for p in found), readable=True)


def _check_inputs(said: YamlTask, shape: _Shape) -> None:
    names = [parameter.name for parameter in shape.parameters]
    for name in said.inputs:
        if name not in names and not shape.takes_any:
            raise BadUsage(f"task {said.name}: {said.callable} has no parameter {name!r}; {did_you_mean(name, names)}")


def _check_names(workflow: Workflow, said: YamlTask, free: list[inspect.Parameter], params: Mapping[str, Any]) -> None:
    before = workflow.graph.before(said.name)
    there = {*params, *before, *(output.name for name in before for output in workflow.tasks[name].outputs)}
    for parameter in free:
        if parameter.default is parameter.empty and parameter.name not in there:
            raise BadUsage(_unwired(said.name, parameter.name))


def _unwired(task: str, parameter: str) -> str:
    return (
        f"task {task}: its parameter {parameter!r} has no input, and no param, earlier task or output has that name; "
        f"add `inputs: {{{parameter}: …}}`"
    )


def _prepared(called: Task[..., Any], said: YamlTask, exposed: frozenset[str], item: str) -> Callable[..., Any]:
    """Wraps the function: its variables are looked up, and a result that cannot be stored fails, inside the step."""
    function = called.function
    variables = [n for n, value in said.inputs.items() if any(isinstance(r, FromEnv) for r in references_in(value))]

    def ready(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # A copy: what a function changes in place must not reach other tasks, which on replay would not see it.
        own = args if said.map is None else deepcopy(args)
        named = dict(deepcopy(kwargs) if said.map is None else kwargs)
        named.update((name, with_variables(named[name], exposed)) for name in variables)
        if item:
            named[item], own = own[0], own[1:]
        return own, named

    def storable(value: Any) -> Any:
        if said.map is None:
            stored(said, value)
        return value

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given, named = ready(args, kwargs)
        return storable(function(*given, **named))

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        given, named = ready(args, kwargs)
        return storable(await function(*given, **named))

    return call_async if called.is_async else call


def stored(said: YamlTask, value: Any) -> dict[Output, Any]:
    """Gives what a task stores under which name.

    One name takes the result as it is. Several share a mapping by name and a list by position, and each take
    anything else as it is.
    """
    inner = value if len(said.outputs) <= 1 else plain(value)
    if len(said.outputs) <= 1 or not isinstance(inner, Mapping | list | tuple):
        return dict.fromkeys(said.outputs, value)
    if isinstance(inner, Mapping) and all(output.name in inner for output in said.outputs):
        return {output: inner[output.name] for output in said.outputs}
    if not isinstance(inner, Mapping) and len(inner) == len(said.outputs):
        return dict(zip(said.outputs, inner, strict=True))
    names = ", ".join(map(str, said.outputs))
    raise BadUsage(
        f"task {said.name}: its outputs are {names}, so a mapping that it returns has to have these names, "
        f"and a list these many elements; it returned {short(inner)}"
    )
