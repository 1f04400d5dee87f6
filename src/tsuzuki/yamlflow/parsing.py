"""From text to workflow: reads the document, and checks what its parts say of each other."""

import hashlib
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Final

from tsuzuki.errors import BadWorkflow
from tsuzuki.yamlflow.document import read
from tsuzuki.yamlflow.flaws import Flaw, Flaws, flaws_of, shown
from tsuzuki.yamlflow.graph import Graph
from tsuzuki.yamlflow.needs import Needs
from tsuzuki.yamlflow.reading import Reader
from tsuzuki.yamlflow.references import FromEnv, FromNode, Reference
from tsuzuki.yamlflow.workflow import Output, Workflow

MOST_BYTES: Final = 262_144


def parse(text: bytes | str, *, most_bytes: int = MOST_BYTES, registered: Collection[str] | None = None) -> Workflow:
    """Read a workflow; raise `BadWorkflow` with all that is wrong with it, by line and column.

    Where the names of `registered` tasks are given, a `callable` without a module must be one of them.
    """
    root = read(text, most_bytes=most_bytes)
    flaws = Flaws()
    reader = Reader(flaws, registered)
    reader.read(root)
    graph = _graph(reader)
    if graph is not None:
        _check_writers(reader, graph)
    _check_references(reader, graph)
    flaws.refuse()
    encoded = text.encode() if isinstance(text, str) else text
    if graph is None:
        raise AssertionError  # a workflow without a graph has a flaw
    return Workflow(
        graph, reader.tasks, reader.defaults, reader.expose_env, hashlib.sha256(encoded).hexdigest(), len(encoded)
    )


def check(text: bytes | str, *, most_bytes: int = MOST_BYTES) -> list[Flaw]:
    """Gives what is wrong with a workflow; nothing where it is sound."""
    try:
        parse(text, most_bytes=most_bytes)
    except BadWorkflow as error:
        return flaws_of(error)
    return []


def _graph(reader: Reader) -> Graph | None:
    """Gives the graph, if it is sound and all its tasks are known."""
    reading = reader.graph
    if reading is None:
        return None
    graph = reading.graph(reader.flaws)
    unknown = [name for name in reading.first_seen if name not in reader.tasks]
    for name in unknown:
        advice = reader.flaws.suggest(name, reader.tasks)
        reader.flaws.add(reading.place_of(name), f"the graph names {shown(name)}, which is not in `tasks`; {advice}")
    return None if unknown else graph


def _check_references(reader: Reader, graph: Graph | None) -> None:
    for task, references in reader.references.items():
        for reference, place in references:
            wrong = _wrong(reader, graph, task, reference)
            if wrong:
                reader.flaws.add(place, wrong)


def _wrong(reader: Reader, graph: Graph | None, task: str, reference: Reference) -> str:
    match reference:
        case FromEnv(name) if name not in reader.expose_env:
            return f"$env.{name} is not exposed; write `runtime: {{expose_env: [{name}]}}`"
        case FromNode(other, _, text) if other not in reader.tasks:
            return f"{text} names a task that is not there; {reader.flaws.suggest(other, reader.tasks)}"
        case FromNode(other, _, text) if graph is not None and task in graph.needs:
            if other not in graph.needs:
                return f"{text}: {other} is not in the graph, so it never runs; add `{other} >> {task}`"
            if not graph.is_before(other, task):
                return f"{text}: {other} does not come before {task} in the graph; add `{other} >> {task}`"
    return ""


def _check_writers(reader: Reader, graph: Graph) -> None:
    """Refuses two tasks that store the same name in no order, unless they are alternatives."""
    writers: dict[Output, list[str]] = {}
    for name in graph.order:
        for output in reader.tasks[name].outputs:
            writers.setdefault(output, []).append(name)
    pairs = [(output, pair) for output, names in writers.items() for pair in pairwise(names)]
    unordered = [(output, one, other) for output, (one, other) in pairs if not graph.is_before(one, other)]
    choices = _choices(graph) if unordered else {}
    for output, one, other in unordered:
        if not _apart(choices.get(one, {}), choices.get(other, {})):
            text = f"{one} and {other} both store {output}, and neither comes before the other; give one another name"
            reader.flaws.add(reader.keys[other].place, text)


def _choices(graph: Graph) -> dict[str, dict[int, int]]:
    """Gives, for each task and each `|` that it comes before, the choices that it belongs to, as bits."""
    found: dict[str, dict[int, int]] = {}
    for number, group in enumerate(_groups(graph)):
        for bit, choice in enumerate(group):
            for name in choice.names.union(*(graph.before(name) for name in choice.names)):
                belongs = found.setdefault(name, {})
                belongs[number] = belongs.get(number, 0) | 1 << bit
    return found


def _groups(graph: Graph) -> Iterator[tuple[Needs, ...]]:
    stack: list[Needs] = [*graph.needs.values(), graph.ends]
    seen: set[int] = set()
    while stack:
        needs = stack.pop()
        for group in needs.any:
            if id(group) not in seen:
                seen.add(id(group))
                stack += group
                yield group


def _apart(mine: dict[int, int], theirs: dict[int, int]) -> bool:
    """Tells whether two tasks belong to different choices of some `|`, and to none of it together."""
    return any(not choices & theirs[group] for group, choices in mine.items() if group in theirs)
