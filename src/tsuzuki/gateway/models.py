"""The shapes of answers, for OpenAPI."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.gateway import examples
from tsuzuki.gateway.usage import Usage
from tsuzuki.lifecycle import Status
from tsuzuki.taskfold import TaskState


class Accepted(BaseModel):
    """A run that was accepted: it will be executed."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.ACCEPTED]})

    run_id: str
    status: Status
    number: Annotated[int | None, Field(description="A small number inside this store, for people.")] = None


class FieldError(BaseModel):
    """One field that does not fit, by its place."""

    type: str
    loc: list[str | int]
    msg: str
    line: int | None = None
    column: int | None = None


class BatchEntry(BaseModel):
    """What became of one run of a batch: its id, or what was wrong with it."""

    run_id: str | None = None
    number: int | None = None
    status: Status | None = None
    error: str | None = None
    error_id: str | None = None
    errors: list[FieldError] | None = None


class BatchAnswer(BaseModel):
    """What became of each run of a batch, in order."""

    items: list[BatchEntry]
    accepted: int
    refused: int


class Counts(BaseModel):
    """How many items and steps have an outcome."""

    done: int
    failed: int
    skipped: int
    steps: int


class StepProgress(BaseModel):
    """How far a map is, or a step that tells of it."""

    step: str
    name: str
    total: int | None = None
    done: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    eta: Annotated[float | None, Field(description="Seconds that it may take yet.")] = None
    text: str = ""


class RunSummary(BaseModel):
    """A run in a list."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.SUMMARY]})

    run_id: str
    number: Annotated[int, Field(description="A small number inside this store, for people.")]
    flow_name: str
    tag: str
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    status: Status
    updated_at: Annotated[float, Field(description="Unix seconds; strictly increasing in a store.")]
    heartbeat_at: Annotated[float, Field(description="Unix seconds.")]
    error: str | None
    worker_id: Annotated[str | None, Field(description="The worker that holds the run, or held it last.")]
    created_at: str
    started_at: str | None
    finished_at: str | None
    counts: Counts
    attempt: int
    progress: Annotated[list[StepProgress], Field(description="How far its active maps and steps are.")]
    usage: Annotated[Usage | None, Field(description="What it used of language models; null: it asked none.")]
    cost: Annotated[float | None, Field(description="What that cost (US dollars); null: not known.")]
    waiting_reason: Annotated[str | None, Field(description="Why it waits; null: no reason was given.")]
    waiting_until: Annotated[
        float | None, Field(description="Until when it waits (Unix seconds); null: it does not wait for a time.")
    ]
    interrupted: Annotated[
        bool,
        Field(description="Whether its process was stopped on the way: it waits to be resumed."),
    ]
    worker_lost: Annotated[bool, Field(description="Whether the worker that holds it is gone, or silent for long.")]


class Strip(BaseModel):
    """How many items ended well and badly, in bins of so many seconds."""

    start: float
    width: float
    done: list[int]
    failed: list[int]


class TaskRecord(BaseModel):
    """What is recorded of the calls of one task."""

    state: TaskState
    started_at: float | None
    ended_at: float | None
    duration_ms: float | None
    error: str | None
    traceback: str | None
    inputs: Any
    output: Any
    artifacts: list[dict[str, Any]]
    done: int
    failed: int
    skipped: int
    total: int | None
    busy_ms: float
    strip: Annotated[Strip | None, Field(description="When the items of a map ended.")]


class Cut(BaseModel):
    """What a cancel cut off."""

    never_started: int
    finished_anyway: int
    interrupted: int


class RunSnapshot(RunSummary):
    """A run as it is now."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.SNAPSHOT]})

    workflow_yaml_sha256: str | None
    workflow_yaml_bytes: int | None
    cancel_requested_at: float | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    cut: Cut | None
    params: dict[str, Any]
    params_truncated: Annotated[bool, Field(description="Whether params are shortened; include=params gives all.")]
    tasks: dict[str, TaskState]
    start_time: float | None
    end_time: float | None
    wheels: Annotated[dict[str, str], Field(description="The wheels its worker had, with their sha256.")]
    position: Annotated[int, Field(description="How many facts its journal has.")]
    key: str | None
    priority: int
    continues: str | None
    not_before: float | None
    result: Any
    result_truncated: Annotated[bool, Field(description="Whether the result is left out here; /result gives it.")]
    result_blob: str | None
    task_records: Annotated[
        dict[str, TaskRecord] | None, Field(description="With include=records, task_records, full or all.")
    ] = None
    task_records_truncated: bool | None = None


