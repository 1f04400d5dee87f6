"""Schemas in the subsets of JSON Schema to which providers can hold a model.

A constraint that a provider does not know moves into the description, where the model reads it; the answer is validated
against the whole schema all the same. A schema that has no equal in the subset is not expressed at all.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from tsuzuki.llm.checking import referred

_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_IGNORED: Final = frozenset({"$defs", "definitions", "$schema", "$id", "$comment", "discriminator", "deprecated"})
"""Keywords that say nothing about an answer that the rest of the schema does not say."""
_DEFINITION: Final = re.compile(r"#/(?:\$defs|definitions)/([^/]+)")
_HARD_PATTERN: Final = re.compile(r"\(\?|\\[1-9bB]")
"""Look-around, back references and word boundaries: no provider knows these in a pattern."""


@dataclass(frozen=True, slots=True)
class Subset:
    """The part of JSON Schema to which a provider can hold a model."""

    constraints: frozenset[str]
    formats: frozenset[str] | None
    """The formats of strings; None: any."""
    all_required: bool = False
    """Whether every property has to be required."""
    root_object: bool = False
    """Whether the answer has to be an object."""
    recursive: bool = True
    max_depth: int = 1_000
    max_properties: int = 1_000_000
    max_enum_values: int = 1_000_000
    max_optional: int = 1_000_000
    max_unions: int = 1_000_000


OPENAI: Final = Subset(
    constraints=_NUMBERS | {"minItems", "maxItems", "pattern"},
    formats=_FORMATS,
    all_required=True,
    root_object=True,
    max_depth=10,
    max_properties=5_000,
    max_enum_values=1_000,
)
ANTHROPIC: Final = Subset(
    constraints=frozenset(), formats=_FORMATS | {"uri"}, recursive=False, max_optional=24, max_unions=16
)
SERVER: Final = Subset(
    constraints=_NUMBERS | {"minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "prefixItems"},
    formats=None,
    all_required=True,
)
"""Servers of one's own that speak OpenAI's protocol: their grammars know more than OpenAI's."""


class _Inexpressible(Exception):
    """The subset has nothing that equals this schema."""


def express(schema: Mapping[str, Any], subset: Subset) -> dict[str, Any] | None:
    """Return a schema in the words of a subset, or None if it cannot be expressed there. Do not change the result."""
    return _express(msgspec.json.encode(schema), subset)


@lru_cache(maxsize=256)
def _express(encoded: bytes, subset: Subset) -> dict[str, Any] | None:
    try:
        return _Expression(msgspec.json.decode(encoded), subset).whole()
    except (_Inexpressible, RecursionError):
        return None


