"""The graph language: what it says, where it is wrong, and that it is never executed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.yamlflow.making import LOADED, graph_of
from tsuzuki.errors import BadWorkflow
from tsuzuki.yamlflow import check
from tsuzuki.yamlflow.needs import Needs


def needs(graph: str) -> dict[str, str]:
    """What each task waits for, written out."""
    found = graph_of(graph).graph
    return {name: found.needs[name].written(found.number) for name in found.order}


def wrong(graph: str) -> str:
    with pytest.raises(BadWorkflow) as caught:
        graph_of(graph)
    return str(caught.value)


def test_tasks_stand_in_a_chain() -> None:
    assert needs("a >> b >> c") == {"a": "", "b": "a", "c": "b"}


def test_a_group_is_waited_for_as_a_whole() -> None:
    assert needs("a >> (b & c) >> d") == {"a": "", "b": "a", "c": "a", "d": "b & c"}


def test_of_alternatives_one_is_enough() -> None:
    assert needs("a >> (b | c) >> d")["d"] == "(b | c)"


def test_several_lines_form_one_graph() -> None:
    assert needs("a >> b\na >> c\n\nb >> d\nc >> d") == {"a": "", "b": "a", "c": "a", "d": "b & c"}


def test_a_line_goes_on_after_a_sign_before_a_sign_and_in_parentheses() -> None:
    assert needs("a >>\n b\n >> (c\n & d\n)\n") == {"a": "", "b": "a", "c": "b", "d": "b"}


def test_comments_and_repetitions_change_nothing() -> None:
    assert needs("# all of it\na >> b # first\na >> b\nb & b\n") == {"a": "", "b": "a"}


def test_chains_stand_in_groups() -> None:
    assert needs("s >> ((a >> b) & c) >> d") == {"s": "", "a": "s", "b": "a", "c": "s", "d": "b & c"}


def test_all_binds_closer_than_any() -> None:
    assert needs("(a & b | c) >> d")["d"] == "((a & b) | c)"


def test_names_may_have_digits_hyphens_and_any_letters() -> None:
    workflow = graph_of("s1 >> 読込 >> clean-up", "s1 読込 clean-up")
    assert workflow.nodes == ("s1", "読込", "clean-up")


def test_tasks_are_in_the_order_in_which_they_appear_and_after_what_they_need() -> None:
    assert graph_of("c >> a\nb >> a\nx").nodes == ("c", "b", "a", "x")


def test_what_comes_before_what_is_known() -> None:
    graph = graph_of("a >> (b | c) >> d\nx").graph
    assert graph.before("d") == ["a", "b", "c"]
    assert not graph.is_before("b", "c")
    assert graph.last == ("d", "x")


@pytest.mark.parametrize(
    ("graph", "ends"),
    [
        ("a >> b", "b"),
        ("a >> b\nb >> c", "c"),
        ("a >> (b & c)", "b & c"),
        ("a >> (b | c)", "(b | c)"),
        ("a >> (b | c)\nb >> d", "d & (b | c)"),
        ("a >> b\n(b | c) >> d", "d"),
        ("a\nb", "a & b"),
    ],
)
def test_a_run_needs_what_its_lines_end_with(graph: str, ends: str) -> None:
    found = graph_of(graph).graph
    assert found.ends.written(found.number) == ends


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        ("a >> b\nb >> nope", "line 4, column 10: the graph names 'nope', which is not in `tasks`"),
        ("a >> b >> a", "line 3, column 5: the graph runs in a circle: a >> b >> a;"),
        ("x >> a\na >> b >> c\nc >> a", "line 3, column 10: the graph runs in a circle: a >> b >> c >> a;"),
        ("a >> a", "circle: a >> a;"),
        ("a >> (b | (a & c))", "circle: a >> a;"),
        ("a >>", "line 3, column 9: unexpected the end: expected a task name"),
        ("a b", "line 3, column 7: unexpected 'b': expected >>, & or | before it, or a new line"),
        ("a >> (b & c", "unexpected the end: a parenthesis is not closed"),
        ("a >> b)", "line 3, column 11: unexpected ')': there is no open parenthesis before it"),
        ("a >> & b", "line 3, column 10: unexpected '&': expected a task name"),
        ("()", "line 3, column 6: unexpected ')'"),
        ("a > b", "line 3, column 7: '>' has no place in a graph"),
        ("a -> b", "line 3, column 7: '-' has no place in a graph"),
        ("a >> b & c", ">> and & stand side by side, which can be read in two ways"),
        ("a | b >> c", "line 3, column 11: >> and | stand side by side"),
        ("# nothing", "the graph is empty"),
        ("(" * 60 + "a" + ")" * 60, "nested deeper than 50"),
        ("__import__('os').system('true')", 'line 3, column 16: "\'" has no place in a graph'),
        ("a.b", "'.' has no place in a graph"),
        ("a; b", "';' has no place in a graph"),
        ("[a, b] >> c", "'[' has no place in a graph"),
        ("a >> lambda: 1", "':' has no place in a graph"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(graph: str, told: str) -> None:
    assert told in wrong(graph)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("flow:\n  graph: a >> nope\ntasks: {a: {callable: f}}", (2, 15)),
        ('flow:\n  graph: "a >> nope"\ntasks: {a: {callable: f}}', (2, 16)),
        ("flow: {graph: 'a >> nope'}\ntasks: {a: {callable: f}}", (1, 21)),
        ("flow:\n  graph: |-\n\n        a\n\n          >> nope\ntasks: {a: {callable: f}}", (6, 14)),
        ("flow:\n  graph: >\n    a >>\n    nope\ntasks: {a: {callable: f}}", (2, 10)),
        ('flow:\n  graph: "a\\u0020>> nope"\ntasks: {a: {callable: f}}', (2, 10)),
        ("flow:\r\n  graph: |\r\n    a >>\r\n    nope\r\ntasks: {a: {callable: f}}", (4, 5)),
    ],
)
def test_a_place_in_a_graph_is_the_place_in_the_document(document: str, place: tuple[int, int]) -> None:
    [flaw] = check(document)
    assert (flaw.line, flaw.column) == place
    assert "nope" in flaw.text


def test_there_is_a_limit_to_what_is_read() -> None:
    many = "\n".join(f"t{number}" for number in range(501))
    assert "more than 500 tasks" in wrong(many)
    assert "names them more than 3000 times" in wrong(" & ".join(["a"] * 3001))


# A graph as it is drawn: each task may wait for earlier ones, all or any of them.

NAMES = [f"t{number}" for number in range(6)]


def group(names: list[str]) -> st.SearchStrategy[Any]:
    name, sign = st.sampled_from(names), st.sampled_from("&|")
    inner = name | st.tuples(sign, st.tuples(name, name))
    return inner | st.tuples(sign, st.tuples(inner, inner))


def said(part: Any) -> str:
    return part if isinstance(part, str) else f"({f' {part[0]} '.join(said(inner) for inner in part[1])})"


@st.composite
def graphs(draw: st.DrawFn) -> str:
    lines = [draw(st.sampled_from([NAMES[0], "(t0 | t1)", "t0 >> ((t1 >> t2) | t3)"]))]
    for number in range(1, len(NAMES)):
        if draw(st.booleans()):
            heads = draw(st.lists(st.sampled_from(NAMES[number:]), min_size=1, max_size=2, unique=True))
            sign = draw(st.sampled_from("&|"))
            lines.append(f"{said(draw(group(NAMES[:number])))} >> ({f' {sign} '.join(heads)})")
    return "\n".join(draw(st.permutations(lines)))


@settings(LOADED)
@given(graphs())
def test_a_graph_that_is_written_out_and_read_again_says_the_same(text: str) -> None:
    first = graph_of(text, " ".join(NAMES)).graph
    again = graph_of(first.written(), " ".join(NAMES)).graph
    assert (again.needs, again.ends) == (first.needs, first.ends)


@settings(LOADED)
@given(graphs())
def test_every_task_stands_after_what_it_needs(text: str) -> None:
    graph = graph_of(text, " ".join(NAMES)).graph
    assert all(graph.number(needed) < graph.number(name) for name in graph.order for needed in graph.needs[name].names)


@settings(LOADED)
@given(graphs(), st.sets(st.sampled_from(NAMES)))
def test_what_meets_a_need_is_chosen_and_is_enough(text: str, done: set[str]) -> None:
    graph = graph_of(text, " ".join(NAMES)).graph
    for need in (*graph.needs.values(), graph.ends):
        chosen = need.chosen(done)
        assert need.met(done) == need.met(chosen) or not need.met(done)
        if need.met(done):
            assert need.met(chosen)
            assert chosen <= done


def test_needs_know_their_names() -> None:
    inner = Needs(frozenset({"a"}), ((Needs(frozenset({"b"})), Needs(frozenset({"c"}))),))
    assert inner.names == {"a", "b", "c"}
