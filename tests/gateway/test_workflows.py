"""YAML flows over HTTP: a form with the text, and a run that brings it."""

import hashlib
from typing import Any

import pytest

from tests.gateway.conftest import House
from tsuzuki import Worker, task
from tsuzuki.yamlflow import Callables, Compiler

TEXT = """
flow:
  graph: first >> (second & third) >> last
  defaults: {n: 20}
tasks:
  first: {callable: double, inputs: {n: $ctx.params.n}}
  second: {callable: double, inputs: {n: $node.first.output}}
  third: {callable: REPLACED, inputs: {n: $node.first.output}}
  last: {callable: double, inputs: {n: $node.second.output}}
"""
GOOD, BAD = TEXT.replace("REPLACED", "double"), TEXT.replace("REPLACED", "breaks")


@task
def double(n: int) -> int:
    return 2 * n


@task
def breaks(n: int) -> int:
    raise ValueError(f"no {n}")


@task
def join(first: int, word: int) -> str:
    return f"{first} {word}"


WORKFLOWS = Compiler(Callables(registered={"double": double, "breaks": breaks, "join": join}))


async def send(house: House, text: bytes | str, code: int = 200, **fields: str) -> Any:
    data = {"flow_name": "report", **fields}
    files = {"workflow": ("flow.yaml", text if isinstance(text, bytes) else text.encode(), "application/yaml")}
    answer = await house.client.post("/runs/yaml", data={k: v for k, v in data.items() if v != "-"}, files=files)
    assert answer.status_code == code, answer.text
    return answer.json()


ADDRESSED = GOOD.replace("callable: double", f"callable: '{__name__}:double'")


async def test_a_run_brings_its_flow(house: House) -> None:
    answer = await send(house, ADDRESSED, tag="")
    assert answer["status"] == "PENDING"
    run = await house.get(f"/runs/{answer['run_id']}")
    assert (run["tasks"], run["params"], run["tag"], run["flow_name"]) == ({}, {"n": 20}, "default", "report")
    await house.work((), workflows=WORKFLOWS)
    run = await house.ended(answer["run_id"])
    assert run["tasks"] == dict.fromkeys(["first", "second", "third", "last"], "SUCCEEDED")
    digest = hashlib.sha256(ADDRESSED.encode()).hexdigest()
    assert (run["workflow_yaml_sha256"], run["workflow_yaml_bytes"]) == (digest, len(ADDRESSED))
    page = await house.get("/runs", workflow_yaml_sha256=digest)
    assert [item["run_id"] for item in page["items"]] == [run["run_id"]]
    assert "double" not in str(run)


async def test_what_follows_a_failed_task_stays_pending(house: House) -> None:
    await house.work((), workflows=WORKFLOWS, tags=["lab"])
    run_id = (await send(house, BAD, tag="lab"))["run_id"]
    run = await house.ended(run_id, "FAILED", include="records")
    assert (run["tasks"]["first"], run["tasks"]["third"], run["tasks"]["last"]) == ("SUCCEEDED", "FAILED", "PENDING")
    assert "ValueError: no 40" in run["error"]
    assert "ValueError" in run["task_records"]["third"]["traceback"]
    inputs = {name: record["inputs"] for name, record in run["task_records"].items()}
    assert inputs == {"first": {"n": 20}, "second": {"n": 40}, "third": {"n": 40}, "last": None}
    assert run["tag"] == "lab"
    assert run["workflow_yaml_sha256"] == hashlib.sha256(BAD.encode()).hexdigest()


BY_NAME = """
flow: {graph: first >> last, defaults: {n: 20}}
tasks:
  first: {callable: double}
  last: {callable: join, inputs: {word: $ctx.params.n}}
"""


async def test_a_parameter_named_like_an_earlier_task_gets_its_result_and_the_record_shows_it(house: House) -> None:
    await house.work((), workflows=WORKFLOWS)
    run_id = (await send(house, BY_NAME))["run_id"]
    run = await house.ended(run_id, include="records")
    assert run["task_records"]["last"]["output"] == "40 20"
    inputs = {name: record["inputs"] for name, record in run["task_records"].items()}
    assert inputs == {"first": {"n": 20}, "last": {"first": 40, "word": 20}}
    assert (await house.get(f"/runs/{run_id}/tasks"))["task_records"]["last"]["inputs"] == inputs["last"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"flow: [",
        b"flow: {graph: a}\n",
        GOOD.replace("double", "double, x: 1", 1).encode(),
        (GOOD + "flows: {}\n").encode(),
        (GOOD + "discovery: {}\n").encode(),
        GOOD.replace(">> last", ">> first").encode(),
        b"a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nflow: {graph: a}\n",
    ],
)
async def test_a_text_that_is_no_workflow_is_refused(small: House, text: bytes) -> None:
    if not text:
        return
    answer = await send(small, text, 422)
    assert answer["detail"].startswith("invalid workflow yaml")
    assert answer["error_id"] == "ERR-TSUZUKI-0002"
    assert await small.get("/runs") == []


