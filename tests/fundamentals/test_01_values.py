"""What goes through a journal comes back as it was, or is refused in words."""

import dataclasses
import datetime as dt
import math
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Status, flow, task


class Page(pydantic.BaseModel):
    url: str
    seen: dt.datetime


@dataclasses.dataclass
class Picture:
    data: bytes
    place: Path


async def test_models_dataclasses_dates_paths_and_bytes_come_back_as_they_were(run: RunFlow) -> None:
    page = Page(url="u", seen=dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    picture = Picture(b"\xff\x00", Path("a/b"))

    @task
    async def load(name: str) -> Page:
        return page

    @task
    async def draw() -> Picture:
        return picture

    seen = []

    @flow
    async def look() -> tuple[Page, Picture]:
        seen.append((await load("x"), await draw()))
        return seen[-1]

    assert (await run(look)).result == (page, picture)
    assert seen == [(page, picture)]


async def test_a_flow_receives_the_recorded_value_the_first_time_too(run: RunFlow) -> None:
    @task
    async def pair() -> Any:
        return (1, 2)

    @flow
    async def look() -> Any:
        return type(await pair()).__name__

    assert (await run(look)).result == "list"


class Measured(pydantic.BaseModel):
    mean: float | None = None


class Spelled(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")

    mean: float | None = None


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (Any, math.inf, "result is inf"),
        (Any, {"scores": [1.0, math.nan]}, r"result\['scores'\]\[1\] is nan"),
        (dict, {"score": -math.inf}, r"result\['score'\] is -inf"),
        (object, math.nan, "result is nan"),
        (float | str, math.inf, "result is inf"),
        (list[Any], [None, math.inf], r"result\[1\] is inf"),
        (Measured, Measured(mean=math.inf), r"result\['mean'\] is inf"),
        (Any, Measured(mean=math.inf), r"result\['mean'\] is inf"),
    ],
)
async def test_a_number_that_json_has_no_word_for_is_never_changed_silently(
    run: RunFlow, annotation: Any, value: Any, place: str
) -> None:
    async def measure() -> Any:
        return value

    measure.__annotations__["return"] = annotation
    ended = await run(flow(measure))
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert ended.error.type == "NotJSON"
    assert re.search(f"{place}, which JSON has no word for", ended.error.message)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.inf),
        (list[float], [1.0, -math.inf]),
        (dict[str, float | None], {"a": math.inf, "b": None}),
        (Spelled, Spelled(mean=math.inf)),
        (Any, ["NaN", "Infinity", None]),
        (list[Any], ["NaN", None, 1.5]),
    ],
)
async def test_an_annotated_number_comes_back_as_it_was(run: RunFlow, annotation: Any, value: Any) -> None:
    async def measure() -> Any:
        return value

    measure.__annotations__["return"] = annotation
    ended = await run(flow(measure))
    assert (ended.status, ended.result) == (Status.COMPLETED, value)


@pytest.mark.parametrize("value", ["half \ud800", ["half \ud800"], {"half \ud800": 1}])
async def test_a_text_that_utf8_cannot_say_is_refused_with_what_to_do(run: RunFlow, value: Any) -> None:
    @task
    async def read() -> Any:
        return value

    @flow
    async def reading() -> Any:
        return await read()

    ended = await run(reading)
    assert ended.error is not None
    assert "NotJSON" in ended.error.message
    assert "backslashreplace" in ended.error.message
