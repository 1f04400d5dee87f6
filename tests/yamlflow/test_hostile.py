"""Whatever is sent, the answer is `BadWorkflow`, soon, and nothing is made or executed of it."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.yamlflow.making import LOADED
from tests.yamlflow.test_reading import FULL
from tsuzuki.errors import BadWorkflow, WorkflowTooLarge
from tsuzuki.yamlflow import check, parse

MOST = 262_144


def refused(text: bytes | str) -> str:
    began = time.process_time()
    with pytest.raises(BadWorkflow) as caught:
        parse(text)
    took = time.process_time() - began
    assert took < 10, f"it kept its reader busy for {took:.1f} s"
    assert caught.value.line >= 1
    assert caught.value.column >= 1
    assert len(str(caught.value)) < 20_000
    return str(caught.value)


def test_a_bomb_of_aliases_is_refused_without_being_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "aliases make this far larger than it looks" in refused("\n".join(lines))


def test_a_long_text_that_is_repeated_by_aliases_is_refused() -> None:
    assert "aliases make this far larger" in refused(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]")


def test_aliases_do_not_nest_deeper_than_brackets_may() -> None:
    lines = ["a0: &a0 [[[[[[[[[[x]]]]]]]]]]"]
    lines += [f"a{n}: &a{n} [[[[[[[[[*a{n - 1}]]]]]]]]]" for n in range(1, 5)]
    assert "far larger than it looks" in refused("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * MOST, id="brackets"),
        pytest.param("{" * MOST, id="braces"),
        pytest.param("- " * (MOST // 2), id="lists"),
        pytest.param("? " * (MOST // 2), id="keys"),
        pytest.param("{a: " * (MOST // 4), id="mappings"),
        "[{" * 50 + "}]" * 50,
        "\n".join("  " * n + "a:" for n in range(300)),
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    refused(text)


def test_ten_megabytes_are_refused_by_their_size_alone() -> None:
    began = time.process_time()
    with pytest.raises(WorkflowTooLarge):
        parse(b"[" * 10_000_000)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "text",
    [
        "a: \x00",
        b"a: \x00\x00",
        "a: \x07",
        "a: \x7f",
        "a: \ufffe",
        "\ud800",
        b"a: \xff\xfe",
        b"\x80",
        "a: 日本".encode("utf-16"),
        "a: 日本".encode("shift-jis"),
        "flow:\n  graph: a\x00\n",
    ],
)
def test_what_is_not_text_is_refused(text: bytes | str) -> None:
    told = refused(text)
    assert "is not UTF-8" in told or "cannot stand in YAML" in told


def test_where_it_stops_being_text_is_told() -> None:
    assert "line 2, column 5: this is not UTF-8" in refused("あ: 1\nいう: ".encode() + b"\xff")
    assert "line 2, column 3: the character U+0000" in refused("a: 1\nb:\x00")


@pytest.mark.parametrize(
    "value",
    [
        '!!python/object/apply:os.system ["touch {file}"]',
        "!!python/object:subprocess.Popen {args: touch}",
        "!!python/name:os.system",
        '!!python/object/new:os.system ["touch {file}"]',
        "!!binary aGVsbG8=",
        "!!timestamp 2024-01-01",
        "!!set {a}",
        "!custom x",
        "! x",
        "!!str 5",
    ],
)
def test_no_tag_makes_an_object(value: str, tmp_path: Path) -> None:
    file = tmp_path / "made"
    text = f"flow: {{graph: a}}\ntasks:\n  a: {{callable: f}}\nruntime: {value.replace('{file}', str(file))}"
    assert "line 4, column 10: the tag" in refused(text)
    assert not file.exists()


@pytest.mark.parametrize(
    "graph",
    [
        "__import__('pathlib').Path('made').touch()",
        "a >> open('made', 'w')",
        "exec(open)",
        "a if a else b",
        "[x for x in a]",
        "a >> b := 1",
        "a\n  import os",
        "{a}",
        "f'{a}'",
        "a @ b",
        "a or b",
        "`touch made`",
        "$(touch made)",
    ],
)
def test_a_graph_is_not_python_and_nothing_of_it_is_executed(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(f"    {line}" for line in graph.splitlines())
    assert "line " in refused(f"flow:\n  graph: |\n{lines}\ntasks:\n  a: {{callable: f}}\n  b: {{callable: f}}\n")
    assert list(tmp_path.iterdir()) == []


def large() -> Iterator[str]:
    """Texts of the largest size that keep a careless reader busy."""
    names = [f"t{n}" for n in range(500)]
    tasks = "tasks: {" + ", ".join(f"{n}: {{callable: f}}" for n in names) + "}"
    half = " & ".join(names[:250]), " & ".join(names[250:])
    yield "flow:\n  graph: |\n" + "\n".join(f"    ({half[0]}) >> ({half[1]})" for _ in range(6)) + "\n" + tasks
    choices = " | ".join(f"({a} & {b})" for a, b in zip(names[:250] * 3, names[1:251] * 3, strict=True))
    yield f"flow:\n  graph: |\n    ({choices}) >> ({half[1]})\n{tasks}"
    yield "flow:\n  graph: |\n    " + " >> ".join(names) + "\n" + tasks
    yield "flow:\n  graph: |\n    " + ">>" * 100_000 + "\n" + tasks
    yield "flow:\n  graph: |\n    " + "(a)" * 80_000 + "\n" + tasks
    yield "flow:\n  graph: |\n    " + "#" * 200_000 + "\n" + tasks
    outputs = ", ".join(f"results.x{n}" for n in range(20))
    writing = "{" + ", ".join(f"{n}: {{callable: f, outputs: [{outputs}]}}" for n in names[:450]) + "}"
    pairs = "\n".join(f"    ({a} | {b})" for a, b in pairwise(names[:450]))
    yield f"flow:\n  graph: |\n{pairs}\ntasks: {writing}"
    yield "a: " + "\n ".join(["x"] * 80_000)
    yield 'a: "' + "\\x41" * 60_000 + '"'
    yield "\n".join(f"k{n}: 1" for n in range(20_000))
    yield "? a\n" * 60_000
    yield "a: 1" + "0" * 200_000
    yield "a: " + "1_" * 100_000
    yield "a: " + "1:" * 100_000
    yield "tasks: {" + ", ".join(f"t{n}: {{callabel: f}}" for n in range(9_000)) + "}"
    yield "a: " + "'" * 200_001
    long = [f"{n:03}{'x' * 90}" for n in range(500)]
    yield f"flow:\n  graph: {' & '.join(long)}\ntasks: {{{', '.join(f'{n}y: {{}}' for n in long)}}}"
    wrong = ", ".join(f"p{n}: $node.{'z' * 60}{n}.output" for n in range(1500))
    others = ", ".join(f"{n}: {{}}" for n in long)
    yield f"flow: {{graph: a}}\ntasks: {{a: {{callable: f, inputs: {{{wrong}}}}}, {others}}}"
    short = [f"{n:03}{'x' * 30}" for n in range(500)]
    yield f"flow:\n  graph: {' & '.join(short)}\ntasks: {{{', '.join(f'{n}y: {{}}' for n in short)}}}"
    yield "%TAG ! tag:x,2000:\n" * 10_000


@pytest.mark.parametrize("text", list(large()), ids=range(20))
def test_a_large_text_is_answered_soon(text: str) -> None:
    began = time.process_time()
    check(text[:MOST])
    assert time.process_time() - began < 10  # it takes about one; a reader that is quadratic takes minutes


@settings(LOADED)
@given(st.one_of(st.text(), st.binary()))
def test_any_text_is_a_workflow_or_a_bad_one(text: str | bytes) -> None:
    check(text)  # anything but `BadWorkflow` would be raised


PIECES = st.sampled_from(
    [
        *"abc:,[]{}&*!|>'\"%@`#-?\n\t \\$()~0\x85\u2028\ufeff",
        "  ",
        "\n  ",
        ": ",
        "- ",
        ">>",
        "flow: ",
        "graph: ",
        "tasks: ",
        "callable: ",
        "inputs: ",
        "outputs: ",
        "retry: ",
        "map: ",
        "over: ",
        "timeout: ",
        "$node.a.output",
        "$env.A",
        "a: {callable: f}",
        "---\n",
        "|\n    ",
        "!!str ",
        "<<: ",
        "&a ",
        "*a",
        "1e9",
        "0x",
    ]
)


@settings(LOADED)
@given(st.lists(PIECES).map("".join))
def test_any_text_made_of_the_pieces_of_yaml_is_a_workflow_or_a_bad_one(text: str) -> None:
    check(text)  # anything but `BadWorkflow` would be raised


@settings(LOADED)
@given(st.data())
def test_a_sound_workflow_with_a_piece_put_in_or_cut_out_is_one_or_a_bad_one(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FULL)))
    until = data.draw(st.integers(at, min(at + 20, len(FULL))))
    text = FULL[:at] + data.draw(st.lists(PIECES, max_size=3).map("".join)) + FULL[until:]
    lines = text.count("\n") + text.count("\x85") + text.count("\u2028") + 2
    assert all(1 <= flaw.line <= lines and flaw.column >= 1 for flaw in check(text))
