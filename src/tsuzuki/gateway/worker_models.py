"""The shapes of answers about workers and the flows that they know, for OpenAPI."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.gateway import examples


class WheelSync(BaseModel):
    """What a worker's wheels are."""

    enabled: bool
    last_result: Literal["disabled", "idle", "ok", "error"]
    last_attempt_at: float | None
    last_success_at: float | None
    last_synced_at: float | None
    last_error: str | None
    selected_count: int
    updated_count: int
    removed_count: int
    skipped_incompatible_count: int
    selected_wheels: list[str]
    updated_wheels: list[str]
    removed_wheels: list[str]
    skipped_incompatible: list[str]
    installed_wheels: list[str]


class WorkerView(BaseModel):
    """A worker and what it is doing."""

    worker_id: str
    instance_id: str
    state: Literal["RUNNING", "IDLE", "STOPPED_GRACEFUL", "DISCONNECTED"]
    hidden: bool
    tags: list[str]
    flows: list[str]
    resolves: bool
    last_seen_at: float
    last_heartbeat_at: float
    heartbeat_at: float
    started_at: float
    current_run_id: str | None
    last_run_id: str | None
    last_run_status: str | None
    last_run_started_at: float | None
    last_run_finished_at: float | None
    stopped_at: float | None
    stop_reason: str | None
    updated_at: float
    wheel_sync: WheelSync


class PatchedWorker(BaseModel):
    """A worker after a change."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"worker_id": "worker-1", "hidden": True, "updated_at": 1767225612.25}]}
    )

    worker_id: str
    hidden: bool
    updated_at: float


class FlowView(BaseModel):
    """A flow that live workers have published."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.FLOW]})

    name: str
    doc: str
    params: Annotated[dict[str, Any] | None, Field(description="The JSON schema of its parameters.")]
    tag: str
    tags: list[str]
    workers: list[str]
