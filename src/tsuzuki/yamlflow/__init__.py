"""Flows written as YAML: parsed, checked, drawn, and run by one built-in flow that walks the graph."""

from tsuzuki.yamlflow.callables import Callables
from tsuzuki.yamlflow.flaws import Flaw
from tsuzuki.yamlflow.parsing import MOST_BYTES, check, parse
from tsuzuki.yamlflow.picture import draw, mermaid
from tsuzuki.yamlflow.walk import workflow_flow
from tsuzuki.yamlflow.workflow import Workflow, YamlTask

__all__ = [
    "MOST_BYTES",
    "Callables",
    "Flaw",
    "Workflow",
    "YamlTask",
    "check",
    "draw",
    "mermaid",
    "parse",
    "workflow_flow",
]
