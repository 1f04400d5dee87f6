"""The reference of error ids, made of every error class in the package."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house import rules
from tests.house.tables import cell, table
from tsuzuki.errors import TsuzukiError

ROOT = Path(__file__).parents[2]
ID = re.compile(r"ERR-TSUZUKI-\d{4}")
OPENING = """# Errors

<!-- Made of the error classes by `make docs`; a test compares them. -->

Each error has an id, which stays the same whatever its words are: `error_id` over HTTP (`application/problem+json`),
in brackets at the end of what a command says, `err_id` in the log. *Status* is the HTTP status, *exit* the exit code
of a command. Numbers that are not here are not used.
"""
TOLD_ELSEWHERE = {
    "ERR-TSUZUKI-0007": "a flow raised: in the log of its worker, and as dead letter `execution_error`",
    "ERR-TSUZUKI-0012": "a job of the queue makes no sense: in the log, and as dead letter `invalid_job`",
    "ERR-TSUZUKI-0021": "a run did not stop within the grace period after a cancel; its end was recorded without it",
    "ERR-TSUZUKI-0106": "over HTTP: there is nothing at that path (404)",
    "ERR-TSUZUKI-0107": "over HTTP: the path does not take that method (405)",
}
"""Ids that are no class: logged, or told by the web framework."""


def page() -> str:
    kinds = by_id()
    rows = [row(number, kinds[number]) for number in sorted(kinds)]
    others = [(f"`{number}`", said) for number, said in sorted(TOLD_ELSEWHERE.items())]
    return "".join(
        (
            OPENING,
            "\n",
            table(("id", "status", "exit", "errors", "means"), rows),
            "\n## Ids without a class\n\n",
            table(("id", "means"), others),
        )
    )


def row(number: str, kinds: list[type[TsuzukiError]]) -> tuple[str, str, str, str, str]:
    statuses = dict.fromkeys(str(kind.http_status) for kind in kinds)
    codes = dict.fromkeys(str(kind.exit_code) for kind in kinds)
    names = ", ".join(f"`{kind.__name__}`" for kind in kinds)
    means = "; ".join(dict.fromkeys(said(kind) for kind in kinds))
    return f"`{number}`", ", ".join(statuses), ", ".join(codes), names, means


def said(kind: type[TsuzukiError]) -> str:
    return cell((kind.__doc__ or "").strip().splitlines()[0]).rstrip(".")


@cache
def by_id() -> dict[str, list[type[TsuzukiError]]]:
    """Gives the classes of each id, those that others come from first."""
    found: dict[str, list[type[TsuzukiError]]] = defaultdict(list)
    for kind in sorted(classes(), key=lambda kind: (len(kind.__mro__), kind.__name__)):
        found[kind.error_id].append(kind)
    return found


def classes() -> Iterator[type[TsuzukiError]]:
    for module, name in defined():
        kind = getattr(importlib.import_module(module), name)
        assert issubclass(kind, TsuzukiError), (module, name)
        yield kind


def defined() -> list[tuple[str, str]]:
    """Finds the error classes in the source: those whose bases are error classes, wherever they stand."""
    bases: dict[tuple[str, str], list[str]] = {}
    for path in rules.modules(ROOT):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for node in rules.parse(path).body:
            if isinstance(node, ast.ClassDef):
                bases[module, node.name] = [ast.unparse(one).rpartition(".")[2] for one in node.bases]
    known = {"TsuzukiError"}
    while more := {name for (_, name), parents in bases.items() if set(parents) & known} - known:
        known |= more
    return [
        (module, name)
        for (module, name), parents in bases.items()
        if not name.startswith("_") and (name == "TsuzukiError" or set(parents) & known)
    ]


def ids_in_the_source() -> set[str]:
    return {number for path in rules.modules(ROOT) for number in ID.findall(path.read_text())}
