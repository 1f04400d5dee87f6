"""What a workflow may say, and how it is told what it may not."""

import hashlib

import pytest

from tests.yamlflow.making import nodes_text
from tsuzuki import Retry
from tsuzuki.errors import BadRequest, BadWorkflow, WorkflowTooLarge
from tsuzuki.yamlflow import check, parse
from tsuzuki.yamlflow.references import FromEnv, FromNode, FromParams

FULL = """\
version: 1
flow:
  graph: |
    load >> (clean & stats) >> report
  defaults: {path: data.csv, limit: 3, deep: [1, {a: null, b: 1.5, c: true}]}
tasks:
  load:   {callable: "mypkg.tasks:load", outputs: [scratch.rows]}
  clean:
    callable: mypkg.tasks:clean
    inputs: {rows: $node.load.output, first: "$node.load.output.0.name", price: $$5, note: 5 $}
    retry: {attempts: 3, backoff: 0.5}
    timeout: 30
    map: {over: $node.load.output, concurrency: 4, key: id, on_error: collect}
  stats:  {callable: stats, retry: 2, inputs: {of: [{limit: $ctx.params.limit}], home: $env.HOME}}
  report: {callable: "mypkg.tasks:report", outputs: [results.text, params.title]}
  unused: {callable: "mypkg.tasks:unused"}
runtime: {expose_env: [HOME]}
"""


def test_a_workflow_is_read_as_it_stands() -> None:
    workflow = parse(FULL)
    assert workflow.version == 1
    assert workflow.nodes == ("load", "clean", "stats", "report")
    assert list(workflow.tasks) == ["load", "clean", "stats", "report", "unused"]
    assert workflow.defaults == {"path": "data.csv", "limit": 3, "deep": [1, {"a": None, "b": 1.5, "c": True}]}
    assert workflow.expose_env == {"HOME"}
    assert (workflow.sha256, workflow.size) == (hashlib.sha256(FULL.encode()).hexdigest(), len(FULL))
    clean = workflow.tasks["clean"]
    assert clean.inputs == {
        "rows": FromNode("load", (), "$node.load.output"),
        "first": FromNode("load", ("0", "name"), "$node.load.output.0.name"),
        "price": "$5",
        "note": "5 $",
    }
    assert (clean.retry, clean.timeout) == (Retry(attempts=3, backoff=0.5), 30.0)
    assert clean.map is not None
    assert (clean.map.concurrency, clean.map.key, clean.map.on_error) == (4, ("id",), "collect")
    stats = workflow.tasks["stats"]
    assert stats.retry == Retry(attempts=2)
    assert stats.inputs["of"] == [{"limit": FromParams("limit", (), "$ctx.params.limit")}]
    assert stats.inputs["home"] == FromEnv("HOME")
    assert [str(output) for output in workflow.tasks["report"].outputs] == ["results.text", "params.title"]
    assert parse(FULL.encode()) == workflow


def test_a_key_without_a_value_says_nothing() -> None:
    text = (
        "version:\nflow:\n  graph: a\n  defaults:\ntasks:\n  a:\n    callable: f\n    inputs:\n    retry: ~\nruntime:\n"
    )
    assert parse(text).tasks["a"].inputs == {}
    assert "`flow` needs `graph:`" in check("flow:\n  graph:\ntasks: {a: {callable: f}}")[0].text


def test_the_version_is_1_unless_it_is_said() -> None:
    assert parse("flow: {graph: a}\ntasks: {a: {callable: f}}").version == 1


def test_several_flaws_are_told_together_with_their_places() -> None:
    with pytest.raises(BadWorkflow) as caught:
        parse("flow: {graph: a, defauts: {}}\ntasks:\n  a: {callable: f, timeout: soon}\n  b: {}\n")
    error = caught.value
    assert isinstance(error, BadRequest)
    assert (error.http_status, error.error_id, error.exit_code) == (422, "ERR-TSUZUKI-0002", 1)
    assert (error.line, error.column) == (1, 18)
    assert str(error) == (
        "invalid workflow yaml: line 1, column 18: `flow` has no key 'defauts'; did you mean 'defaults'?; "
        "line 3, column 29: `timeout` is a number of seconds above 0; line 4, column 6: task 'b' needs `callable:`"
    )
    assert [(p["line"], p["column"]) for p in error.problems] == [(1, 18), (3, 29), (4, 6)]
    assert check(FULL) == []


