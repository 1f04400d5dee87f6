"""The OpenAPI document: complete, described, and true."""

import asyncio
import contextlib
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.gateway.conftest import House
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options

MEANT: list[Any] = [positive_data_acceptance]
"""Cursors, statuses and workflows have a meaning that no schema says: a text that fits it may still be refused."""


def document() -> dict[str, Any]:
    return create_app(options=Options()).openapi()


def test_it_is_openapi_3_1_and_every_operation_is_described() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["responses"]["200"]["description"], where
            assert set(operation["responses"]) - {"200"} or path == "/health", where


def test_every_reference_leads_somewhere() -> None:
    found = document()
    schemas = found["components"]["schemas"]

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert {name.rpartition("/")[2] for name in references(found)} <= set(schemas)


async def test_no_request_makes_it_fail_or_break_its_word(small: House) -> None:
    """Sends what the document allows, and what it does not; nothing is a 500, and every answer has its shape."""
    await small.work()
    await small.ended(await small.submit("sums"))
    await small.ended(await small.submit("fails"), "FAILED")
    await asyncio.to_thread(prove, small.url)


def prove(url: str) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex="(watch|events)$")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 20
    for operation in operations:
        for mode in GenerationMode:

            @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case=operation.as_strategy(generation_mode=mode))
            def holds(case: schemathesis.Case) -> None:
                case.call_and_validate(timeout=10, excluded_checks=MEANT)

            with contextlib.suppress(Unsatisfiable):  # what takes nothing can be asked in no wrong way
                holds()
