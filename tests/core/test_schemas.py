"""Params checked by a published schema alone: what is refused would be refused by the worker too."""

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from tsuzuki import flow
from tsuzuki.errors import BadParams
from tsuzuki.schemas import LOOSE, Checker


class Colour(StrEnum):
    RED = "red"


class Patient(StrEnum):
    ONE = "one"

    @classmethod
    def _missing_(cls, value: object) -> "Patient":
        return cls.ONE


class Level(IntEnum):
    LOW = 1


class Tree(BaseModel):
    size: int
    left: "Tree | None" = None


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    size: int = Field(alias="Size")


@dataclass
class Point:
    x: int
    day: date | None = None


@flow
async def takes_all(  # noqa: PLR0917 - every kind of param
    number: int,
    word: str = "x",
    numbers: tuple[int, ...] = (),
    tree: Tree | None = None,
    named: Named | None = None,
    colour: Colour = Colour.RED,
    patient: Patient = Patient.ONE,
    level: Level = Level.LOW,
    point: Point = Point(1),  # noqa: B008 - a default is only shown here
    path: Path = Path(),
    price: Decimal = Decimal(1),
    choice: Literal["a", "b"] = "a",
    at: datetime | None = None,
    wait: timedelta = timedelta(minutes=5),
    counts: dict[str, int] | None = None,
    length: Annotated[int, BeforeValidator(len)] = 1,
    data: bytes = b"x",
    few: Annotated[int, Field(ge=3)] = 3,
    trimmed: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2)] = "a",
    anything: Any = None,
    called_date: Annotated[str, Field(json_schema_extra={"format": "date"})] = "x",
) -> None:
    """Takes what there is."""


SCHEMA = takes_all.params.schema
CHECKER = Checker(SCHEMA)


def worker_takes(params: dict[str, Any]) -> bool:
    try:
        takes_all.params.decode(json.dumps(params).encode())
    except (BadParams, TypeError):  # what code of the user's raises is no fit either
        return False
    return True


def places(params: dict[str, Any]) -> list[tuple[str, tuple[int | str, ...]]]:
    """What the checker refuses, by kind and place."""
    try:
        CHECKER.check(json.dumps(params).encode())
    except pydantic.ValidationError as error:
        return [(one["type"], one["loc"]) for one in error.errors()]
    return []


def test_defaults_are_shown_and_conversions_by_code_are_marked() -> None:
    shown = SCHEMA["properties"]
    assert "default" not in shown["number"]
    assert (shown["word"]["default"], shown["colour"]["default"], shown["point"]["default"]) == (
        "x",
        "red",
        {"x": 1, "day": None},
    )
    assert {name for name, part in shown.items() if part.get(LOOSE)} == {
        "named",
        "patient",
        "length",
        "trimmed",
        "called_date",
    }
    assert SCHEMA["required"] == ["number"]


@pytest.mark.parametrize(
    ("params", "kind", "place"),
    [
        ({}, "missing", ("number",)),
        ({"number": "x"}, "int_parsing", ("number",)),
        ({"number": 1, "other": 2}, "extra_forbidden", ("other",)),
        ({"number": 1, "word": 3}, "string_type", ("word",)),
        ({"number": 1, "numbers": "ab"}, "list_type", ("numbers",)),
        ({"number": 1, "numbers": [1, "q"]}, "int_parsing", ("numbers", 1)),
        ({"number": 1, "tree": {}}, "missing", ("tree", "size")),
        ({"number": 1, "colour": "blue"}, "literal_error", ("colour",)),
        ({"number": 1, "choice": "c"}, "literal_error", ("choice",)),
        ({"number": 1, "point": {"x": 1, "y": 2}}, "extra_forbidden", ("point", "y")),
        ({"number": 1, "counts": {"a": "b"}}, "int_parsing", ("counts", "a")),
        ({"number": 1, "few": 2}, "greater_than_equal", ("few",)),
        ({"number": 1, "wait": "soon"}, "time_delta_parsing", ("wait",)),
        ({"number": 1, "at": "2026-02-30T10:00:00"}, "datetime_from_date_parsing", ("at",)),
        ({"number": 1, "point": {"x": 1, "day": "2026-02-30"}}, "date_from_datetime_parsing", ("point", "day")),
    ],
)
def test_what_does_not_fit_is_told_by_its_place(
    params: dict[str, Any], kind: str, place: tuple[int | str, ...]
) -> None:
    assert (kind, place) in places(params)
    assert not worker_takes(params)


json_values = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-5, 5)
    | some.floats(-3, 3)
    | some.sampled_from(["1", "red", "a", "one", " ab ", "2020-01-01", "PT5M", "eA==", "x" * 9]),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.sampled_from(["x", "size", "Size", "day", "left"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(some.dictionaries(some.sampled_from([*SCHEMA["properties"], "other"]), json_values, max_size=4))
def test_nothing_is_refused_that_the_worker_would_take(params: dict[str, Any]) -> None:
    params.setdefault("number", 1)
    assert not (worker_takes(params) and places(params))


def test_a_schema_that_cannot_be_read_refuses_nothing() -> None:
    strange: list[dict[str, Any]] = [
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)y("}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}, "b": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}, "b": {"enum": [1, None]}}},
    ]
    for schema in strange:
        Checker(schema).check(b'{"a": 1, "b": 2, "c": 3}')
