"""What providers refuse of a schema, by their documentation: written without a look at how we make ours fit."""

from collections.abc import Iterator
from typing import Any

FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
COMMON = {"type", "title", "description", "enum", "const", "anyOf", "$ref", "$defs"}
OBJECT = {"properties", "required", "additionalProperties"}
OPENAI = COMMON | OBJECT | {"items", "minItems", "maxItems", "pattern", "format"}
OPENAI |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
ANTHROPIC = COMMON | OBJECT | {"items", "minItems", "format", "allOf", "default"}


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Gives a schema and all schemas within it."""
    yield schema
    lists = [schema.get(key, []) for key in ("anyOf", "allOf")]
    dicts = [schema.get(key, {}) for key in ("properties", "$defs")]
    inner = [each for group in lists for each in group] + [each for group in dicts for each in group.values()]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from parts(each)


def refused_by_openai(schema: dict[str, Any]) -> str | None:
    """Says why a strict schema is refused."""
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {schema.get('type')}'"
    for part in parts(schema):
        if "$ref" in part and len(part) > 1:
            return f"$ref cannot have keywords {sorted(set(part) - {'$ref'})}"
        if more := set(part) - OPENAI:
            return f"'{more.pop()}' is not permitted"
        if "$ref" not in part and "anyOf" not in part and "type" not in part:
            return "schema must have a 'type' key"
        if part.get("type") == "array" and "items" not in part:
            return "array schema missing items"
        if part.get("format") not in {*FORMATS, None}:
            return f"'{part['format']}' is not a valid format"
        if "(?" in part.get("pattern", ""):
            return "'pattern' is not valid: look-around is not supported"
        if part.get("type") == "object":
            if part.get("additionalProperties") is not False:
                return "'additionalProperties' is required to be supplied and to be false"
            if set(part.get("required", ())) != set(part.get("properties", {})):
                return "'required' is required to include every key in properties"
    return "too many enum values" if sum(len(part.get("enum", ())) for part in parts(schema)) > 1000 else None


def refused_by_anthropic(schema: dict[str, Any]) -> str | None:
    """Says why a schema is refused."""
    optional = unions = 0
    for part in parts(schema):
        if more := set(part) - ANTHROPIC:
            kind = part.get("type")
            return f"For '{kind}' type, property '{more.pop()}' is not supported"
        if part.get("minItems", 0) not in (0, 1):
            return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        if part.get("format") not in {*FORMATS, "uri", None}:
            return f"string format '{part['format']}' is not supported"
        if part.get("type") == "object":
            if part.get("additionalProperties") is not False:
                return "For 'object' type, 'additionalProperties' must be explicitly set to false"
            optional += len(part.get("properties", {})) - len(part.get("required", ()))
        unions += "anyOf" in part
    if optional > 24 or unions > 16:
        return "Schema is too complex: too many optional parameters or union types"
    return "Circular reference detected in schema definitions" if _circular(schema) else None


def _circular(schema: dict[str, Any]) -> bool:
    names = {
        name: {part["$ref"].rpartition("/")[2] for part in parts(each) if "$ref" in part}
        for name, each in schema.get("$defs", {}).items()
    }
    while ends := [name for name, used in names.items() if not used & names.keys()]:
        for name in ends:
            del names[name]
    return bool(names)


def refused(body: dict[str, Any]) -> dict[str, Any] | None:
    """Gives the error with which a request for an answer in a form is refused; None where it is taken."""
    form = (body.get("response_format") or {}).get("json_schema")
    if form is not None and form.get("strict"):
        said = refused_by_openai(form["schema"])
        text = f"Invalid schema for response_format '{form['name']}': {said}"
        return {"message": text, "type": "invalid_request_error", "param": "response_format"} if said else None
    held = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    said = None if held is None else refused_by_anthropic(held)
    return {"type": "invalid_request_error", "message": f"output_config.format.schema: {said}"} if said else None
