"""What an input says: a literal, or a reference to an earlier output, a param or an exposed variable."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pydantic_core

from tsuzuki import settings
from tsuzuki.codec import short
from tsuzuki.errors import BadUsage
from tsuzuki.yamlflow.document import Fields, Items, Node
from tsuzuki.yamlflow.flaws import Flaws, Place, shown
from tsuzuki.yamlflow.scalars import scalar

_FORMS: Final = "$node.TASK.output, $ctx.params.NAME or $env.NAME; a literal dollar at the beginning is written $$"
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_FIELD: Final = r"(?:\.[\w-]+)*"
_NODE: Final = re.compile(rf"\$node\.([\w-]+)\.output({_FIELD})")
_PARAM: Final = re.compile(rf"\$ctx\.params\.([\w-]+)({_FIELD})")
_ENV: Final = re.compile(r"\$env\.([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class FromNode:
    """A reference to the output of a task, or a field of it."""

    task: str
    path: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class FromParams:
    """A reference to a param, or a field of it."""

    name: str
    path: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class FromEnv:
    """A reference to an exposed variable; it is looked up where the task is called, and recorded nowhere."""

    name: str


Reference: TypeAlias = FromNode | FromParams | FromEnv
Found: TypeAlias = tuple[Reference, Place]


def read_input(node: Node, flaws: Flaws, found: list[Found]) -> Any:
    """Gives an input with references in their places, and notes each of them in `found`."""
    match node:
        case Items():
            return [read_input(item, flaws, found) for item in node.items]
        case Fields():
            return {key.value: read_input(value, flaws, found) for key, value in node.fields}
    value = scalar(node, flaws)
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$$"):
        return value[1:]
    reference = _reference(value)
    if reference is None:
        flaws.add(node.place, f"{shown(value)} is no reference; write {_FORMS}{_advice(value)}")
        return None
    found.append((reference, node.place))
    return reference


def _reference(text: str) -> Reference | None:
    if (match := _NODE.fullmatch(text)) is not None:
        return FromNode(match[1], tuple(match[2].split(".")[1:]), text)
    if (match := _PARAM.fullmatch(text)) is not None:
        return FromParams(match[1], tuple(match[2].split(".")[1:]), text)
    if (match := _ENV.fullmatch(text)) is not None:
        return FromEnv(match[1])
    return None


def _advice(text: str) -> str:
    task = re.match(r"\$node\.([\w-]+)", text)
    return "" if task is None else f" (here: $node.{task[1]}.output)"


def looks_like_one(text: str) -> bool:
    """Tells whether a text would be a reference among inputs."""
    return text.startswith(("$node.", "$ctx.", "$env."))


def references_in(value: Any) -> Iterator[Reference]:
    """Gives the references inside an input."""
    match value:
        case FromNode() | FromParams() | FromEnv():
            yield value
        case list():
            for item in value:
                yield from references_in(item)
        case dict():
            for item in value.values():
                yield from references_in(item)


# At run time


@dataclass(frozen=True, slots=True)
class Sight:
    """What a task can see when its time has come: params, the outputs before it, and the names they were stored as."""

    params: Mapping[str, Any]
    outputs: Mapping[str, Any]
    stored: Mapping[str, Any]

    def by_name(self, name: str) -> tuple[bool, Any]:
        """Looks a parameter up by its name: among the params, the tasks, and what tasks have stored."""
        for names in (self.params, self.outputs, self.stored):
            if name in names:
                return True, names[name]
        return False, None


def resolve(value: Any, sight: Sight) -> Any:
    """Puts values in the place of references; variables stay references until the task is called."""
    match value:
        case FromNode():
            return field(sight.outputs[value.task], value.path, value.text) if value.task in sight.outputs else None
        case FromParams():
            if value.name not in sight.params:
                there = ", ".join(map(str, sight.params)) or "none"
                raise BadUsage(
                    f"{value.text}: there is no param {value.name!r} (there is: {there}); "
                    "give it when you submit the run, or name it in flow.defaults"
                )
            return field(sight.params[value.name], value.path, value.text)
        case list():
            return [resolve(item, sight) for item in value]
        case dict():
            return {name: resolve(item, sight) for name, item in value.items()}
        case _:
            return value


def shown_input(value: Any, params: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Gives an input for people who look at a run: what is not known stays the reference, and so do variables."""
    match value:
        case FromNode():
            return _found(outputs, value.task, value.path, value.text)
        case FromParams():
            return _found(params, value.name, value.path, value.text)
        case FromEnv():
            return f"$env.{value.name}"
        case list():
            return [shown_input(item, params, outputs) for item in value]
        case dict():
            return {name: shown_input(item, params, outputs) for name, item in value.items()}
        case _:
            return value


def _found(known: Mapping[str, Any], name: str, path: Sequence[str], text: str) -> Any:
    try:
        return field(known[name], path, text)
    except (KeyError, BadUsage):
        return text


def with_variables(value: Any, exposed: frozenset[str]) -> Any:
    """Puts the variables of the environment in the place of their references."""
    match value:
        case FromEnv():
            if value.name not in exposed:
                raise BadUsage(f"$env.{value.name} is not exposed; name it in runtime.expose_env")
            found = settings.exposed(value.name)
            if found is None:
                raise BadUsage(
                    f"$env.{value.name}: the worker's environment has no variable of this name; set it there"
                )
            return found
        case list():
            return [with_variables(item, exposed) for item in value]
        case dict():
            return {name: with_variables(item, exposed) for name, item in value.items()}
        case _:
            return value


def plain(value: Any) -> Any:
    """Gives a model, a dataclass and the like as the mapping that is recorded of it."""
    if isinstance(value, dict | list | tuple | str | int | float | bool | None):
        return value
    return pydantic_core.to_jsonable_python(value, fallback=str)


def field(value: Any, path: Sequence[str], text: str) -> Any:
    """Goes into a value by the names of fields and the numbers of list elements, never by attributes."""
    for step in path:
        inner = plain(value)
        if isinstance(inner, Mapping) and step in inner:
            value = inner[step]
        elif isinstance(inner, list | tuple) and _INDEX.fullmatch(step) and int(step) < len(inner):
            value = inner[int(step)]
        else:
            raise BadUsage(f"{text}: there is no {step!r} in {_there(inner)}")
    return value


def _there(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"the mapping with {', '.join(map(str, list(value)[:10])) or 'no fields'}"
    if isinstance(value, list | tuple):
        return f"the list of {len(value)}"
    return short(value)
