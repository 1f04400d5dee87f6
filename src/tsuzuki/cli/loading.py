"""Finds flows where people say they are: `FILE.py:flow`, `package.module:flow`, whole files, packages, entry points."""

import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from tsuzuki import application
from tsuzuki.errors import BadUsage, FlowNotFound
from tsuzuki.flow import Flow, Task
from tsuzuki.flowset import ENTRY_POINTS, Resolver


def load_flow(target: str) -> Flow[..., Any]:
    """Imports what the target names, and gives the flow in it."""
    place, name = _split(target)
    if not place:
        raise BadUsage(f"{target!r} names no file; say FILE.py:flow or package.module:flow")
    module = _from_file(Path(place)) if _is_file(place) else _from_name(place)
    return _chosen(module, place, name)


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    return (place, name) if colon else (target, "")


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or Path(place).is_file()


def _from_file(path: Path) -> ModuleType:
    """Imports a file as `python FILE.py` would, but not as the main program."""
    if not path.is_file():
        raise BadUsage(f"there is no file {path}, seen from the current folder; check its name")
    path = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    spec = importlib.util.spec_from_file_location(path.stem if known is None else f"tsuzuki_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadUsage(f"{path.name} is not a Python file; say FILE.py:flow")
    _look_first_in(path.parent)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        raise _failed(path.name, error) from error
    return module


def _from_name(name: str) -> ModuleType:
    """Imports a module as `python -m` would: the current folder comes first."""
    _look_first_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            advice = "name a file (FILE.py), or a module that can be imported from this folder"
            raise BadUsage(f"there is no module {name} here; {advice}") from error
        raise _failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def _look_first_in(folder: Path) -> None:
    """Lets Python look into a folder before all others; of a package with many modules, once and not for each."""
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))


def _failed(place: str, error: BaseException) -> BadUsage:
    """Shows people their own traceback, without the lines of ours and of the import machinery."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)] if own else []
    said = traceback.format_exception_only(error)  # also of an exception whose str() raises
    click.echo("".join([*lines, *said]), err=True, nl=False)
    return BadUsage(f"{place} cannot be imported: {said[-1].strip()}; nothing was started")


def _chosen(module: ModuleType, place: str, name: str) -> Flow[..., Any]:
    flows = _flows_of(module)
    if not name:
        return _only(flows, place)
    found = getattr(module, name, None) or flows.get(name)
    if isinstance(found, Flow):
        return found
    named = [flow for flow in flows.values() if name in (flow.name, getattr(flow.function, "__name__", ""))]
    if named:
        return named[0]
    raise FlowNotFound(f"{place} has {_what(found, name)}; {_there(flows)}")


def _what(found: object, name: str) -> str:
    if isinstance(found, Task):
        return f"a task {name!r}, but only flows can be run (@flow)"
    return f"no flow {name!r}" if found is None else f"{name!r}, but it is not a flow (decorate it with @flow)"


def _there(flows: dict[str, Flow[..., Any]]) -> str:
    return f"it has {', '.join(sorted(flows))}" if flows else "it has no flows at all"


def _flows_of(module: ModuleType) -> dict[str, Flow[..., Any]]:
    """Gives the flows of a module by their names there; those it defines, if it defines any."""
    flows = {name: value for name, value in vars(module).items() if isinstance(value, Flow)}
    own = {name: flow for name, flow in flows.items() if flow.function.__module__ == module.__name__}
    return own or flows


def _only(flows: dict[str, Flow[..., Any]], place: str) -> Flow[..., Any]:
    different = {id(flow): flow for flow in flows.values()}
    if len(different) != 1:
        advice = f"; say which one: {place}:{min(flows)}" if flows else "; decorate a function with @flow"
        raise FlowNotFound(f"{place}: {_there(flows)}{advice}")
    return next(iter(different.values()))


# ------------------------------------------------------------------------------------------- all that a worker executes


@dataclass(slots=True)
class Loaded:
    """What was found for a worker: flows, and the modules whose tasks YAML flows may call."""

    flows: list[Flow[..., Any]] = field(default_factory=list)
    modules: list[ModuleType] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What installed packages offer but cannot be used, and why; only where that was asked for."""

    def add(self, module: ModuleType, flows: Iterable[Flow[..., Any]]) -> None:
        """Takes a module in, and its flows, each once."""
        self.modules.append(module)
        self.flows.extend({id(flow): flow for flow in flows if flow not in self.flows}.values())


