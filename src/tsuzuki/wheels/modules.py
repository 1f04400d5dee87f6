"""Which folders Python imports from, and what it has to forget when they change: the only code that does either.

A module that was imported stays what it was until it is forgotten; so does whatever took something out of it.
"""

import ast
import importlib
import importlib.machinery
import sys
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from importlib import metadata
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from tsuzuki.flow import Flow, Task

_NATIVE: Final = tuple(importlib.machinery.EXTENSION_SUFFIXES)


class Modules:
    """The modules of a worker; made before its flows are loaded, so that it knows what the worker itself runs on."""

    def __init__(self) -> None:
        self._own = frozenset(name.partition(".")[0] for name in sys.modules)
        self._paths: list[str] = []
        self._known: dict[str, bool] = {}

    def runs_on(self, package: str) -> bool:
        """Tells whether the worker itself runs on a package, which cannot be replaced under it then."""
        if package not in self._known:
            found = next(iter(metadata.distributions(name=package, path=self.elsewhere)), None)
            files = [] if found is None else (found.files or [])
            self._known[package] = any(file.parts[0].partition(".")[0] in self._own for file in files)
        return self._known[package]

    def clashes(self, folder: Path) -> list[str]:
        """Gives the names in a folder that would stand before what Python or the worker itself runs on."""
        own = {name for name in self._own if getattr(sys.modules.get(name), "__file__", None)}
        return sorted(_names([str(folder)]) & (own | sys.stdlib_module_names))

    @property
    def elsewhere(self) -> list[str]:
        """The folders that Python looks into, without ours."""
        return [path for path in sys.path if path not in self._paths]

    def switch(self, paths: Sequence[str]) -> None:
        """Lets Python look into these folders first, and forget what came from those that are gone."""
        gone = set(self._paths) - set(paths)
        come = set(paths) - set(self._paths)
        sys.path[:] = dict.fromkeys([*paths, *self.elsewhere])
        self._paths = list(paths)
        doomed = {name for name, module in _loaded() if _inside(module, gone)}
        shadowed = _names(come) - self._own
        doomed |= {name for name, module in _loaded() if name.partition(".")[0] in shadowed}
        for name in self._with_dependents(doomed):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()

    def _with_dependents(self, doomed: set[str]) -> set[str]:
        """Adds what refers to something in a doomed module, until nothing does; native modules stay."""
        others = {name: module for name, module in _loaded() if name.partition(".")[0] not in self._own}
        while True:
            more = {
                name
                for name, module in others.items()
                if name not in doomed and not _is_native(module) and _refers(module, doomed)
            }
            if not more:
                return doomed
            doomed = doomed | more


def _loaded() -> list[tuple[str, ModuleType]]:
    found: dict[str, object] = {**sys.modules}  # some programs put other things there than modules
    return [(name, module) for name, module in found.items() if isinstance(module, ModuleType)]


def _inside(module: ModuleType, folders: Collection[str]) -> bool:
    """Tells whether a module came out of one of these folders."""
    file = getattr(module, "__file__", None)
    try:
        places = [file] if file else list(getattr(module, "__path__", ()))
    except Exception:  # noqa: BLE001 - modules that are something else in disguise: not ours
        return False
    return any(str(place).startswith(f"{folder}/") for place in places for folder in folders)


def _is_native(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", None) or "").endswith(_NATIVE)


def _refers(module: ModuleType, doomed: AbstractSet[str]) -> bool:
    """Tells whether a module took something out of others: by what it holds, or by its imports where that is plain."""
    held = any(_home(value) in doomed for value in list(vars(module).values()))
    return held or not doomed.isdisjoint(_imports(module, {name.partition(".")[0] for name in doomed}))


def _imports(module: ModuleType, tops: Collection[str]) -> set[str]:
    """Gives the modules that the source of a module imports, where it says one of these words at all."""
    file = str(getattr(module, "__file__", None) or "")
    try:
        text = Path(file).read_text(encoding="utf-8") if file.endswith(".py") else ""
        found = ast.walk(ast.parse(text)) if any(top in text for top in tops) else ()
    except (OSError, ValueError, SyntaxError):
        return set()
    names: set[str] = set()
    for node in found:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = _absolute(node, str(getattr(module, "__package__", "") or ""))
            names |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
    return names | {name.rpartition(".")[0] for name in names}


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _home(value: object) -> str:
    """Gives the module that something is, or was made in; of a flow or task that of its function."""
    if isinstance(value, ModuleType):
        return value.__name__
    made = value.function if isinstance(value, Task | Flow) else value
    home: object = (made if isinstance(made, type | FunctionType) else type(made)).__module__
    return home if isinstance(home, str) else ""


def _names(paths: Iterable[str]) -> set[str]:
    """Gives the names that can be imported from folders."""
    found = (child for path in paths for child in Path(path).iterdir())
    return {child.name.partition(".")[0] for child in found if _importable(child)}


def _importable(child: Path) -> bool:
    if child.is_dir():
        return child.name.isidentifier() and child.name != "__pycache__"
    return child.suffix == ".py" or child.name.endswith(_NATIVE)
