"""What `current()` gives inside a run."""

import asyncio
import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol

from tsuzuki.context import AsyncFunction
from tsuzuki.errors import BadUsage
from tsuzuki.execution import Execution
from tsuzuki.facts import Artifact
from tsuzuki.redact import stack, traced
from tsuzuki.runlog import filled

_HOW: Final = frozenset({"exc_info", "extra", "stack_info", "stacklevel"})


class Place(Protocol):
    """The frame that a context belongs to."""

    step: str
    key: str
    name: str
    saved: list[Artifact]
    progress: str

    def blocks(self) -> bool: ...
    def later(self, name: str, function: AsyncFunction, *args: Any) -> Any: ...


class RunContext:
    """The context of code in a run."""

    __slots__ = ("_place", "_run")

    def __init__(self, run: Execution, place: Place) -> None:
        self._run = run
        self._place = place

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._run.run_id

    @property
    def attempt(self) -> int:
        """The number of this attempt at the run."""
        return self._run.claim.attempt

    @property
    def tenant(self) -> str:
        """The tenant that the run belongs to; empty where no keys are asked for."""
        return self._run.claim.run.tenant

    @property
    def cancelled(self) -> bool:
        """Whether the run is being stopped: return soon, what is finished is recorded."""
        return self._run.stopping is not None or self._run.winding_down

    @property
    def for_good(self) -> bool:
        """Whether it is being stopped because somebody cancelled it, and not to go on elsewhere."""
        return self._run.stopping == "cancel"

    @property
    def resumed(self) -> bool:
        """Whether somebody let the run go on after it had ended, trying again what had failed."""
        return self._run.replay.retried

    @property
    def log(self) -> "StepLog":
        """Writes into the run's log."""
        return StepLog(self._run, self._place)

    @property
    def artifacts(self) -> "StepArtifacts":
        """Keeps files beside the result."""
        return StepArtifacts(self._run, self._place)

    def progress(self, done: int, total: int | None = None, text: str = "") -> None:
        """Tells how far this step is."""
        place, log = self._place, self._run.log
        place.progress = f"{place.step}/{place.key}"
        shown = log.step(place.progress, place.name or "flow", total)
        shown.tell(done, total, text, at=self._run.clock.monotonic(), replayed=log.replayed)


class StepLog:
    """A log whose lines carry the run, the step and the item; called as a standard logger is."""

    __slots__ = ("_write",)

    def __init__(self, run: Execution, place: Place) -> None:
        self._write = partial(run.log.line, step=place.step, name=place.name, key=place.key)

    def __call__(self, text: object, *args: object, **how: Any) -> None:
        self._write(_told(text, args, how))

    def debug(self, text: object, *args: object, **how: Any) -> None:
        """Writes a debug line."""
        self._write(_told(text, args, how), "debug")

    def info(self, text: object, *args: object, **how: Any) -> None:
        """Writes an info line."""
        self._write(_told(text, args, how))

    def warning(self, text: object, *args: object, **how: Any) -> None:
        """Writes a warning."""
        self._write(_told(text, args, how), "warning")

    def error(self, text: object, *args: object, **how: Any) -> None:
        """Writes an error."""
        self._write(_told(text, args, how), "error")

    def critical(self, text: object, *args: object, **how: Any) -> None:
        """Writes an error that cannot wait."""
        self._write(_told(text, args, how), "critical")

    def exception(self, text: object, *args: object, **how: Any) -> None:
        """Writes an error with the exception that is being handled."""
        self._write(_told(text, args, {"exc_info": True, **how}), "error")

    def log(self, level: int | str, text: object, *args: object, **how: Any) -> None:
        """Writes a line of a level, given by its number or its name."""
        name = logging.getLevelName(level) if isinstance(level, int) else level
        self._write(_told(text, args, how), str(name).lower())

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name that standard logging gave it
        """Tells that lines of every level are kept."""
        del level
        return True


def _told(text: object, args: tuple[object, ...], how: Mapping[str, Any]) -> str:
    """Gives a line with what standard logging would add: extra fields, the traceback, the stack.

    `stacklevel` says nothing here: a line carries its step, not its place in the code. What nobody knows is refused,
    as a standard logger refuses it.
    """
    said = filled(text, args)
    if not how:
        return said
    if unknown := how.keys() - _HOW:
        raise TypeError(f"log lines take {', '.join(sorted(_HOW))}; not {', '.join(sorted(unknown))}")
    extra = how.get("extra")
    if isinstance(extra, Mapping) and extra:
        said += " (" + ", ".join(f"{filled(name, ())}={filled(value, ())}" for name, value in extra.items()) + ")"
    return said + trace_of(how.get("exc_info")) + ("\n" + stack() if how.get("stack_info") else "")


def trace_of(exc_info: object) -> str:
    """Gives the traceback that `exc_info` asks for on lines of its own: of an exception, or of the one at hand."""
    error = exc_info[1] if isinstance(exc_info, tuple) and len(exc_info) > 1 else exc_info
    if error and not isinstance(error, BaseException):
        error = sys.exception()
    return "\n" + traced(error) if isinstance(error, BaseException) else ""


class StepArtifacts:
    """Files that a step keeps beside its result; they count once the step is done."""

    __slots__ = ("_place", "_run")

    def __init__(self, run: Execution, place: Place) -> None:
        self._run = run
        self._place = place

    def save(self, name: str, content: bytes | str) -> Any:
        """Keeps a file under a name; in an async function await it."""
        if not name:
            raise BadUsage("an artifact needs a name")
        data = content.encode() if isinstance(content, str) else content
        if not self._place.blocks():
            return self._place.later("artifacts.save", self._save, name, data)
        return asyncio.run_coroutine_threadsafe(self._save(name, data), self._run.loop).result()

    async def _save(self, name: str, data: bytes) -> None:
        blob = await self._run.backend.put_blob(self._run.run_id, data)
        self._place.saved.append(Artifact(name, blob, len(data)))
