"""The reference of the HTTP API, made of the gateway's own OpenAPI document."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.house.tables import cell, table
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options

OPENING = """# HTTP reference

<!-- Made of the OpenAPI document of the gateway by `make docs`; a test compares them. -->

Every route with what it takes and answers, as `GET /openapi.json` says it. What a schema cannot say (what accepted
means, how streams go on, what is left out of large runs) is in [http.md](../http.md); every error in
[errors.md](errors.md).

Where the gateway asks for keys, every route does but those marked *open*. A run is named by its id or by its number.
"""
PROBLEM = "Problem"
FIRST = "runs"
"""What people look for first."""
WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "object", "null": "null"}
BOUNDS = (("minimum", "from"), ("maximum", "to"), ("minLength", "from"), ("maxLength", "to"), ("maxItems", "at most"))
UNITS = {"minLength": " characters", "maxLength": " characters", "maxItems": " of them"}

Json = dict[str, Any]


def page() -> str:
    document = create_app(options=Options()).openapi()
    shapes: Json = document["components"]["schemas"]
    operations = list(operations_of(document))
    groups = dict.fromkeys([FIRST, *(tag for _, _, operation in operations for tag in operation["tags"])])
    parts = [OPENING]
    for group in groups:
        parts.append(f"\n## Routes: {group}\n")
        parts += [told(*each) for each in operations if group in each[2]["tags"]]
    parts.append("\n## Shapes\n\nWhat bodies and answers are made of, by name.\n")
    parts += [shape(name, shapes[name]) for name in sorted(shapes)]
    return "".join(parts)


def operations_of(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def told(method: str, path: str, operation: Json) -> str:
    door = "" if operation.get("security") else " *Open.*"
    said = operation.get("description") or operation.get("summary", "")
    parts = [f"\n### {method} {path}\n\n{said.strip()}{door}\n"]
    if parameters := operation.get("parameters"):
        rows = [
            (f"`{one['name']}`", one["in"], kind(one["schema"]), meaning(one, required=one.get("required", False)))
            for one in parameters
        ]
        parts.append("\n" + table(("parameter", "in", "type", "means"), rows))
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"\nBody (`{media}`): {body(content['schema'])}")
    return "".join([*parts, "\n", *answers(operation["responses"])])


def body(schema: Json) -> str:
    if "properties" in schema:
        return "a form\n\n" + fields(schema)
    return f"{kind(schema)}\n"


def answers(responses: Json) -> Iterator[str]:
    """Tells what is answered: the good answer by its shape, problems by their statuses."""
    for status, response in responses.items():
        for media, content in response.get("content", {}).items():
            name = kind(content.get("schema", {}))
            if media != "application/problem+json":
                yield f"Answers {status} with {name} (`{media}`).\n"
    refused = [status for status, one in responses.items() if "application/problem+json" in one.get("content", {})]
    if refused:
        yield f"Refuses with {', '.join(refused)} ({link(PROBLEM)}).\n"


def shape(name: str, schema: Json) -> str:
    said = f"\n{schema['description'].strip()}\n" if schema.get("description") else ""
    return f"\n### {name}\n{said}\n{fields(schema) if schema.get('properties') else kind(schema) + chr(10)}"


def fields(schema: Json) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", kind(one), meaning(one, required=name in required)) for name, one in schema["properties"].items()
    ]
    return table(("field", "type", "means"), rows)


def meaning(one: Json, *, required: bool) -> str:
    said = " ".join((one.get("description") or "").split())
    schema = one.get("schema", one)
    default = schema.get("default")
    more = "required" if required and "in" in one else ""
    if default not in (None, "", [], {}):
        more = f"default `{json.dumps(default, ensure_ascii=False)}`"
    return cell(f"{said} ({more})" if said and more else said or more)


def kind(schema: Json) -> str:
    """Says a type in words."""
    if reference := schema.get("$ref"):
        return link(reference.rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return joined(kind(one) for one in schema[several])
    if isinstance(schema.get("type"), list):
        return joined(WORDS.get(one, one) for one in schema["type"])
    return f"{plain(schema)}{bounds(schema)}"


def plain(schema: Json) -> str:
    match schema.get("type"):
        case "array":
            return f"list of {kind(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {kind(schema['additionalProperties'])}"
        case "string" if schema.get("format") == "binary" or "contentMediaType" in schema:
            return "file"
        case "string" if schema.get("format"):
            return str(schema["format"])
        case None:
            return "any value"
        case word:
            return WORDS.get(word, str(word))


def bounds(schema: Json) -> str:
    said = [f"{word} {schema[name]:,}{UNITS.get(name, '')}" for name, word in BOUNDS if name in schema]
    return f" ({' '.join(said)})" if said else ""


def joined(words: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def link(name: str) -> str:
    return f"[{name}](#{name.lower()})"