async def test_a_callable_without_a_colon_is_refused_unless_a_living_worker_has_registered_it(house: House) -> None:
    answer = await send(house, GOOD, 422)
    assert (answer["errors"][0]["line"], answer["errors"][0]["column"]) == (6, 21)
    assert answer["detail"].startswith("invalid workflow yaml: line 6, column 21: 'double' is no task that a living")
    async with Worker(house.runs.backend, workflows=WORKFLOWS):
        assert (await send(house, GOOD))["status"] == "PENDING"
        answer = await send(house, GOOD.replace("double", "duoble", 1), 422)
        assert "did you mean 'double'?" in answer["detail"]
    await send(house, GOOD, 422)


async def test_a_flaw_is_told_by_line_and_column(small: House) -> None:
    answer = await send(small, GOOD.replace(">> last", ">> lost"), 422)
    assert answer["errors"][0]["line"] == 3
    assert answer["errors"][0]["column"] > 1


@pytest.mark.parametrize("tag", ["a.b", "a b", "標準", "x\n"])
async def test_a_bad_tag_is_refused(small: House, tag: str) -> None:
    assert (await send(small, GOOD, 422, tag=tag))["detail"] == "invalid tag"


async def test_missing_fields_are_told_as_such(small: House) -> None:
    answer = await send(small, GOOD, 422, flow_name="-")
    assert [error["loc"] for error in answer["errors"]] == [["body", "flow_name"]]
    answer = await send(small, GOOD, 422, flow_name="")
    assert [(error["type"], error["loc"]) for error in answer["errors"]] == [
        ("string_too_short", ["body", "flow_name"])
    ]
    for content, kind in ((b"x", "text/plain"), (b"--x\r\n", "multipart/form-data"), (b"{}", "application/json")):
        sent = await small.client.post("/runs/yaml", content=content, headers={"content-type": kind})
        assert sent.status_code == 422
        assert sent.json()["detail"].startswith("invalid request: ")
    sent = await small.client.post("/runs/yaml", data={"flow_name": "x"})
    assert [error["loc"] for error in sent.json()["errors"]] == [["body", "workflow"]]


@pytest.mark.parametrize("name", [" ", "\t\n", "\u3000"])
async def test_a_blank_flow_name_is_refused(small: House, name: str) -> None:
    answer = await send(small, ADDRESSED, 422, flow_name=name)
    assert [error["loc"] for error in answer["errors"]] == [["body", "flow_name"]]
    answer = await small.post("/runs", {"flow_name": name}, 422)
    assert [error["loc"] for error in answer["errors"]] == [["body", "flow_name"]]
    answer = await small.post("/runs/batch", {"runs": [{"flow_name": name}]})
    assert (answer["accepted"], answer["refused"]) == (0, 1)
    assert await small.get("/runs") == []


async def test_an_idempotency_key_belongs_to_one_text(small: House) -> None:
    codes = []
    for text in (ADDRESSED, ADDRESSED, f"{ADDRESSED}# another one\n"):
        form = {"flow_name": "report", "workflow": text}
        sent = await small.client.post("/runs/yaml", data=form, headers={"Idempotency-Key": "once"})
        codes.append((sent.status_code, sent.json().get("number")))
    assert codes == [(200, 1), (200, 1), (422, None)]


async def test_a_workflow_may_have_262144_bytes_and_not_one_more(house: House) -> None:
    whole = ADDRESSED + "#" * (262_144 - len(ADDRESSED))
    await send(house, whole)
    answer = await send(house, whole + "#", 413)
    assert (answer["detail"], answer["error_id"]) == ("workflow too large", "ERR-TSUZUKI-0016")
    assert (await send(house, b"#" * 3_000_000, 413))["detail"] == "workflow too large"
