"""What the queue logs: ENTER and EXIT of what it does, with its slice, and one trace from enqueueing to the end."""

import logging
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from tsuzuki.clock import Clock

logger: Final = logging.getLogger("tsuzuki.llm.queue")

SLICE: Final = "JobQueue"
_TRACE: ContextVar[str] = ContextVar("tsuzuki_llm_trace", default="")
_SPAN: ContextVar[str] = ContextVar("tsuzuki_llm_span", default="")


def trace_id() -> str:
    """Gives the trace that is under way: of OpenTelemetry where that is in use, else our own."""
    span = _traced()
    return _TRACE.get() or uuid.uuid4().hex if span is None else f"{span.trace_id:032x}"


def _span_id() -> str:
    """Gives the span that is under way, in the same way; ours is one call of a method."""
    span = _traced()
    return _SPAN.get() if span is None else f"{span.span_id:016x}"


def _traced() -> Any:
    """Gives what OpenTelemetry is tracing here."""
    api = sys.modules.get("opentelemetry.trace")  # whoever traces has imported it
    if api is None or not (span := api.get_current_span().get_span_context()).is_valid:
        return None
    return span


@contextmanager
def following(trace: str) -> Iterator[None]:
    """Goes on with a trace."""
    token = _TRACE.set(trace)
    try:
        yield
    finally:
        _TRACE.reset(token)


@contextmanager
def _spanned() -> Iterator[None]:
    """Begins a span."""
    token = _SPAN.set(uuid.uuid4().hex[:16])
    try:
        yield
    finally:
        _SPAN.reset(token)


@contextmanager
def entered(method: str, clock: Clock, **args: Any) -> Iterator[dict[str, Any]]:
    """Logs that a method begins and ends; what is put into the dict it gives is told as the result.

    Ids and counts only: prompts and answers are nobody's business in a log.
    """
    with following(trace_id()), _spanned():
        _log(f"ENTER {method}", args=args)
        result: dict[str, Any] = {}
        started = clock.monotonic()
        try:
            yield result
        except BaseException as error:
            result["error"] = type(error).__name__
            raise
        finally:
            elapsed = round((clock.monotonic() - started) * 1000)
            _log(f"EXIT {method}", result={**result, "elapsed": f"{elapsed}ms"})


def tell(level: int, text: str, **args: Any) -> None:
    """Logs something that happened."""
    _log(text, level, args=args)


def _log(text: str, level: int = logging.DEBUG, **more: Any) -> None:
    if logger.isEnabledFor(level):
        known = {"trace_id": trace_id(), "span_id": _span_id(), "slice": SLICE}
        logger.log(level, text, extra={"details": {"msg": text, **known, **more}, **known}, stacklevel=4)
