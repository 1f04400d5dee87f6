"""Whether a value fits a JSON schema: by its pydantic model where this process has it, else by the schema itself.

The second way knows what pydantic writes into a schema; what it does not know it does not refuse.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from tsuzuki.errors import BadAnswer
from tsuzuki.llm.questions import MODELS, digest

MOST_FLAWS: Final = 8

_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _matches(value: Any, pattern: str) -> bool:
    """Tell whether a text has a pattern; one that cannot be asked in linear time refuses nothing."""
    try:
        return not isinstance(value, str) or _asked(pattern).isinstance_python(value)
    except SchemaError:
        return True


@lru_cache(maxsize=256)
def _asked(pattern: str) -> SchemaValidator:
    """Pydantic's patterns are linear, whoever wrote them; those of `re` are not."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "is below"),
    "maximum": (lambda value, bound: value <= bound, "is above"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "is not above"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "is not below"),
}
_SIZES: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minLength": (lambda value, bound: len(value) >= bound, "is shorter than"),
    "maxLength": (lambda value, bound: len(value) <= bound, "is longer than"),
    "minItems": (lambda value, bound: len(value) >= bound, "has fewer items than"),
    "maxItems": (lambda value, bound: len(value) <= bound, "has more items than"),
    "pattern": (_matches, "does not match"),
}


def validated(value: Any, schema: Mapping[str, Any]) -> Any:
    """Gives a value as its schema has it, as plain JSON; raises `BadAnswer` with what is wrong."""
    model = MODELS.get(digest(dict(schema)))
    if model is not None:
        try:
            return model.model_validate(value).model_dump(mode="json")
        except ValidationError as error:
            flaws = [f"{'.'.join(map(str, each['loc'])) or 'the answer'}: {each['msg']}" for each in error.errors()]
            raise BadAnswer("; ".join(flaws[:MOST_FLAWS])) from None
    if found := [flaw for _, flaw in zip(range(MOST_FLAWS), flaws_of(value, schema, schema, ""), strict=False)]:
        raise BadAnswer("; ".join(found))
    return value


def flaws_of(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> Iterator[str]:
    """Tells what is wrong with a value, by place."""
    here = place or "the answer"
    if "$ref" in schema:
        yield from flaws_of(value, referred(schema["$ref"], root), root, place)
    for part in schema.get("allOf", ()):
        yield from flaws_of(value, part, root, place)
    for several in ("anyOf", "oneOf"):
        if several in schema and all(any(flaws_of(value, part, root, place)) for part in schema[several]):
            yield f"{here}: fits none of the {len(schema[several])} forms it may have"
    if "const" in schema and value != schema["const"]:
        yield f"{here}: must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here}: must be one of {', '.join(map(repr, schema['enum']))}"
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or []
    if kinds and not any(_KINDS.get(kind, lambda _: True)(value) for kind in kinds):
        yield f"{here}: must be {' or '.join(kinds)}, not {type(value).__name__}"
        return
    yield from _parts(value, schema, root, place)


def _parts(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> Iterator[str]:
    here = place or "the answer"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (
            f"{place}.{name}".lstrip(".") + ": is missing" for name in schema.get("required", ()) if name not in value
        )
        other = schema.get("additionalProperties", True)
        for name, each in value.items():
            inside = f"{place}.{name}".lstrip(".")
            if name in known:
                yield from flaws_of(each, known[name], root, inside)
            elif isinstance(other, Mapping):
                yield from flaws_of(each, other, root, inside)
            elif other is False:
                yield f"{inside}: is not asked for"
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for number, each in enumerate(value):
            yield from flaws_of(each, schema["items"], root, f"{place}.{number}".lstrip("."))
    bounds = _SIZES if isinstance(value, str | list) else _BOUNDS if _KINDS["number"](value) else {}
    for word, (fits, told) in bounds.items():
        if word in schema and not fits(value, schema[word]):
            yield f"{here}: {told} {schema[word]}"


def referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives the part of a schema that a `$ref` means."""
    found: Any = root
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def names_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Gives the names of the fields that a schema has at its top."""
    top = referred(schema["$ref"], schema) if "$ref" in schema else schema
    return frozenset(top.get("properties", ()))
