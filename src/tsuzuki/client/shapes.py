"""What the gateway answers, as typed dictionaries; it may send more than is named here."""

from typing import Any, Literal, NotRequired, TypedDict

TERMINAL: frozenset[str] = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Accepted(TypedDict):
    """A run that was accepted: it will be executed."""

    run_id: str
    status: str
    number: NotRequired[int]


class RunSummary(TypedDict):
    """A run in a list."""

    run_id: str
    flow_name: str
    tag: str
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    status: str
    updated_at: float
    heartbeat_at: float | None
    error: str | None
    worker_id: NotRequired[str | None]
    number: NotRequired[int]
    created_at: NotRequired[str]
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    counts: NotRequired[dict[str, int]]
    usage: NotRequired[dict[str, Any] | None]
    cost: NotRequired[float | None]
    waiting_reason: NotRequired[str | None]
    waiting_until: NotRequired[float | None]


class RunSnapshot(RunSummary):
    """A run as it is now."""

    params: dict[str, Any]
    tasks: dict[str, str]
    start_time: float | None
    end_time: float | None
    cancel_requested_at: float | None
    cancel_requested_by: str | None
    workflow_yaml_sha256: str | None
    workflow_yaml_bytes: int | None
    task_records: NotRequired[dict[str, Any]]
    task_records_truncated: NotRequired[bool]
    attempt: NotRequired[int]
    position: NotRequired[int]
    progress: NotRequired[Any]
    result: NotRequired[Any]
    cut: NotRequired[dict[str, int] | None]
    params_truncated: NotRequired[bool]
    result_truncated: NotRequired[bool]


class RunTasks(TypedDict):
    """The tasks of a run."""

    run_id: str
    flow_name: str
    status: str
    tasks: dict[str, str]
    task_records: dict[str, Any]
    task_records_truncated: bool


class RunPage(TypedDict):
    """A page of runs."""

    items: list[RunSummary]
    next_cursor: str | None


class BatchAnswer(TypedDict):
    """What became of each run of a batch, in order."""

    items: list[dict[str, Any]]
    accepted: int
    refused: int


class Item(TypedDict):
    """A step or an item with its outcome."""

    position: int
    status: Literal["done", "failed", "skipped"]
    task: str
    step: str
    key: str
    attempt: int
    tries: int
    took: float
    at: str
    error: str | None
    inputs: dict[str, Any] | None
    inputs_truncated: bool


class Outcome(Item):
    """A step or an item with all that is recorded of it."""

    output: Any
    output_bytes: int
    output_truncated: bool
    traceback: str | None
    artifacts: list[dict[str, Any]]


class ItemPage(TypedDict):
    """A page of items."""

    items: list[Item]
    next_cursor: str | None


class LogLine(TypedDict):
    """A line of a run's log."""

    number: int
    at: float
    level: str
    text: str
    name: str
    key: str


class LogPage(TypedDict):
    """Log lines of a run, and the number to go on from."""

    items: list[LogLine]
    next_after: int


class Worker(TypedDict):
    """A worker and what it is doing."""

    worker_id: str
    state: str
    hidden: bool
    tags: list[str]
    flows: list[str]
    resolves: bool
    last_seen_at: float
    current_run_id: str | None
    last_run_status: str | None
    stopped_at: float | None
    stop_reason: str | None
    wheel_sync: dict[str, Any]


class FlowView(TypedDict):
    """A flow that live workers have published."""

    name: str
    doc: str
    params: dict[str, Any] | None
    tag: str
    tags: list[str]
    workers: list[str]


class Letter(TypedDict):
    """A run that failed, kept for those who look after the system."""

    id: str
    timestamp: float
    reason: str
    error: str | None
    run_id: str
    flow_name: str
    tag: str
    worker_id: str | None
    num_delivered: int


class LetterPage(TypedDict):
    """A page of dead letters."""

    items: list[Letter]
    next_cursor: str | None


class Event(TypedDict):
    """A fact of a run's journal; it has the fields of its kind too."""

    position: int
    kind: str


class WheelView(TypedDict):
    """A wheel that workers install."""

    name: str
    size_bytes: int
    bucket: str
    nuid: str
    modified: float
    sha256_hex: str
    tags: list[str]
    package: str
    version: str


class WheelEvent(TypedDict):
    """That a wheel came or went."""

    event_id: str
    occurred_at: float
    action: str
    wheel_name: str
    tags: list[str]
    source: dict[str, str | None]
    actor: dict[str, str | None]


class DeletedWheel(TypedDict):
    """A wheel that was deleted."""

    name: str
    deleted: bool
