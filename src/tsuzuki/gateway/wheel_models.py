"""The shapes of answers about wheels, and of what workers tell of theirs."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

NAME: Final = "crawling-1.2.0-py3-none-any.whl"
WHEEL: Final[dict[str, Any]] = {
    "name": NAME,
    "size_bytes": 48213,
    "bucket": "tsuzuki_wheels",
    "digest": "SHA-256=vrCJOtkjgcX2G_bQ1RkhCoDVwtUGLRYyC7cpDBkJVko=",
    "sha256_b64": "vrCJOtkjgcX2G_bQ1RkhCoDVwtUGLRYyC7cpDBkJVko=",
    "sha256_hex": "beb0893ad92381c5f61bf6d0d519210a80d5c2d5062d16320bb7290c1909564a",
    "mtime": "2026-01-01T00:00:00+00:00",
    "modified": 1767225600.0,
    "nuid": "6f1e0b3c2b0f4a559a430d5a3b1f6f3e",
    "tags": ["gpu"],
    "package": "crawling",
    "version": "1.2.0",
}
EVENT: Final[dict[str, Any]] = {
    "event_id": "0d5a3b1f6f3e4a559a436f1e0b3c2b0f",
    "occurred_at": 1767225600.0,
    "action": "upload",
    "wheel_name": NAME,
    "tags": ["gpu"],
    "size_bytes": 48213,
    "sha256_hex": WHEEL["sha256_hex"],
    "replace": True,
    "actor": {"tenant_id": "lab", "api_key_id": "3f9c0a1b2d4e"},
    "source": {
        "remote_addr": "10.0.0.7",
        "x_forwarded_for": None,
        "x_real_ip": None,
        "user_agent": "tsuzuki",
        "host": "gateway:8000",
        "scheme": "http",
    },
}
NO_WHEELS: Final[dict[str, Any]] = {
    "enabled": False,
    "last_result": "disabled",
    "last_attempt_at": None,
    "last_success_at": None,
    "last_synced_at": None,
    "last_error": None,
    "selected_count": 0,
    "updated_count": 0,
    "removed_count": 0,
    "skipped_incompatible_count": 0,
    "selected_wheels": [],
    "updated_wheels": [],
    "removed_wheels": [],
    "skipped_incompatible": [],
    "installed_wheels": [],
}
"""What a worker tells of wheels that installs none."""


class WheelView(BaseModel):
    """A wheel that workers install."""

    model_config = ConfigDict(json_schema_extra={"examples": [WHEEL]})

    name: str
    size_bytes: int
    bucket: str
    digest: str
    sha256_b64: str
    sha256_hex: str
    mtime: str
    modified: Annotated[float, Field(description="When it came, as Unix seconds.")]
    nuid: Annotated[str, Field(description="Differs with every upload.")]
    tags: Annotated[list[str], Field(description="Workers with one of them install it; none: all do.")]
    package: str
    version: str


class DeletedWheel(BaseModel):
    """A wheel that was deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": NAME, "deleted": True}]})

    name: str
    deleted: bool


class WheelActor(BaseModel):
    """Whose key it was."""

    tenant_id: str | None
    api_key_id: str | None


class WheelSource(BaseModel):
    """Where the request came from."""

    remote_addr: str | None
    x_forwarded_for: str | None
    x_real_ip: str | None
    user_agent: str | None
    host: str | None
    scheme: str | None


class WheelEventView(BaseModel):
    """That a wheel came or went."""

    model_config = ConfigDict(json_schema_extra={"examples": [EVENT]})

    event_id: str
    occurred_at: float
    action: Literal["upload", "delete"]
    wheel_name: str
    tags: list[str]
    size_bytes: int
    sha256_hex: str
    replace: bool | None
    actor: WheelActor
    source: WheelSource
