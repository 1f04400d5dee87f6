"""What the functions of a workflow are given, and what becomes of their results."""

import pytest

from tests.yamlflow import functions
from tests.yamlflow.making import failure, flow_of, result, steps
from tsuzuki.backends import Backend
from tsuzuki.errors import BadUsage
from tsuzuki.testing import run_flow
from tsuzuki.yamlflow.references import FromEnv, with_variables


async def test_a_parameter_is_wired_by_its_name_from_params_then_tasks_then_outputs() -> None:
    text = """
    flow: {graph: one >> two >> three, defaults: {first: P}}
    tasks:
      one:   {callable: "fn:echo", inputs: {value: 1}, outputs: [scratch.second, results.first]}
      two:   {callable: "fn:echo", inputs: {value: $node.one.output}}
      three: {callable: "fn:report", outputs: [results.all]}
    """
    assert await result(text) == {"first": 1, "all": {"title": "report", "first": "P", "second": 1}}


async def test_a_stored_param_comes_before_a_given_one_for_those_after_it() -> None:
    text = """
    flow: {graph: one >> two, defaults: {value: old}}
    tasks:
      one: {callable: "fn:echo", inputs: {value: new}, outputs: [params.value]}
      two: {callable: "fn:report", inputs: {first: $ctx.params.value}}
    """
    assert (await result(text))["two"]["first"] == "new"


async def test_several_outputs_share_a_mapping_by_name_and_a_list_by_position() -> None:
    text = """
    flow: {graph: load >> (sums & pair) >> (two & both), defaults: {path: x}}
    tasks:
      load: {callable: "fn:load", outputs: [scratch.rows]}
      sums: {callable: "fn:sums", outputs: [scratch.total, scratch.count]}
      pair: {callable: "fn:pair", outputs: [scratch.low, results.high]}
      two:  {callable: "fn:two"}
      both: {callable: "fn:total_and_count", outputs: [results.both]}
    """
    assert await result(text) == {"high": 3, "both": [6, 3]}


async def test_a_result_that_does_not_fit_its_outputs_fails_its_step() -> None:
    text = "flow: {graph: a, defaults: {value: %s}}\ntasks: {a: {callable: 'fn:echo', outputs: [results.a, results.b]}}"
    told = "its outputs are results.a, results.b, so a mapping that it returns has to have these names"
    assert told in await failure(text % "{a: 1, c: 2}")
    assert told in await failure(text % "[1, 2, 3]")
    assert await result(text % "{a: 1, b: 2, c: 3}") == {"a": 1, "b": 2}
    assert await result(text % "5") == {"a": 5, "b": 5}


async def test_typed_results_stay_typed_and_their_fields_can_be_referred_to() -> None:
    text = """
    flow: {graph: page >> (words & url), defaults: {url: abc}}
    tasks:
      page:  {callable: "fn:page"}
      words: {callable: "fn:words"}
      url:   {callable: "fn:echo", inputs: {value: $node.page.output.url}}
    """
    assert await result(text) == {"words": 3, "url": "abc"}


async def test_a_function_that_takes_anything_gets_its_inputs_alone() -> None:
    text = "flow: {graph: a, defaults: {x: 1}}\ntasks: {a: {callable: 'fn:taking', inputs: {self: 2, key: 3}}}"
    assert await result(text) == {"a": {"self": 2, "key": 3}}


async def test_names_of_options_of_ours_are_names_like_any_other() -> None:
    text = """
    flow: {graph: a}
    tasks: {a: {callable: "fn:options", map: [k], inputs: {name: n, concurrency: 2}}}
    """
    assert await result(text) == {"a": [["k", "n", 2]]}


async def test_exposed_variables_reach_the_function_and_nothing_else(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREETING", "hello-from-outside")
    text = """
    flow: {graph: a}
    tasks: {a: {callable: "fn:words_in", inputs: {text: [$env.GREETING]}}}
    runtime: {expose_env: [GREETING]}
    """
    run = await run_flow(flow_of(text.replace("fn:words_in", "tests.yamlflow.test_wiring:lengths")), backend=backend)
    assert run.result == {"a": [18]}
    assert "hello-from-outside" not in repr(run.facts)


def lengths(text: list[str]) -> list[int]:
    return [len(part) for part in text]


def test_what_is_not_exposed_is_refused_at_run_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING", "hello")
    assert with_variables([{"x": FromEnv("GREETING")}], frozenset({"GREETING"})) == [{"x": "hello"}]
    with pytest.raises(BadUsage, match=r"\$env.GREETING is not exposed"):
        with_variables([{"x": FromEnv("GREETING")}], frozenset({"OTHER"}))


async def test_a_variable_that_is_not_set_fails_its_step_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREETING", raising=False)
    text = "flow: {graph: a}\ntasks: {a: {callable: 'fn:echo', inputs: {value: $env.GREETING}}}\n"
    assert "the worker's environment has no variable of this name" in await failure(
        text + "runtime: {expose_env: [GREETING]}"
    )


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ("{value: $ctx.params.nope}", "a failed: BadUsage: $ctx.params.nope: there is no param 'nope' (there is: x)"),
        ("{value: $ctx.params.x.y}", "$ctx.params.x.y: there is no 'y' in the mapping with z"),
        ("{value: $ctx.params.x.z.9}", "there is no '9' in the list of 2"),
        ("{value: $ctx.params.x.z.0.__class__}", "there is no '__class__' in 1"),
    ],
)
async def test_a_reference_that_leads_nowhere_fails_its_step_and_says_what_there_is(inputs: str, told: str) -> None:
    text = (
        f"flow: {{graph: a, defaults: {{x: {{z: [1, 2]}}}}}}\ntasks: {{a: {{callable: 'fn:echo', inputs: {inputs}}}}}"
    )
    run = await run_flow(flow_of(text))
    assert run.error is not None
    assert told in run.error.message
    assert steps(run) == {"a": "StepFailed"}


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ('callable: "fn:echo"', "task b: its parameter 'value' has no input, and no param, earlier task or output has"),
        ('callable: "fn:echo", inputs: {valu: 1}', "has no parameter 'valu'; did you mean 'value'?"),
        ('callable: "fn:watchful", map: [1]', "has no parameter left for the item of its map"),
    ],
)
async def test_what_cannot_be_wired_is_told_before_anything_is_called(task: str, told: str) -> None:
    text = f'flow: {{graph: a >> b}}\ntasks:\n  a: {{callable: "fn:echo", inputs: {{value: 1}}}}\n  b: {{{task}}}'
    assert told in await failure(text)
    assert functions.ORDER == []
