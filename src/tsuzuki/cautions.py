"""What a run warns of, once for each task: calls that will not do what people expect when the run goes on."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from tsuzuki.codec import signature
from tsuzuki.execution import Execution
from tsuzuki.flow import Task
from tsuzuki.identity import Unsaid, content_of

_CHANGED: Final = (
    "arguments of {0} changed while it ran. When the run goes on after a crash, {0} is not called again and its "
    "arguments stay as they were: return what you change, and use the result"
)
_UNSAID: Final = (
    "the argument {1} of {0} is known by its name only ({2}), for what it holds cannot be compared. Calls that differ "
    'in nothing else count as equal when the run goes on: tell them apart with a key, {0}.keyed("…")(…), or in a map '
    "with name="
)


class Called(Protocol):
    """A call by its step, its task's name and its key."""

    step: str
    name: str
    key: str


def warn_if_changed(
    run: Execution, where: Called, args: tuple[Any, ...], kwargs: Mapping[str, Any], was: bytes
) -> None:
    """Warns of arguments that changed during a call: on replay it is not made, and the flow would not see that."""
    try:
        changed = content_of(args, kwargs) != was
    except Exception:  # noqa: BLE001 - models encode themselves, and a look at them must not fail the work
        return
    if changed:
        run.calls.told.add(where.name)
        run.log.line(_CHANGED.format(where.name), "warning", step=where.step, name=where.name, key=where.key)


def warn_of_unsaid(run: Execution, task: Task[..., Any], unsaid: Unsaid) -> None:
    """Warns of arguments that are known by their kind alone: replay cannot tell two of them apart."""
    if (mark := f"unsaid {task.name}") in run.calls.told:
        return
    run.calls.told.add(mark)
    names = list(signature(task.function).parameters)
    for place, kind in unsaid:
        name = names[min(place, len(names) - 1)] if isinstance(place, int) else place
        run.log.line(_UNSAID.format(task.name, name, kind), "warning", name=task.name)
