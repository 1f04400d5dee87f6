"""What worker and gateway processes log: one JSON object a line on stdout, through standard logging.

Standard logging and not a package for it: user code, uvicorn and NATS write to it anyway, so that one formatter
brings everything into one form, and `import tsuzuki` stays light.
"""

import contextlib
import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from tsuzuki import settings
from tsuzuki.context import FRAME
from tsuzuki.redact import redact, without_secrets

WORKER: Final = "tsuzuki-server:worker"
GATEWAY: Final = "tsuzuki-server:http"
_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Signs that would steer the terminal of whoever reads a log."""
CONTEXT: Final = ("run_id", "flow_name", "tag", "worker_id", "err_id", "msg_id", "reason", "trace_id", "span_id")
"""What a line tells beside its message, where it is known: given with `extra=`, or by the run it was written in."""


class JsonLines(logging.Formatter):
    """Makes a line of JSON of a record."""

    def __init__(self, process: str, *, utc: bool = True, tracebacks: bool = True, **known: str) -> None:
        super().__init__()
        self._process, self._utc, self._tracebacks, self._known = process, utc, tracebacks, known

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line; secrets are hidden in whatever text it has."""
        at = datetime.fromtimestamp(record.created, UTC)
        told: dict[str, Any] = {
            "ts": (at if self._utc else at.astimezone()).isoformat(timespec="milliseconds"),
            "service": self._process,
            "level": record.levelname,
            "logger": record.name,
            "message": redact(_message(record)),
            "pathname": record.pathname,
            "lineno": record.lineno,
            "func": record.funcName,
        }
        told |= self._known | _context(record) | _details(record)
        if record.exc_info and isinstance(record.exc_info[1], BaseException):
            told |= {name: value for name, value in self._exception(record.exc_info[1]).items() if name not in told}
        if "exc_type" in told:
            told.setdefault("exc_origin", f"{record.pathname}:{record.lineno} in {record.funcName}")
        if not self._tracebacks:
            told.pop("exc_traceback", None)
        return json.dumps(told, ensure_ascii=False, default=str)

    def _exception(self, error: BaseException) -> dict[str, str]:
        """Tells of the exception itself: what, in which words, and where it came from."""
        frames = traceback.extract_tb(error.__traceback__)
        told = {"exc_type": type(error).__name__, "exc_message": redact(_said(error))}
        told["exc_traceback"] = redact("".join(traceback.format_exception(error)))
        if frames:
            told["exc_origin"] = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}"
        if error_id := getattr(error, "error_id", ""):
            told |= {"err_id": error_id, "msg_id": error_id.replace("ERR-", "MSG-", 1)}
        return told


def _context(record: logging.LogRecord) -> dict[str, str]:
    row = getattr(getattr(getattr(FRAME.get(), "run", None), "claim", None), "run", None)
    inside = {} if row is None else {"run_id": row.id, "flow_name": row.flow, "tag": row.tag}
    given = {name: redact(str(value)) for name in CONTEXT if (value := getattr(record, name, None)) not in (None, "")}
    if "err_id" in given:
        given.setdefault("msg_id", given["err_id"].replace("ERR-", "MSG-", 1))
    return inside | _trace() | given


def _details(record: logging.LogRecord) -> dict[str, Any]:
    """Gives what a part of Tsuzuki tells beside its message in a form of its own: `extra={"details": …}`."""
    details = getattr(record, "details", None)
    return without_secrets(details) if isinstance(details, dict) else {}


def _trace() -> dict[str, str]:
    """Gives the ids of the trace that is under way, where OpenTelemetry is in use."""
    api = sys.modules.get("opentelemetry.trace")  # whoever traces has imported it
    if api is None:
        return {}
    span = api.get_current_span().get_span_context()
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"} if span.is_valid else {}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - arguments that do not fit are told beside the text: a log call never fails
        return f"{record.msg} {record.args}"


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - whatever it raises, the failure itself must be told
        return f"<its str() raised {type(broken).__name__}>"


def configure(process: str, *, stream: TextIO | None = None, **known: str) -> None:
    """Lets this process log as its settings say; `known` is told with every line."""
    out = logging.StreamHandler(stream or sys.stdout)
    out.setFormatter(formatter(process, **known))
    root = logging.getLogger()
    for before in root.handlers[:]:
        root.removeHandler(before)
    root.addHandler(out)
    root.setLevel(settings.value("TSUZUKI_LOG_LEVEL"))
    logging.raiseExceptions = False  # a reader of our log who left must not flood stderr
    if stream is None:
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # where it is a real stdout


def formatter(process: str, **known: str) -> logging.Formatter:
    """Gives what makes lines of records, as the settings say."""
    utc = settings.value("TSUZUKI_LOG_UTC")
    if settings.value("TSUZUKI_LOG_FORMAT") == "json":
        tracebacks = settings.value("TSUZUKI_LOG_INCLUDE_TRACEBACK")
        return JsonLines(process, utc=utc, tracebacks=tracebacks, **known)
    return PlainLines(process, utc=utc, tracebacks=settings.value("TSUZUKI_LOG_INCLUDE_TRACEBACK"))


class PlainLines(JsonLines):
    """Makes a line for people of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line, and the traceback below it."""
        told = json.loads(super().format(record))
        context = " ".join(f"{name}={told[name]}" for name in CONTEXT if name in told)
        line = (
            f"{told['ts']} {told['level']:<7} {told['logger']}: {told['message']}{f'  [{context}]' if context else ''}"
        )
        if "exc_type" in told:
            line += f"\n{told.get('exc_traceback') or told['exc_type'] + ': ' + told['exc_message']}".rstrip()
        return _STEERING.sub(_spelled, line).replace("\n", "\n    ")  # so that no text can look like the next line


def _spelled(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"
