"""Flows written as YAML: parsed, checked, drawn, and run by one built-in flow that walks the graph."""

from collections.abc import Callable

from tsuzuki.yamlflow.callables import Callables
from tsuzuki.yamlflow.flaws import Flaw
from tsuzuki.yamlflow.parsing import MOST_BYTES, check, parse
from tsuzuki.yamlflow.picture import draw, mermaid
from tsuzuki.yamlflow.references import shown_input
from tsuzuki.yamlflow.walk import WorkflowFlow, workflow_flow
from tsuzuki.yamlflow.workflow import Workflow, YamlTask


def compiler(callables: Callables) -> Callable[[str, str], WorkflowFlow]:
    """Gives what a worker needs to run YAML flows: a function of a text and a name."""
    return lambda text, name: workflow_flow(parse(text), callables.resolve, name=name)


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
