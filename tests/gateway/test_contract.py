"""The OpenAPI document: complete, described, and true."""

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from pydantic import BaseModel, TypeAdapter
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.gateway.conftest import House
from tsuzuki.backends import WorkerState
from tsuzuki.gateway import bodies, create_app, models, wheel_models, worker_models
from tsuzuki.gateway.contract import api_routes, reachable
from tsuzuki.gateway.meanings import MEANS
from tsuzuki.gateway.options import Options
from tsuzuki.lifecycle import Status

QUICK = settings(
    max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
MEANT = {
    *(("/runs", "POST"), ("/runs/yaml", "POST"), ("/wheels", "POST"), ("/wheels/history", "GET")),
    *(("/api/projects", "POST"), ("/api/notes/sessions", "POST"), ("/api/notes/uploads", "POST")),
    *(("/api/commits/connections", "POST"), ("/api/commits/bulk", "POST"), ("/api/commits/bulk/retry", "POST")),
}
"""Idempotency keys, workflows, wheels, names of files, addresses, and whether there is something to collect mean what
no schema says: what fits it may still be refused. So do cursors. Of all other routes, what fits is accepted.

A query has no types: a number where a text is asked for is that text, so only bodies can be of a wrong type.
"""


def document() -> dict[str, Any]:
    return create_app(options=Options()).openapi()


def test_it_is_openapi_3_1_and_every_operation_is_described() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/api/"):
                continue  # of an application, which says of itself what it says
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["responses"]["200"]["description"], where
            assert set(operation["responses"]) - {"200"} or path == "/health", where


def test_every_route_is_told_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs/http.md").read_text()
    for path, operations in document()["paths"].items():
        if path.startswith("/api/"):
            continue  # of an application, which has a page of its own
        shown = re.sub(r"\{\w+\}", "ID", path)
        for method in operations:
            assert f"{method.upper()} {shown}`" in text, f"{method.upper()} {shown} is not in docs/http.md"


def test_the_examples_are_what_they_are_examples_of() -> None:
    for name, kind in (vars(models) | vars(worker_models) | vars(bodies) | vars(wheel_models)).items():
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not BaseModel:
            for example in kind.model_json_schema().get("examples", []):
                assert set(kind.model_validate(example).model_dump(exclude_unset=True)) == set(example), name


def test_every_field_has_a_description_and_every_route_examples_that_fit() -> None:
    app = create_app(options=Options())
    found = app.openapi()
    shapes, own = found["components"]["schemas"], {p: o for p, o in found["paths"].items() if not p.startswith("/api/")}
    fields = {
        f"{name}.{field}": said for name in sorted(shapes) for field, said in shapes[name].get("properties", {}).items()
    }
    assert len(fields) > 200
    assert [name for name, said in fields.items() if not said.get("description")] == []
    known = {field for field in fields if field.partition(".")[0] in reachable(own, shapes)}
    assert MEANS.keys() <= {name for field in known for name in (field, field.partition(".")[2])}, "unused words"
    kinds = {
        (route.path_format, method.lower()): route.response_model
        for route in api_routes(app)
        for method in route.methods
    }
    for path, operations in own.items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert all(parameter.get("description") for parameter in operation.get("parameters", ())), where
            for said in operation.get("requestBody", {}).get("content", {}).values():
                assert said["example"], where
            [said] = operation["responses"]["200"]["content"].values()
            assert said["example"] is not None, where
            if (kind := kinds[path, method]) is not None:
                TypeAdapter(kind).validate_python(said["example"], strict=False)


def test_what_can_have_few_values_says_which() -> None:
    paths = document()["paths"]

    def words(path: str, name: str) -> list[str]:
        [found] = [one["schema"] for one in paths[path]["get"]["parameters"] if one["name"] == name]
        listed: dict[str, Any] = found["anyOf"][0]
        enum: list[str] = listed.get("items", listed)["enum"]
        return enum

    assert words("/runs", "status") == [*(status.value for status in Status), "INTERRUPTED"]
    assert words("/runs/{run_id}/items", "status") == ["done", "skipped", "failed"]
    assert words("/workers", "state") == [state.value for state in WorkerState]


async def test_paths_that_are_not_there_and_methods_that_are_not_taken_are_told_as_such(small: House) -> None:
    run_id = await small.submit("nothing")
    for path, methods in (
        ("/runs", "GET, POST"),
        ("/runs/yaml", "POST"),
        ("/runs/batch", "POST"),
        (f"/runs/{run_id}", "DELETE, GET"),
        ("/dlq/1", "DELETE, GET"),
        ("/health", "GET, HEAD"),
    ):
        answer = await small.client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods), path
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0107"
    answer = await small.client.get("/nowhere")
    assert (answer.status_code, answer.json()["error_id"]) == (404, "ERR-TSUZUKI-0106")
    for path in ("/health", "/health/ready", "/"):
        answer = await small.client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


def test_every_reference_leads_somewhere() -> None:
    found = document()
    schemas = found["components"]["schemas"]

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert {name.rpartition("/")[2] for name in references(found)} <= set(schemas)


async def test_no_request_makes_it_fail_or_break_its_word(house: House) -> None:
    """Sends what the document allows, and what it does not; nothing is a 500, and every answer has its shape."""
    await house.work()
    await house.ended(await house.submit("sums"))
    await house.ended(await house.submit("fails"), "FAILED")
    # What stays open is shown elsewhere, and what asks another server is not ours alone to answer. Applications keep
    # files of their own: one store is enough for them.
    on_nats = house.runs.backend.url.startswith("nats")
    await asyncio.to_thread(prove, house.url, "(watch|events|ollama/models)$" + ("|^/api/" if on_nats else ""))


OF_THE_CONNECTION = {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"}
"""Headers that speak of how a request is sent: what is wrong with them the server says before anybody else."""


def can_be_wrong(told: dict[str, Any]) -> bool:
    """Whether a request can break what is told of it: any text will do where nothing but a text is asked for."""
    asked = [
        (one["in"], set(one["schema"]) - {"title", "description", "examples"}) for one in told.get("parameters", [])
    ]
    plain = all(place == "path" and words == {"type"} for place, words in asked)
    texts = all(one["schema"].get("type") == "string" for one in told.get("parameters", []))
    return "requestBody" in told or not (plain and texts)


def prove(url: str, without: str) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", timeout=60).exclude(path_regex=without)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 20
    for operation in operations:
        for mode in GenerationMode if can_be_wrong(operation.definition.raw) else [GenerationMode.POSITIVE]:

            @settings(
                max_examples=2 if operation.path.startswith("/api/") else 8,  # of applications, which test themselves
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def holds(case: schemathesis.Case) -> None:
                assume(not OF_THE_CONNECTION & {name.lower() for name in case.headers or {}})
                excluded: list[Any] = [negative_data_rejection] if case.method == "GET" else []
                meant = (case.path, case.method) in MEANT
                if meant or "cursor" in (case.query or {}):
                    excluded.append(positive_data_acceptance)
                case.call_and_validate(timeout=60, excluded_checks=excluded)

            with contextlib.suppress(Unsatisfiable):  # what takes nothing can be asked in no wrong way
                holds()