class RunTasks(BaseModel):
    """The tasks of a run."""

    run_id: str
    flow_name: str
    status: Status
    tasks: dict[str, TaskState]
    task_records: dict[str, TaskRecord]
    task_records_truncated: bool


class RunPage(BaseModel):
    """A page of runs."""

    items: list[RunSnapshot | RunSummary]
    next_cursor: str | None


class Item(BaseModel):
    """A step or an item with its outcome."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.ITEM]})

    position: int
    status: Literal["done", "failed", "skipped"]
    kind: str
    task: str
    step: str
    key: str
    attempt: int
    tries: int
    took: float
    at: str
    ended_at: Annotated[float, Field(description="The same as `at`, as Unix seconds.")]
    error: str | None
    usage: Annotated[Usage | None, Field(description="What it used of language models; null: nothing.")]
    inputs: Annotated[
        dict[str, Any] | None,
        Field(description="What it was given, by the names of the parameters; null where that is not kept."),
    ]
    inputs_truncated: Annotated[
        bool,
        Field(description="Whether long ones are cut: in a list after about 240 bytes, else where they were kept."),
    ]
    preview: Annotated[str, Field(description="The beginning of its value as JSON, cut after 120 bytes.")]


class ItemPage(BaseModel):
    """A page of items."""

    items: list[Item]
    next_cursor: str | None


class LogLine(BaseModel):
    """A line of a run's log."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.LOG_LINE]})

    number: int
    at: float
    level: str
    text: str
    name: str
    key: str
    step: str
    logger: str
    position: int


class LogPage(BaseModel):
    """Log lines of a run, and the number to go on from."""

    items: list[LogLine]
    next_after: int


class Removed(BaseModel):
    """A run that was removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"run_id": examples.RUN_ID, "deleted": True}]})

    run_id: str
    deleted: bool


class Health(BaseModel):
    """That the gateway lives."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok", "version": "0.1.0"}]})

    status: str
    version: str


class Problem(BaseModel):
    """What went wrong (RFC 9457), with the error id of the documentation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Not found",
                    "status": 404,
                    "detail": "run not found",
                    "error_id": "ERR-TSUZUKI-0005",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    error_id: str
    errors: list[FieldError] | None = None
    run_id: Annotated[str | None, Field(description="The active run that holds the key.")] = None


class Title(BaseModel):
    """How people call an application, by language."""

    en: str
    ja: str


class ApplicationView(BaseModel):
    """An installed application."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "commits", "title": {"en": "Commits", "ja": "コミット"}, "module": "/apps/commits/main.js"}
            ]
        }
    )

    name: str
    title: Title
    module: Annotated[str | None, Field(description="The module of its pages, where it has pages.")]


class Letter(BaseModel):
    """A run that failed, kept for those who look after the system."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.LETTER]})

    id: str
    timestamp: float
    reason: str
    error: str | None
    run_id: str
    number: int
    flow_name: str
    tag: str
    tags: list[str]
    worker_id: str | None
    num_delivered: int
    subject: str


class LetterPage(BaseModel):
    """A page of dead letters."""

    items: list[Letter]
    next_cursor: str | None


class DroppedLetter(BaseModel):
    """A dead letter that was dropped."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "7", "deleted": True}]})

    id: str
    deleted: bool
