"""What `current()` gives inside a run."""

import asyncio
import sys
from functools import partial
from typing import Any, Protocol

from tsuzuki.errors import BadUsage
from tsuzuki.execution import Execution
from tsuzuki.facts import Artifact
from tsuzuki.redact import problem
from tsuzuki.runlog import filled


class Place(Protocol):
    """The frame that a context belongs to."""

    step: str
    key: str
    name: str
    saved: list[Artifact]
    blocking: bool


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
    def cancelled(self) -> bool:
        """Whether the run is being stopped: return soon, what is finished is recorded."""
        return self._run.stopping is not None

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
        place = self._place
        shown = self._run.log.step(f"{place.step}/{place.key}", place.name or "flow", total)
        shown.done, shown.total, shown.text = done, total, text


class StepLog:
    """A log whose lines carry the run, the step and the item; called as a standard logger is."""

    __slots__ = ("_write",)

    def __init__(self, run: Execution, place: Place) -> None:
        self._write = partial(run.log.line, step=place.step, name=place.name, key=place.key)

    def __call__(self, text: object, *args: object) -> None:
        self._write(filled(text, args))

    def debug(self, text: object, *args: object) -> None:
        """Writes a debug line."""
        self._write(filled(text, args), "debug")

    def info(self, text: object, *args: object) -> None:
        """Writes an info line."""
        self._write(filled(text, args))

    def warning(self, text: object, *args: object) -> None:
        """Writes a warning."""
        self._write(filled(text, args), "warning")

    def error(self, text: object, *args: object) -> None:
        """Writes an error."""
        self._write(filled(text, args), "error")

    def critical(self, text: object, *args: object) -> None:
        """Writes an error that cannot wait."""
        self._write(filled(text, args), "critical")

    def exception(self, text: object, *args: object) -> None:
        """Writes an error with the exception that is being handled."""
        error = sys.exception()
        trace = "" if error is None else "\n" + problem(error).traceback.rstrip()
        self._write(filled(text, args) + trace, "error")


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
        work = self._save(name, data)
        if not self._place.blocking:
            return work
        return asyncio.run_coroutine_threadsafe(work, self._run.loop).result()

    async def _save(self, name: str, data: bytes) -> None:
        blob = await self._run.backend.put_blob(self._run.run_id, data)
        self._place.saved.append(Artifact(name, blob, len(data)))