def load_flows(places: Iterable[str], *, entry_points: bool = True, tolerant: bool = False) -> Loaded:
    """Imports files, packages (with all their modules) and entry points, and gives the flows in them.

    With `tolerant` an entry point that cannot be used is left out and told, instead of ending everything.
    """
    loaded = Loaded()
    for place in places:
        _load_place(loaded, place)
    if entry_points:
        for entry in metadata.entry_points(group=ENTRY_POINTS):
            (_try_entry if tolerant else _load_entry)(loaded, entry)
        for name, found in application.applications():
            _load_application(loaded, name, found)
    return loaded


def _load_place(loaded: Loaded, place: str) -> None:
    if ":" in place:
        flow = load_flow(place)
        loaded.add(sys.modules[flow.function.__module__], [flow])
        return
    modules = [_from_file(Path(place))] if _is_file(place) else _of_package(place)
    found = [(module, list(_flows_of(module).values())) for module in modules]
    named = [value for module in modules for value in vars(module).values()]
    if not any(isinstance(value, Flow | Task) for value in named):
        raise FlowNotFound(f"{place} has no flows and no tasks; decorate a function with @flow or @task")
    for module, flows in found:
        loaded.add(module, flows)


def _of_package(name: str) -> list[ModuleType]:
    top = _from_name(name)
    below = pkgutil.walk_packages(getattr(top, "__path__", ()), f"{name}.")
    return [top, *(_from_name(each.name) for each in below if not each.name.endswith(".__main__"))]


def _try_entry(loaded: Loaded, entry: metadata.EntryPoint) -> None:
    """Loads what a package offers, unless it cannot be used."""
    offered = Loaded()
    try:
        _load_entry(offered, entry)
    except BadUsage as error:
        loaded.refused.append(str(error))
        return
    taken = {flow.name: flow for flow in loaded.flows}
    new = [flow for flow in offered.flows if taken.setdefault(flow.name, flow) is flow]
    for flow in offered.flows:
        if taken[flow.name] is not flow:
            loaded.refused.append(f"flow {flow.name} of the entry point {entry.name} is left out: the name is taken")
    for module in offered.modules:
        loaded.add(module, new)


def _load_entry(loaded: Loaded, entry: metadata.EntryPoint) -> None:
    """Loads what a package offers: a flow, a module with flows, or a function that gives flows."""
    try:
        found = entry.load()
        flows = found() if callable(found) and not isinstance(found, Flow) else found
    except (Exception, SystemExit) as error:
        raise _failed(f"the entry point {entry.name} ({entry.value})", error) from error
    if isinstance(flows, ModuleType):
        loaded.add(flows, _flows_of(flows).values())
        return
    for flow in [flows] if isinstance(flows, Flow) else flows:
        loaded.add(sys.modules[flow.function.__module__], [flow])


def _load_application(loaded: Loaded, name: str, found: application.Application | Exception) -> None:
    """Loads the flows of an application; one that cannot be used is told of, and the worker does the rest.

    Its tasks are its own: they are called by its flows, with what those have checked, and by no YAML flow.
    """
    try:
        if isinstance(found, Exception):
            raise found  # noqa: TRY301 - told of below, as what goes wrong a line later is
        flows = list(found.flows())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a package of somebody else: it must not stop the rest
        why = error if isinstance(error, Exception) else ImportError(f"it leaves while it is loaded ({error})")
        click.echo(f"warning: {application.told(name, why)}", err=True)
        return
    taken = {flow.name: flow for flow in loaded.flows}
    for flow in flows:
        if taken.setdefault(flow.name, flow) is flow:
            loaded.flows.append(flow)
        else:
            click.echo(f"warning: flow {flow.name} of the application {name} is left out: the name is taken", err=True)


def load_resolver(target: str) -> Resolver:
    """Gives the function that `module:function` or `FILE.py:function` names."""
    place, name = _split(target)
    if not place or not name:
        raise BadUsage(f"{target!r} names no function; say --flow-resolver module:function")
    module = _from_file(Path(place)) if _is_file(place) else _from_name(place)
    found = getattr(module, name, None)
    if not callable(found):
        raise BadUsage(f"{place} has no function {name!r}; say --flow-resolver module:function")
    resolver: Resolver = found
    return resolver
