"""The shapes of the bodies that requests bring, for validation and for OpenAPI."""

import re
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation

TAG: Final = r"^[A-Za-z0-9_-]+$"
NOT_BLANK: Final = r"\S"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]")


def _written(moment: object) -> object:
    """Takes a time only as it is written for people: of a number nobody can say in which unit it is."""
    if moment is not None and not (isinstance(moment, str) and _DATE.match(moment)):
        raise ValueError("a time with a date and an offset, for example 2026-01-31T08:00:00+00:00")
    return moment


Label = Annotated[str, Field(min_length=1, max_length=256)]


class SubmitRun(BaseModel):
    """A run to be started; fields that are not named here are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"flow_name": "crawl", "params": {"site": "a", "pages": 500}, "tag": "default", "tags": ["nightly"]}
            ]
        }
    )

    flow_name: Annotated[
        str, Field(min_length=1, max_length=512, pattern=NOT_BLANK, description="A flow that a worker knows.")
    ]
    params: Annotated[dict[str, Any] | None, Field(description="The flow's parameters.")] = None
    tag: Annotated[
        str | None, Field(pattern=TAG, max_length=128, description="Routes the run to workers with this tag.")
    ] = None
    tags: Annotated[
        list[Label] | None, Field(max_length=64, description="Labels to search by; the tag if none is given.")
    ] = None
    key: Annotated[
        str | None,
        Field(min_length=1, max_length=512, description="At most one active run holds a key; another is 409."),
    ] = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher is claimed earlier.")] = 0
    continues: Annotated[
        str | None, Field(max_length=64, description="A run whose finished items are skipped in this one.")
    ] = None
    not_before: Annotated[
        AwareDatetime | None,
        BeforeValidator(_written),
        Field(description="Is claimed at this time at the earliest; a time with its offset."),
    ] = None


class SubmitBatch(BaseModel):
    """Runs to be started, in order; each is accepted or refused on its own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "runs": [
                        {"flow_name": "crawl", "params": {"site": "a", "pages": 500}},
                        {"flow_name": "crawl", "params": {"site": "b", "pages": 20}, "key": "crawl:b"},
                    ]
                }
            ]
        }
    )

    runs: Annotated[
        list[SkipValidation[SubmitRun | Any]],  # each is read on its own, by the route
        Field(
            min_length=1,
            max_length=1000,
            description="Each as `POST /runs` takes it; one that does not fit is refused, and the others are not.",
        ),
    ]


class CancelRun(BaseModel):
    """Why a run is cancelled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "not needed any more"}]})

    reason: Annotated[str | None, Field(max_length=1000, description="For people; it is kept with the run.")] = None


class ResumeRun(BaseModel):
    """How a run goes on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"failed": True}]})

    failed: Annotated[bool, Field(description="Whether what failed is tried again.")] = True


class PatchWorker(BaseModel):
    """What may be changed of a worker: whether it is shown."""

    model_config = ConfigDict(strict=True, json_schema_extra={"examples": [{"hidden": True}]})

    hidden: Annotated[bool, Field(description="Whether lists leave the worker out.")]
