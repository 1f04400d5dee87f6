"""The OpenAPI document: complete, described, and true."""

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from pydantic import BaseModel
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.gateway.conftest import House
from tsuzuki.gateway import bodies, create_app, models
from tsuzuki.gateway.options import Options

QUICK = settings(
    max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
MEANT: list[Any] = [positive_data_acceptance]
"""Cursors, statuses and workflows have a meaning that no schema says: a text that fits it may still be refused.

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
    for name, kind in (vars(models) | vars(bodies)).items():
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not BaseModel:
            for example in kind.model_json_schema().get("examples", []):
                assert set(kind.model_validate(example).model_dump(exclude_unset=True)) == set(example), name


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


def prove(url: str, without: str) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex=without)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 20
    for operation in operations:
        for mode in GenerationMode:

            @settings(
                max_examples=3 if operation.path.startswith("/api/") else 10,  # of applications, which test themselves
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def holds(case: schemathesis.Case) -> None:
                untyped = [negative_data_rejection] if case.method == "GET" else []
                case.call_and_validate(timeout=10, excluded_checks=MEANT + untyped)

            with contextlib.suppress(Unsatisfiable):  # what takes nothing can be asked in no wrong way
                holds()
