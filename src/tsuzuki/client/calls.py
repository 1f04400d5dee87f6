"""Every request to the gateway, as a value: the sync and the async client only send it, in their own way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from tsuzuki.client import shapes

Answer = TypeVar("Answer")
Words: TypeAlias = str | Sequence[str] | None
"""A word, or several."""
PAGE: Final = 200
"""How much is asked for at a time."""


ITEMS: Final = 1000
"""How many items are asked for at a time."""


class RunFilters(TypedDict, total=False):
    """Which runs to list."""

    status: Words
    flow: str | None
    tag: str | None
    label: str | None
    key: str | None
    text: str | None
    workflow_yaml_sha256: str | None
    updated_after: float | None
    include: Words


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request; its type says what the answer is."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    files: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False
    """Whether the answer is text and not JSON."""
    timeout: float | None = None
    """How long the answer may take, where that is longer than for others (seconds)."""

    def read(self, body: bytes) -> Answer:
        """Reads the answer."""
        answer: Answer = body.decode() if self.text else msgspec.json.decode(body)  # type: ignore[assignment] # as typed
        return answer


def given(**values: Any) -> dict[str, Any]:
    """Leaves out what was not given."""
    return {name: value for name, value in values.items() if value is not None}


def run_path(run_id: str | int, more: str = "") -> str:
    """Gives the path of a run, and of what is below it."""
    return f"/runs/{quote(str(run_id), safe='')}{more}"


def _idempotent(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def submit_run(
    flow_name: str,
    params: Mapping[str, Any] | None = None,
    tag: str | None = None,
    tags: Sequence[str] | None = None,
    *,
    key: str | None = None,
    priority: int | None = None,
    continues: str | None = None,
    not_before: str | None = None,
    idempotency_key: str | None = None,
) -> Call[shapes.Accepted]:
    """Starts a run."""
    body = {"flow_name": flow_name, "params": dict(params or {})}
    body |= given(tag=tag, tags=None if tags is None else list(tags), key=key, priority=priority)
    body |= given(continues=continues, not_before=not_before)
    return Call("POST", "/runs", json=body, headers=_idempotent(idempotency_key))


def submit_runs(runs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Call[shapes.BatchAnswer]:
    """Starts many runs."""
    return Call("POST", "/runs/batch", json={"runs": list(runs)}, headers=_idempotent(idempotency_key))


def submit_run_yaml(
    workflow_yaml: str | bytes, flow_name: str, tag: str | None = None, *, idempotency_key: str | None = None
) -> Call[shapes.Accepted]:
    """Starts a run of a flow written as YAML."""
    text = workflow_yaml.encode() if isinstance(workflow_yaml, str) else workflow_yaml
    return Call(
        "POST",
        "/runs/yaml",
        files={"workflow": ("flow.yaml", text, "application/yaml")},
        form={"flow_name": flow_name, **given(tag=tag)},
        headers=_idempotent(idempotency_key),
    )


def get_run(run_id: str | int, include: Words = None) -> Call[shapes.RunSnapshot]:
    """Gets a run as it is now."""
    return Call("GET", run_path(run_id), given(include=include))


def get_tasks(run_id: str | int) -> Call[shapes.RunTasks]:
    """Gets the tasks of a run."""
    return Call("GET", run_path(run_id, "/tasks"))


def get_result(run_id: str | int) -> Call[Any]:
    """Gets what a flow returned."""
    return Call("GET", run_path(run_id, "/result"))


def list_runs(
    *,
    status: Words = None,
    flow: str | None = None,
    tag: str | None = None,
    label: str | None = None,
    key: str | None = None,
    text: str | None = None,
    workflow_yaml_sha256: str | None = None,
    updated_after: float | None = None,
    include: Words = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Call[shapes.RunPage]:
    """Gets a page of runs."""
    query = given(status=status, flow=flow, tag=tag, label=label, key=key, text=text, include=include)
    query |= given(workflow_yaml_sha256=workflow_yaml_sha256, updated_after=updated_after)
    return Call("GET", "/runs", {**query, "cursor": cursor or "", "limit": limit})


def cancel_run(run_id: str | int, reason: str | None = None) -> Call[shapes.RunSnapshot]:
    """Asks for a run to be cancelled."""
    return Call("POST", run_path(run_id, "/cancel"), json=given(reason=reason))


def resume_run(run_id: str | int, *, failed: bool = True) -> Call[shapes.RunSnapshot]:
    """Lets a run go on."""
    return Call("POST", run_path(run_id, "/resume"), json={"failed": failed})


def delete_run(run_id: str | int) -> Call[dict[str, Any]]:
    """Removes a run that has ended."""
    return Call("DELETE", run_path(run_id))


def list_items(
    run_id: str | int,
    *,
    status: str | None = None,
    error: str | None = None,
    step: str | None = None,
    key: str | None = None,
    cursor: str | None = None,
    limit: int = ITEMS,
) -> Call[shapes.ItemPage]:
    """Gets a page of items."""
    query = given(status=status, error=error, step=step, key=key, cursor=cursor, limit=limit)
    return Call("GET", run_path(run_id, "/items"), query)


def get_item(run_id: str | int, position: int) -> Call[shapes.Outcome]:
    """Gets one item."""
    return Call("GET", run_path(run_id, f"/items/{position}"))


def get_log(run_id: str | int, *, after: int = 0, limit: int = 500) -> Call[shapes.LogPage]:
    """Gets log lines after a number."""
    return Call("GET", run_path(run_id, "/logs"), {"after": after, "limit": limit})


def list_workers(
    *, scope: str | None = None, state: str | None = None, include_hidden: bool = False, limit: int | None = None
) -> Call[list[shapes.Worker]]:
    """Lists workers."""
    query = given(scope=scope, state=state, limit=limit)
    return Call("GET", "/workers", {**query, "include_hidden": str(include_hidden).lower()})


def hide_worker(worker_id: str, *, hidden: bool = True) -> Call[dict[str, Any]]:
    """Hides a worker, or shows it again."""
    return Call("PATCH", f"/workers/{quote(worker_id, safe='')}", json={"hidden": hidden})


def list_flows() -> Call[list[shapes.FlowView]]:
    """Lists the flows that live workers have published."""
    return Call("GET", "/flows")


def get_metrics() -> Call[str]:
    """Gets the metrics, in the text format of Prometheus."""
    return Call("GET", "/metrics", text=True)


def health() -> Call[dict[str, Any]]:
    """Asks whether the gateway lives."""
    return Call("GET", "/health")


def list_letters(*, cursor: str | None = None, limit: int = 100) -> Call[shapes.LetterPage]:
    """Gets a page of dead letters."""
    return Call("GET", "/dlq", given(cursor=cursor, limit=limit))


def _letter(letter_id: str, more: str = "") -> str:
    return f"/dlq/{quote(letter_id, safe='')}{more}"


def get_letter(letter_id: str) -> Call[shapes.Letter]:
    """Gets a dead letter."""
    return Call("GET", _letter(letter_id))


def replay_letter(letter_id: str) -> Call[shapes.Accepted]:
    """Resumes the run of a dead letter."""
    return Call("POST", _letter(letter_id, "/replay"))


def drop_letter(letter_id: str) -> Call[dict[str, Any]]:
    """Drops a dead letter."""
    return Call("DELETE", _letter(letter_id))
