"""A YAML flow as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from tsuzuki.context import OnError
from tsuzuki.retry import Retry
from tsuzuki.yamlflow.graph import Graph

Where: TypeAlias = Literal["scratch", "results", "params"]


class Output(NamedTuple):
    """Where the result of a task is stored, and under which name."""

    where: Where
    name: str

    def __str__(self) -> str:
        return f"{self.where}.{self.name}"


@dataclass(frozen=True, slots=True)
class Mapped:
    """How a task is mapped over a list: the list, how many at once, the field that is an item's key."""

    over: Any
    concurrency: int = 8
    key: tuple[str, ...] = ()
    on_error: OnError = "fail"


@dataclass(frozen=True, slots=True)
class YamlTask:
    """One entry of `tasks`."""

    name: str
    callable: str
    inputs: Mapping[str, Any]
    outputs: tuple[Output, ...] = ()
    retry: Retry | None = None
    timeout: float | None = None
    map: Mapped | None = None


@dataclass(frozen=True, slots=True)
class Workflow:
    """A YAML flow: its graph, its tasks, the defaults of its params, and the variables it exposes."""

    graph: Graph
    tasks: Mapping[str, YamlTask]
    defaults: Mapping[str, Any]
    expose_env: frozenset[str]
    sha256: str
    size: int
    version: int = 1

    @property
    def unaddressed(self) -> frozenset[str]:
        """The callables without a module: names of registered tasks, which only workers know."""
        return frozenset(task.callable for task in self.tasks.values() if ":" not in task.callable)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The tasks that run, each after those it waits for; what no step is recorded of was never started."""
        return self.graph.order
