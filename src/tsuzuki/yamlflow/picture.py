"""Draws a workflow: as text, stage by stage, and as a Mermaid flowchart."""

from itertools import groupby

from tsuzuki.yamlflow.graph import Graph
from tsuzuki.yamlflow.needs import NOTHING, Needs
from tsuzuki.yamlflow.workflow import Workflow


def draw(workflow: Workflow) -> str:
    """Draws the graph as text: its stages from top to bottom, and what each task waits for."""
    graph = workflow.graph
    stages = _stages(graph)
    width = max(map(len, graph.order))
    blocks = [
        [_row(workflow, name, width) for name in names]
        for _, names in groupby(sorted(graph.order, key=stages.__getitem__), key=stages.__getitem__)
    ]
    digits = len(str(len(blocks)))
    lines: list[str] = []
    for number, rows in enumerate(blocks, start=1):
        first, last = number == 1, number == len(blocks)
        corner = "─" if first and last else "╭" if first else "╰" if last else "├"
        lines.append(f"{corner} {number:>{digits}} ─ {rows[0]}".rstrip())
        lines += [f"{' ' if last else '│'} {' ' * digits}   {row}".rstrip() for row in rows[1:]]
    unused = [name for name in workflow.tasks if name not in graph.needs]
    return "\n".join([*lines, f"not in the graph: {', '.join(unused)}"] if unused else lines)


def _row(workflow: Workflow, name: str, width: int) -> str:
    needs, said = workflow.graph.needs[name], workflow.tasks[name]
    notes = [] if needs == NOTHING else [f"after {needs.written(workflow.graph.number)}"]
    if said.map is not None:
        notes.append(f"mapped, {said.map.concurrency} at once")
    return f"{name:<{width}}  {'; '.join(notes)}" if notes else name


def _stages(graph: Graph) -> dict[str, int]:
    """Gives the earliest stage in which a task can begin."""
    stages: dict[str, int] = {}
    for name in graph.order:
        stages[name] = 1 + max((stages[needed] for needed in graph.needs[name].names), default=-1)
    return stages


def mermaid(workflow: Workflow) -> str:
    """Draws the graph as a Mermaid flowchart; alternatives meet in a small circle."""
    return "\n".join(_Chart(workflow).lines())


class _Chart:
    """A flowchart while it is drawn."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._joints: list[str] = []
        self._lines = ["flowchart TD"]

    def lines(self) -> list[str]:
        graph = self._workflow.graph
        for name in graph.order:
            mapped = self._workflow.tasks[name].map is not None
            opening, closing = ("[[", "]]") if mapped else ("[", "]")
            self._lines.append(f'    {self._id(name)}{opening}"{name}"{closing}')
        for name in graph.order:
            self._arrows(graph.needs[name], self._id(name), "-->")
        return self._lines

    def _id(self, name: str) -> str:
        return f"t{self._workflow.graph.number(name)}"

    def _arrows(self, needs: Needs, target: str, arrow: str) -> None:
        for needed in sorted(needs.all, key=self._workflow.graph.number):
            self._lines.append(f"    {self._id(needed)} {arrow} {target}")
        for group in needs.any:
            joint = self._joint("any")
            self._lines.append(f"    {joint} --> {target}")
            for choice in group:
                single = len(choice.all) == 1 and not choice.any
                meeting = joint if single else self._joint("all")
                if not single:
                    self._lines.append(f"    {meeting} -.-> {joint}")
                self._arrows(choice, meeting, "-.->" if single else "-->")

    def _joint(self, label: str) -> str:
        name = f"j{len(self._joints)}"
        self._joints.append(name)
        self._lines.append(f"    {name}(({label}))")
        return name