@dataclass
class _Expression:
    """One schema on its way into a subset."""

    root: dict[str, Any]
    subset: Subset
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    """The definitions that are being expressed or inlined: one that is met again is recursive."""

    def whole(self) -> dict[str, Any]:
        """Express the root, which is never a reference, and the definitions that it needs."""
        top = self.root
        while "$ref" in top:
            top = {**self._target(top["$ref"])[1], **{key: top[key] for key in top if key != "$ref"}}
        made = self._part(top)
        if self.subset.root_object and made.get("type") != "object":
            raise _Inexpressible
        made |= {"$defs": self.definitions} if self.definitions else {}
        self._measure(made)
        return made

    def _part(self, schema: Any) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise _Inexpressible
        rest = {key: value for key, value in schema.items() if key not in _IGNORED}
        if rest.get("default", ...) is None:
            del rest["default"]
        if "$ref" in rest:
            return self._reference(rest)
        if isinstance(rest.get("allOf"), list) and len(rest["allOf"]) == 1:
            [only] = rest.pop("allOf")
            return self._part({**only, **rest})
        made = {key: rest.pop(key) for key in ("title", "description") if key in rest}
        made |= self._shape(rest)
        if rest:
            notes = "{" + ", ".join(f"{key}: {_said(value)}" for key, value in rest.items()) + "}"
            made["description"] = f"{made['description']}\n\n{notes}" if made.get("description") else notes
        return made

    def _shape(self, rest: dict[str, Any]) -> dict[str, Any]:
        """Express what a value may be, and take that out of `rest`."""
        kind = rest.pop("type", None)
        if "enum" in rest or "const" in rest:
            return _literals([rest.pop("const")] if "const" in rest else rest.pop("enum"))
        for several in ("anyOf", "oneOf"):
            if several in rest:
                return {"anyOf": [self._part(each) for each in rest.pop(several)]}
        if isinstance(kind, list):
            shared = {key: rest.pop(key) for key in list(rest) if key != "default"}
            return {"anyOf": [self._part({"type": each, **_of_kind(each, shared)}) for each in kind]}
        if kind == "object":
            return self._object(rest)
        if kind == "array":
            return self._array(rest)
        if kind not in ("string", "integer", "number", "boolean", "null"):
            raise _Inexpressible
        return {"type": kind, **self._constraints(rest)}

    def _object(self, rest: dict[str, Any]) -> dict[str, Any]:
        if "properties" not in rest or rest.pop("additionalProperties", False) is not False:
            raise _Inexpressible
        properties = {name: self._part(each) for name, each in rest.pop("properties").items()}
        required = list(properties) if self.subset.all_required else rest.get("required", [])
        rest.pop("required", None)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _array(self, rest: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "array"}
        if "prefixItems" in rest:  # a tuple
            places = [self._part(each) for each in rest["prefixItems"]]
            if "prefixItems" in self.subset.constraints:
                made["prefixItems"] = places
                del rest["prefixItems"]
            rest.pop("items", None)
            kinds = [each for number, each in enumerate(places) if each not in places[:number]]
            made["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        else:
            made["items"] = self._part(rest.pop("items", None))
        if rest.get("minItems") in (0, 1):
            made["minItems"] = rest.pop("minItems")
        return made | self._constraints(rest)

    def _constraints(self, rest: dict[str, Any]) -> dict[str, Any]:
        known = [key for key in rest if key in self.subset.constraints and key != "prefixItems"]
        if "pattern" in known and _HARD_PATTERN.search(str(rest["pattern"])):
            known.remove("pattern")
        if "format" in rest and (self.subset.formats is None or rest["format"] in self.subset.formats):
            known.append("format")
        return {key: rest.pop(key) for key in known}

    # References

    def _reference(self, rest: dict[str, Any]) -> dict[str, Any]:
        """Refer to a definition; a reference that says more itself is replaced by what it refers to."""
        reference = rest.pop("$ref")
        name, target = self._target(reference)
        recursive = name in self.open
        if recursive and not self.subset.recursive:
            raise _Inexpressible
        if rest and not recursive:
            self.open.append(name)
            made = self._part({**target, **rest})
            self.open.pop()
            return made
        if name not in self.definitions:
            self.definitions[name] = {}
            self.open.append(name)
            self.definitions[name] = self._part(target)
            self.open.pop()
        return {"$ref": f"#/$defs/{name}"}

    def _target(self, reference: str) -> tuple[str, Mapping[str, Any]]:
        found = _DEFINITION.fullmatch(reference)
        target = referred(reference, self.root)
        if found is None or not target:
            raise _Inexpressible
        return found[1], target

    # Limits

    def _measure(self, made: dict[str, Any]) -> None:
        parts = list(_parts(made, 0))
        objects = [(part, depth) for part, depth in parts if part.get("type") == "object"]
        counts = {
            "max_depth": max((depth for _, depth in objects), default=0),
            "max_properties": sum(len(part["properties"]) for part, _ in objects),
            "max_enum_values": sum(len(part.get("enum", ())) for part, _ in parts),
            "max_optional": sum(len(part["properties"]) - len(part["required"]) for part, _ in objects),
            "max_unions": sum("anyOf" in part for part, _ in parts),
        }
        if any(count > getattr(self.subset, limit) for limit, count in counts.items()):
            raise _Inexpressible


def _parts(schema: dict[str, Any], depth: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield a schema and all that are in it, with how many objects each is in, itself included."""
    depth += schema.get("type") == "object"
    yield schema, depth
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("prefixItems", ())]
    inner += [schema["items"]] if "items" in schema else []
    for each in inner:
        yield from _parts(each, depth)
    for each in schema.get("$defs", {}).values():
        yield from _parts(each, 0)


def _literals(values: list[Any]) -> dict[str, Any]:
    """Express a choice of values: each kind of value with its type, which OpenAI insists on."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    forms = [{"type": kind} | ({} if kind == "null" else {"enum": each}) for kind, each in kinds.items()]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    if type(value) not in names:
        raise _Inexpressible
    return names[type(value)]


def _of_kind(kind: str, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that concern values of a kind."""
    structure = {"object": {"properties", "required", "additionalProperties"}, "array": {"items", "prefixItems"}}
    if kind in structure:
        return {key: value for key, value in rest.items() if key in structure[kind] or key.endswith("Items")}
    others = structure["object"] | structure["array"]
    return {} if kind in ("null", "boolean") else {key: each for key, each in rest.items() if key not in others}


def _said(value: Any) -> str:
    return value if value and isinstance(value, str) else msgspec.json.encode(value).decode()
