"""Flows written as YAML: parsed, checked, drawn, and run by one built-in flow that walks the graph."""

from dataclasses import dataclass

from tsuzuki.yamlflow.callables import Callables
from tsuzuki.yamlflow.flaws import Flaw
from tsuzuki.yamlflow.parsing import MOST_BYTES, check, parse
from tsuzuki.yamlflow.picture import draw, mermaid
from tsuzuki.yamlflow.references import shown_input
from tsuzuki.yamlflow.walk import WorkflowFlow, workflow_flow
from tsuzuki.yamlflow.workflow import Workflow, YamlTask


@dataclass(frozen=True, slots=True)
class Compiler:
    """What a worker needs to run YAML flows: a function of a text and a name, and the tasks that a text may name."""

    callables: Callables

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the registered tasks."""
        return self.callables.names

    def __call__(self, text: str, name: str, /) -> WorkflowFlow:
        """Compile a workflow; raise `BadWorkflow` or `BadCallable` if it cannot run here."""
        return workflow_flow(parse(text), self.callables.resolve, name=name)


def compiler(callables: Callables) -> Compiler:
    """Return what a worker needs to run YAML flows that may call these functions."""
    return Compiler(callables)


__all__ = [
    "MOST_BYTES",
    "Callables",
    "Flaw",
    "Workflow",
    "YamlTask",
    "check",
    "compiler",
    "draw",
    "mermaid",
    "parse",
    "shown_input",
    "workflow_flow",
]
