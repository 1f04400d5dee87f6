"""Flows written as YAML: parsed, checked, drawn, and run by one built-in flow that walks the graph."""

from collections.abc import Collection
from dataclasses import dataclass

from tsuzuki.errors import BadCallable
from tsuzuki.yamlflow.callables import Callables
from tsuzuki.yamlflow.flaws import Flaw
from tsuzuki.yamlflow.parsing import MOST_BYTES, check, parse
from tsuzuki.yamlflow.picture import draw, mermaid
from tsuzuki.yamlflow.references import FromEnv, references_in, shown_input
from tsuzuki.yamlflow.walk import WorkflowFlow, workflow_flow
from tsuzuki.yamlflow.workflow import Workflow, YamlTask


@dataclass(frozen=True, slots=True)
class Compiler:
    """What a worker needs to run YAML flows: a function of a text and a name, and the tasks that a text may name.

    The text comes from the caller, the environment belongs to the worker: `expose_env` names what a workflow may read.
    """

    callables: Callables
    expose_env: Collection[str] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the registered tasks."""
        return self.callables.names

    def __call__(self, text: str, name: str, /) -> WorkflowFlow:
        """Compile a workflow; raise `BadWorkflow` or `BadCallable` if it cannot run here."""
        workflow = parse(text)
        if hidden := sorted(_variables(workflow) - set(self.expose_env)):
            raise BadCallable(
                f"this worker does not expose $env.{hidden[0]} to YAML flows; "
                f"start it with {' '.join(f'--expose-env {each}' for each in hidden)}"
            )
        return workflow_flow(workflow, self.callables.resolve, name=name)


def _variables(workflow: Workflow) -> set[str]:
    values = [value for each in workflow.tasks.values() for value in each.inputs.values()]
    return {found.name for value in values for found in references_in(value) if isinstance(found, FromEnv)}


__all__ = [
    "MOST_BYTES",
    "Callables",
    "Compiler",
    "Flaw",
    "Workflow",
    "YamlTask",
    "check",
    "draw",
    "mermaid",
    "parse",
    "shown_input",
    "workflow_flow",
]