def minimal(task: str = "callable: f", top: str = "", flow: str = "") -> str:
    return f"flow: {{graph: a{flow}}}\ntasks:\n  a: {{{task}}}\n{top}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            minimal(top="flows: {}"),
            "line 4, column 1: a workflow has no key 'flows'; a file holds one flow: use `flow`",
        ),
        (minimal(top="discovery: {}"), "'discovery'; code is not searched for: name each function with `callable`"),
        (minimal(top="runtme: {}"), "'runtme'; did you mean 'runtime'?"),
        (minimal(top="version: 2"), "line 4, column 10: this version is not known; write `version: 1`"),
        (minimal(top='version: "1"'), "this version is not known"),
        (minimal(top="runtime: {expose: []}"), "`runtime` has no key 'expose'; did you mean 'expose_env'?"),
        (minimal(top="runtime: {expose_env: HOME}"), "`expose_env` is a list"),
        (minimal(top="runtime: {expose_env: [a b]}"), "'a b' cannot be the name of a variable"),
        (minimal(top="runtime: {expose_env: [TSUZUKI_BACKEND]}"), "TSUZUKI_BACKEND belongs to the worker itself"),
        (minimal(top="runtime: {expose_env: [OPENAI_API_KEY]}"), "OPENAI_API_KEY belongs to the worker itself"),
        (minimal("callable: f, input: {}"), "task 'a' has no key 'input'; did you mean 'inputs'?"),
        (minimal("inputs: {}"), "task 'a' needs `callable:`"),
        (minimal("callable: 'a b:c'"), "'a b:c' names no function"),
        (minimal("callable: 5"), "`callable` is a text"),
        (minimal("callable: 'a:b:c'"), "names no function"),
        (minimal("callable: f, inputs: []"), "`inputs` is a mapping"),
        (minimal("callable: f, inputs: {a b: 1}"), "'a b' cannot be the name of a parameter"),
        (minimal("callable: f, outputs: results.x"), "`outputs` is a list"),
        (minimal("callable: f, outputs: [x]"), "'x' is no output; write scratch.NAME, results.NAME or params.NAME"),
        (minimal("callable: f, outputs: [result.x]"), "'result.x' is no output"),
        (minimal("callable: f, outputs: [results.x, results.x]"), "an output is named twice"),
        (minimal("callable: f, retry: {attempts: 0}"), "Retry(attempts=…) is "),
        (minimal("callable: f, retry: {on: ValueError}"), "`retry` has no key 'on'"),
        (minimal("callable: f, retry: true"), "`retry` is a number of attempts"),
        (minimal("callable: f, retry: 1.5"), "`retry` is a number of attempts"),
        (minimal("callable: f, timeout: 0"), "`timeout` is a number of seconds above 0"),
        (minimal("callable: f, timeout: 30s"), "`timeout` is a number of seconds above 0"),
        (minimal("callable: f, map: 5"), "a map goes over a list"),
        (minimal("callable: f, map: {concurrency: 2}"), "`map` needs `over:`"),
        (minimal("callable: f, map: {over: [1], concurrency: 0}"), "`concurrency` is a number from 1 to 1000"),
        (minimal("callable: f, map: {over: [1], on_error: ignore}"), "`on_error` is fail or collect"),
        (minimal("callable: f, map: [1], outputs: [results.x, results.y]"), "the results of a map are one list"),
        (minimal("callable: f, map: $env.HOME", "runtime: {expose_env: [HOME]}"), "a map goes over a list"),
        (minimal(flow=", defaults: []"), "`defaults` is a mapping"),
        (minimal(flow=", defaults: {x: [$node.a.output]}"), "defaults are values, and '$node.a.output' is a reference"),
        (minimal(flow=", defaults: {x: 1, x: 2}"), "the key 'x' is there twice"),
        ("flow: {graph: [a]}\ntasks: {a: {callable: f}}", "`graph` is a text"),
        ("flow: a\ntasks: {a: {callable: f}}", "`flow` is a mapping with graph, defaults"),
        ("flow: {graph: a}\ntasks: [a]", "`tasks` is a mapping"),
        ("flow: {graph: a}\ntasks: {a: f}", "task 'a' is a mapping with callable, inputs"),
        ("flow: {graph: a}", "a workflow needs `tasks:`"),
        ("tasks: {a: {callable: f}}", "a workflow needs `flow:`"),
        ("flow: {}\ntasks: {a: {callable: f}}", "`flow` needs `graph:`"),
        ("flow: {graph: a}\ntasks: {a: {callable: f}, 'b c': {callable: f}}", "'b c' cannot name a task"),
        ("- a", "a workflow is a mapping with version, flow, tasks, runtime"),
        ("", "there is nothing in it"),
        ("# only a comment", "there is nothing in it"),
        ("a: b: c", "line 1, column 5: this is not YAML: mapping values are not allowed"),
        ("a: [b", "this is not YAML: while parsing a flow sequence did not find expected"),
        ("a: 1\n---\nb: 2", "line 2, column 1: a second document begins here"),
        ("? [a]\n: b", "a key is a text"),
        ("? {a: b}\n: b", "a key is a text"),
        ("base: &b {x: 1}\nflow:\n  <<: *b", "line 3, column 3: merge keys (<<) are not read here"),
        ("a: *nowhere", "*nowhere names no anchor above it"),
        ("a: &a [*a]", "*a stands inside of &a itself"),
    ],
)
def test_what_may_not_be_said_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(BadWorkflow) as caught:
        parse(text)
    assert told in str(caught.value)
    assert str(caught.value).startswith("invalid workflow yaml: line ")


