"""The only code that reads the environment: what can be set, its name there, and its default."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from tsuzuki.errors import BadUsage

logger: Final = logging.getLogger("tsuzuki.settings")

PREFIX: Final = "TSUZUKI_"
Value = TypeVar("Value")


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """Gives the data directory: as given, from TSUZUKI_DATA_DIR, or `.tsuzuki` in the current folder."""
    return Path(given or os.environ.get(f"{PREFIX}DATA_DIR") or ".tsuzuki")


def backend_url(given: str | None = None, directory: str | os.PathLike[str] | None = None) -> str:
    """Gives the address of the store: as given, from TSUZUKI_BACKEND, or the SQLite file in the data directory."""
    url = given or (None if directory else os.environ.get(f"{PREFIX}BACKEND"))
    return url or f"sqlite:{data_dir(directory) / 'tsuzuki.db'}"


def nats_credentials() -> dict[str, str]:
    """Gives how to prove who we are to NATS, where the address does not say it.

    TSUZUKI_NATS_CREDS, TSUZUKI_NATS_NKEY, TSUZUKI_NATS_TOKEN, TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD;
    TSUZUKI_NATS_TLS_CA, TSUZUKI_NATS_TLS_CERT and TSUZUKI_NATS_TLS_KEY.
    """
    names = ("creds", "nkey", "token", "user", "password", "tls_ca", "tls_cert", "tls_key")
    given = {name: os.environ.get(f"{PREFIX}NATS_{name.upper()}", "") for name in names}
    return {name: value for name, value in given.items() if value}


def grace_period() -> float:
    """Gives how long a cancelled or draining run may take to end: TSUZUKI_GRACE_SECONDS, or 30."""
    return _seconds("GRACE_SECONDS", 30.0)


def lease(*, one_machine: bool) -> float:
    """Gives how long a worker may be silent before its runs are taken over: TSUZUKI_LEASE_SECONDS, or 30, or 6.

    On one machine a lock tells at once that a process has ended, so the lease is only for those that stand still.
    Elsewhere silence is all that tells of a dead host: two looks and this lease are less than ten seconds.
    """
    return _seconds("LEASE_SECONDS", 30.0 if one_machine else 6.0)


def default_tag() -> str:
    """Gives the tag of runs and workers that name none: TSUZUKI_DEFAULT_TAG, or `default`."""
    return _valid("DEFAULT_TAG", _tag) or "default"


def worker_disconnect_timeout() -> float:
    """Gives after how much silence a worker is shown as DISCONNECTED: TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC, or 20."""
    return _valid("WORKER_DISCONNECT_TIMEOUT_SEC", _above_zero) or 20.0


def work_queue() -> dict[str, Any]:
    """Gives what is set of the work queue and the dead letters on NATS, by option; the defaults are the options' own.

    TSUZUKI_WORK_SUBJECT_PREFIX, TSUZUKI_CONSUMER_ACK_WAIT_SEC, TSUZUKI_CONSUMER_MAX_DELIVER,
    TSUZUKI_CONSUMER_MAX_ACK_PENDING, TSUZUKI_ACK_PROGRESS_INTERVAL_SEC, TSUZUKI_DLQ_STREAM,
    TSUZUKI_DLQ_SUBJECT_PREFIX, TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR. A value that makes no sense is told of and ignored.
    """
    told = {
        "work_prefix": _valid("WORK_SUBJECT_PREFIX", str),
        "ack_wait": _valid("CONSUMER_ACK_WAIT_SEC", _above_zero),
        "max_deliver": _valid("CONSUMER_MAX_DELIVER", _counted),
        "max_ack_pending": _valid("CONSUMER_MAX_ACK_PENDING", _counted),
        "ack_progress": _valid("ACK_PROGRESS_INTERVAL_SEC", _above_zero),
        "dlq_stream": _valid("DLQ_STREAM", str),
        "dlq_prefix": _valid("DLQ_SUBJECT_PREFIX", str),
        "dlq_execution_error": _valid("DLQ_PUBLISH_EXECUTION_ERROR", _switch),
    }
    return {option: value for option, value in told.items() if value is not None}


def gateway() -> dict[str, Any]:
    """Gives what is set of the gateway, by option; the defaults are the options' own.

    TSUZUKI_HTTP_AUTH, TSUZUKI_HTTP_API_KEY_HEADER, TSUZUKI_HTTP_MAX_STREAMS, TSUZUKI_HTTP_MAX_REQUEST_BYTES,
    TSUZUKI_MAX_RUN_SNAPSHOT_BYTES, TSUZUKI_WORKFLOW_YAML_MAX_BYTES, TSUZUKI_DASHBOARD_LANG.
    """
    told = {
        "auth": _valid("HTTP_AUTH", _auth),
        "api_key_header": _valid("HTTP_API_KEY_HEADER", _header),
        "max_streams": _valid("HTTP_MAX_STREAMS", _counted),
        "max_request_bytes": _valid("HTTP_MAX_REQUEST_BYTES", _counted),
        "max_snapshot_bytes": _valid("MAX_RUN_SNAPSHOT_BYTES", _counted),
        "max_workflow_bytes": _valid("WORKFLOW_YAML_MAX_BYTES", _counted),
        "dashboard_lang": _valid("DASHBOARD_LANG", _language),
    }
    return {option: value for option, value in told.items() if value is not None}


def _valid(name: str, read: Callable[[str], Value], default: str = "") -> Value | None:
    """Reads a value; one that makes no sense is told of, with what holds instead, and counts as unset."""
    text = os.environ.get(PREFIX + name, "").strip()
    if not text:
        return None
    try:
        return read(text)
    except ValueError as error:
        logger.warning("%s%s=%r is ignored, its default%s holds: %s", PREFIX, name, text, default, error)
        return None


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("it must be a number above 0")
    return value


def _counted(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("it must be a whole number above 0")
    return value


def _switch(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("it must be true or false")
    return words[text.lower()]


def _auth(text: str) -> bool:
    """Reads whether API keys are asked for; a word that is not understood must not open the door."""
    words = {"none": False, "api_key": True, "apikey": True}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return _switch(text)
    except ValueError:
        raise BadUsage(f"{PREFIX}HTTP_AUTH must be none or api_key, not {text!r}") from None


def _header(text: str) -> str:
    if not text.replace("-", "a").isalnum() or not text.isascii():
        raise ValueError("a header has letters, digits and - only")
    return text


def _language(text: str) -> str:
    if text.lower() not in ("auto", "ja", "en"):
        raise ValueError("it must be auto, ja or en")
    return text.lower()


def _tag(text: str) -> str:
    if not text.replace("_", "a").replace("-", "a").isalnum():
        raise ValueError("a tag has letters, digits, _ and - only")
    return text


def exposed(name: str) -> str | None:
    """Gives a variable that a YAML flow exposes to its tasks (`runtime.expose_env`), or None where it is not set."""
    return os.environ.get(name)


def _seconds(name: str, default: float) -> float:
    return _valid(name, _above_zero, f" {default:g}") or default
