"""Schemas of params: what workers publish of their flows, and how others check params by it.

Whoever checks has only the schema, and refuses what the worker would refuse for certain: values are converted as
pydantic converts them, and a param that code of the user's converts is taken as it is. The worker checks again.
"""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union
from uuid import UUID

import pydantic
import pydantic_core
import typing_extensions

LOOSE: Final = "x-converted"
"""Marks a param whose values code of the user's may convert: its schema does not say all that it takes."""
_CODE: Final = frozenset(
    {"function-before", "function-wrap", "function-plain", "call", "arguments", "arguments-v3", "generator", "complex"}
)
_SAYS_LESS: Final = frozenset(
    {"validation_alias", "strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str", "custom_init"}
)
"""Where these are set, more is taken than the JSON schema says."""
_FORMATS: Final[Mapping[str, Any]] = {
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
}
"""What texts of a format are read as; texts of others are taken as they are."""
_LIMITS: Final = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
    "minItems": "min_length",
    "maxItems": "max_length",
}


def of_params(adapter: "pydantic.TypeAdapter[dict[str, Any]]", defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the JSON schema of params with their defaults; those that code converts are marked."""
    schema = adapter.json_schema()
    shown = schema.setdefault("properties", {})
    for name, value in defaults.items():
        try:
            default = pydantic_core.to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings")
        except (ValueError, TypeError, RecursionError):  # a default that JSON has no word for: it has one all the same
            continue
        if name in shown:
            shown[name] = {**shown[name], "default": default}
    for name in _converted(adapter.core_schema):
        shown[name] = {**shown[name], LOOSE: True}
    return schema


def _converted(core: Any) -> list[str]:
    """Names the params that code converts."""
    known = {part["ref"]: part for part in core.get("definitions", ())}
    while "fields" not in core:
        core = known[core["schema_ref"]] if core["type"] == "definition-ref" else core["schema"]
    return [name for name, field in core["fields"].items() if _by_code(field, known, set())]


def _by_code(part: Any, known: Mapping[str, Any], seen: set[str]) -> bool:
    if isinstance(part, list | tuple):
        return any(_by_code(one, known, seen) for one in part)
    if not isinstance(part, dict):
        return False
    if part.get("type") in _CODE or any(part.get(name) for name in _SAYS_LESS) or _lenient(part) or _renamed(part):
        return True
    if part.get("type") == "definition-ref" and part["schema_ref"] not in seen:
        seen.add(part["schema_ref"])
        return _by_code(known.get(part["schema_ref"]), known, seen)
    return any(
        _by_code(value, known, seen) for name, value in part.items() if name not in ("metadata", "serialization")
    )


def _renamed(part: Mapping[str, Any]) -> bool:
    """Tells whether a part says of itself what its JSON schema is to be: it may take more than that says."""
    said = part.get("metadata") or {}
    extra = said.get("pydantic_js_extra")
    return callable(extra) or "format" in (extra or ()) or (part.get("type") == "str" and bool(said))


def _lenient(part: Mapping[str, Any]) -> bool:
    """Tells whether an enum makes members of other values too."""
    missing = getattr(part.get("cls"), "_missing_", None) if part.get("type") == "enum" else None
    return getattr(missing, "__func__", None) not in (None, Enum._missing_.__func__)  # type: ignore[attr-defined] # bound


class Checker:
    """Checks params by a published schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._adapter: pydantic.TypeAdapter[Any] | None
        try:
            self._adapter = pydantic.TypeAdapter(_Reading(schema.get("$defs", {})).annotation(schema))
        except Exception:  # noqa: BLE001 - a schema that cannot be read refuses nothing: the worker will check
            self._adapter = None

    def check(self, data: bytes) -> Any:
        """Gives the params as the worker will see them, None where that is unknown; or raises a ValidationError."""
        return None if self._adapter is None else self._adapter.validate_json(data)


class _Reading:
    """Reads a JSON schema as the annotation that pydantic made it of, or as one that takes more."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self._shared = shared
        self._made: dict[str, Any] = {}

    def annotation(self, schema: Any) -> Any:
        if not isinstance(schema, Mapping) or schema.get(LOOSE):
            return Any
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return Union[tuple(self.annotation(one) for one in schema[word])]  # noqa: UP007 - known only now
        if "allOf" in schema:
            return Any
        if words := schema.get("enum", [schema["const"]] if "const" in schema else []):
            return Literal[tuple(words)] if all(isinstance(word, str) for word in words) else Any
        return self._of_type(schema)

    def _reference(self, name: str) -> Any:
        """Reads a shared part once; one that contains itself takes anything there."""
        if name not in self._made:
            self._made[name] = Any
            self._made[name] = self.annotation(self._shared.get(name))
        return self._made[name]

    def _of_type(self, schema: Mapping[str, Any]) -> Any:
        match schema.get("type"):
            case "string":
                told_apart = {"format", "contentMediaType", "contentEncoding"} & schema.keys()
                return _FORMATS.get(str(schema.get("format")), Any) if told_apart else _limited(str, schema)
            case "integer":
                return _limited(int, schema)
            case "number":
                return _limited(float, schema)
            case "boolean":
                return bool
            case "null":
                return None
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
            case _:
                return Any

    def _array(self, schema: Mapping[str, Any]) -> Any:
        if "prefixItems" in schema:
            return list[Any]
        kind: Any = list[self.annotation(schema.get("items"))]  # type: ignore[misc] # known only now
        return kind if schema.get("uniqueItems") else _limited(kind, schema)

    def _object(self, schema: Mapping[str, Any]) -> Any:
        others = schema.get("additionalProperties")
        if "properties" not in schema and others is not False:
            return dict[str, self.annotation(others)]  # type: ignore[misc] # known only now
        required = schema.get("required", ())
        fields: dict[str, Any] = {}
        for name, part in schema.get("properties", {}).items():
            kind = self.annotation(part)
            fields[name] = kind if name in required else typing_extensions.NotRequired[kind]
        make: Any = typing_extensions.TypedDict
        shape: Any = make("params", fields)
        shape.__pydantic_config__ = pydantic.ConfigDict(extra="forbid" if others is False else "allow")
        return shape


def _limited(kind: Any, schema: Mapping[str, Any]) -> Any:
    limits = {option: schema[word] for word, option in _LIMITS.items() if word in schema}
    return Annotated[kind, pydantic.Field(**limits)] if limits else kind
