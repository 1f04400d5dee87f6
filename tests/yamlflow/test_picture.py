"""A workflow drawn: every task and every arrow is there."""

import re

from hypothesis import given, settings

from tests.yamlflow.making import LOADED, graph_of
from tests.yamlflow.test_graph import NAMES, graphs
from tsuzuki.yamlflow import draw, mermaid


def test_a_single_task_is_drawn_too() -> None:
    assert draw(graph_of("a", "a")) == "─ 1 ─ a"


def test_a_chain_is_drawn_from_top_to_bottom() -> None:
    assert draw(graph_of("a >> b >> c", "a b c")).splitlines() == ["╭ 1 ─ a", "├ 2 ─ b  after a", "╰ 3 ─ c  after b"]


def test_a_choice_of_groups_is_drawn_for_mermaid() -> None:
    assert mermaid(graph_of("((a & b) | c) >> d", "a b c d")).splitlines()[5:] == [
        "    j0((any))",
        "    j0 --> t3",
        "    j1((all))",
        "    j1 -.-> j0",
        "    t0 --> j1",
        "    t1 --> j1",
        "    t2 -.-> j0",
    ]


@settings(LOADED)
@given(graphs())
def test_every_task_stands_once_and_below_what_it_waits_for(text: str) -> None:
    workflow = graph_of(text, " ".join(NAMES))
    lines = [line for line in draw(workflow).splitlines() if not line.startswith("not in the graph")]
    drawn = [found[1] for line in lines if (found := re.search(r"(\S+)(?: +after .*)?$", line))]
    assert sorted(drawn) == sorted(workflow.nodes)
    for name in workflow.nodes:
        assert all(drawn.index(needed) < drawn.index(name) for needed in workflow.graph.needs[name].names)


@settings(LOADED)
@given(graphs())
def test_every_arrow_of_a_flowchart_joins_what_it_shows(text: str) -> None:
    workflow = graph_of(text, " ".join(NAMES))
    lines = mermaid(workflow).splitlines()
    shown = {found[1] for line in lines if (found := re.match(r"    (\w+)[\[(]", line))}
    ends = [found.groups() for line in lines if (found := re.fullmatch(r"    (\w+) (?:-->|-\.->) (\w+)", line))]
    assert {name for pair in ends for name in pair} <= shown
    assert len(lines) == 1 + len(shown) + len(ends)
    assert sum(name.startswith("t") for name in shown) == len(workflow.nodes)