@pytest.mark.parametrize(
    "value", ["yes", "No", "ON", "off", "010", "1_000", "12:30", "1:20:30", "0b11", ".inf", ".NaN"]
)
def test_a_value_that_readers_of_yaml_disagree_about_has_to_be_put_in_quotes(value: str) -> None:
    [flaw] = check(minimal(flow=f", defaults: {{x: {value}}}"))
    assert "means different things" in flaw.text
    assert parse(minimal(flow=f", defaults: {{x: '{value}'}}")).defaults == {"x": value}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~", None),
        ("", None),
        ("True", True),
        ("-12", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("y", "y"),
        ("'5'", "5"),
        ('"\\u3042"', "あ"),
    ],
)
def test_a_value_is_what_the_core_of_yaml_says(written: str, meant: object) -> None:
    found = parse(f"flow:\n  graph: a\n  defaults:\n    x: {written}\ntasks: {{a: {{callable: f}}}}").defaults["x"]
    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize("number", ["9" * 30, "1e999", "9" * 5000, "0x" + "f" * 20])
def test_a_number_that_is_too_large_is_refused(number: str) -> None:
    [flaw] = check(minimal(flow=f", defaults: {{x: {number}}}"))
    assert "is too large" in flaw.text


def test_an_alias_stands_for_what_it_names() -> None:
    text = "flow: {graph: a >> b}\ntasks:\n  a: {callable: f, retry: &r {attempts: 4}}\n  b: {callable: f, retry: *r}"
    assert parse(text).tasks["b"].retry == Retry(attempts=4)


# References


def referring(reference: str, graph: str = "a >> b\nc", top: str = "") -> str:
    text = nodes_text(graph, ["a", "b", "c"])
    return text.replace("inputs: {name: b}", f"inputs: {{name: [{{x: {reference}}}]}}") + top


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("$node.d.output", "names a task that is not there; there is a, b, c"),
        ("$node.c.output", "$node.c.output: c does not come before b in the graph; add `c >> b`"),
        ("$node.b.output", "b does not come before b"),
        ("$node.a", "'$node.a' is no reference; write $node.TASK.output"),
        ("$node.a.result", "(here: $node.a.output)"),
        ("$node.a.output.", "is no reference"),
        ("$ctx.param.x", "is no reference"),
        ("$env.HOME", "$env.HOME is not exposed; write `runtime: {expose_env: [HOME]}`"),
        ("$HOME", "'$HOME' is no reference; write $node.TASK.output, $ctx.params.NAME or $env.NAME; a literal dollar"),
        ("$", "is no reference"),
    ],
)
def test_a_reference_that_cannot_be_right_is_refused_where_it_stands(reference: str, told: str) -> None:
    [flaw] = check(referring(reference))
    assert told in flaw.text
    assert (flaw.line, flaw.column) == (7, 48)


def test_a_reference_to_a_task_that_never_runs_is_refused() -> None:
    [flaw] = check(referring("$node.c.output", graph="a >> b"))
    assert "c is not in the graph, so it never runs" in flaw.text


def test_references_may_go_to_any_task_before_also_to_an_alternative() -> None:
    assert check(referring("$node.a.output.x.0", graph="a >> c >> b")) == []
    assert check(referring("$node.a.output", graph="(a | c) >> b")) == []
    assert check(referring("$ctx.params.whatever")) == []
    assert check(referring("$env.HOME", top="runtime: {expose_env: [HOME]}")) == []


def test_two_tasks_store_the_same_name_only_in_order_or_as_alternatives() -> None:
    def storing(graph: str) -> list[str]:
        text = nodes_text(graph, ["a", "b", "c"])
        for name in "ab":
            text = text.replace(f"inputs: {{name: {name}}}", f"inputs: {{name: {name}}}, outputs: [results.x]")
        return [flaw.text for flaw in check(text)]

    assert storing("a >> b >> c") == []
    assert storing("(a | b) >> c") == []
    assert storing("a | b") == []
    assert storing("(a & b) >> c") == [
        "a and b both store results.x, and neither comes before the other; give one another name"
    ]


# Size


def test_a_workflow_may_be_as_large_as_the_limit_and_not_a_byte_larger() -> None:
    text = FULL.encode()
    fitting = text + b"#" * (262_144 - len(text))
    assert parse(fitting).size == 262_144
    with pytest.raises(WorkflowTooLarge) as caught:
        parse(fitting + b"#")
    error = caught.value
    assert (error.http_status, error.error_id) == (413, "ERR-TSUZUKI-0016")
    assert str(error).startswith("workflow too large: 262,145 bytes, and at most 262,144 are taken")
    with pytest.raises(WorkflowTooLarge):
        parse("あ" * 40, most_bytes=100)
    assert [flaw.line for flaw in check(fitting + b"#")] == [1]
