"""Which function a `callable` means, and whether this worker may call it: asked before anything is imported."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from tsuzuki.errors import BadCallable
from tsuzuki.flow import Flow, Task, task
from tsuzuki.yamlflow.flaws import did_you_mean, shown

SETTING: Final = "--allow-callables"


class Callables:
    """The functions that YAML flows may call here: registered tasks, and what lies in allowed modules."""

    def __init__(self, allowed: Sequence[str] = (), registered: Mapping[str, Task[..., Any]] | None = None) -> None:
        self._allowed = tuple(allowed)
        self._registered = dict(registered or {})
        for known in list(self._registered.values()):
            self._registered.setdefault(known.name, known)
            self._registered.setdefault(_address(known.function), known)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registered tasks, without their addresses."""
        return tuple(sorted(name for name in self._registered if ":" not in name))

    def resolve(self, name: str) -> Task[..., Any]:
        """Gives the task that a `callable` means; raises `BadCallable` for one that is not there or not allowed."""
        registered = self._registered.get(name)
        if registered is not None:
            return registered
        module, colon, function = name.partition(":")
        if not colon:
            raise BadCallable(
                f"callable {shown(name)} is not a registered task ({did_you_mean(name, self._registered)}); "
                'write "module:function" for others'
            )
        if not self._allows(module):
            raise self._refusal(name, f"module {module}", module)
        return self._found(name, module, function)

    def _allows(self, module: str) -> bool:
        """Tells whether a module may be used: by its name, or as the package whose modules are allowed."""
        return any(fnmatchcase(module, glob) or module == glob.removesuffix(".*") for glob in self._allowed)

    def _refusal(self, name: str, what: str, module: str) -> BadCallable:
        return BadCallable(
            f"callable {shown(name)} is neither a registered task nor in a module that this worker allows: {what} is "
            f"not covered by {SETTING} ({', '.join(self._allowed) or 'nothing is allowed'}). "
            f"Start the worker with {SETTING} '{module.partition('.')[0]}.*', or with the file that has it as a task"
        )

    def _found(self, name: str, module: str, function: str) -> Task[..., Any]:
        found = getattr(_imported(name, module), function, None)
        if found is None:
            raise BadCallable(f"callable {shown(name)}: module {module} has no function {function!r}")
        if isinstance(found, Flow):
            raise BadCallable(f"callable {shown(name)} is a flow; a task calls a function or a @task")
        called = found.function if isinstance(found, Task) else found
        if not inspect.isroutine(called):
            raise BadCallable(f"callable {shown(name)} is {type(found).__name__}, not a function")
        home = getattr(called, "__module__", None) or ""
        if not self._allows(home):  # what an allowed module has imported is not its own
            raise self._refusal(name, f"it comes from module {home or 'builtins'}, which", home or "builtins")
        return found if isinstance(found, Task) else task(called)


def registered_in(modules: Iterable[Any]) -> dict[str, Task[..., Any]]:
    """Gives the tasks of loaded modules, by their addresses (module:function)."""
    tasks = [value for module in modules for value in vars(module).values() if isinstance(value, Task)]
    return {_address(known.function): known for known in tasks}


def _address(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"


def _imported(name: str, module: str) -> Any:
    try:
        return sys.modules.get(module) or importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise BadCallable(f"callable {shown(name)}: there is no module {error.name} on this worker") from error
        raise BadCallable(f"callable {shown(name)}: {module} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the module's own code raises
        raise BadCallable(
            f"callable {shown(name)}: {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error
