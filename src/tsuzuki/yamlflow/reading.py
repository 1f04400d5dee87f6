"""Reads a workflow out of a document: every key that may be said is listed here, and every other is refused by name."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any, Final, cast

from tsuzuki.defaults import KEYS
from tsuzuki.errors import BadUsage, BadWorkflow
from tsuzuki.retry import Retry
from tsuzuki.yamlflow.document import Fields, Items, Node, Text
from tsuzuki.yamlflow.flaws import Flaws, shown
from tsuzuki.yamlflow.graph import NAME, Reading, read_graph
from tsuzuki.yamlflow.references import Found, FromEnv, looks_like_one, read_input
from tsuzuki.yamlflow.scalars import is_null, scalar, value_of
from tsuzuki.yamlflow.workflow import Mapped, Output, Where, YamlTask

TOP: Final = ("version", "flow", "tasks", "runtime")
FLOW: Final = ("graph", "defaults")
TASK: Final = ("callable", "inputs", "outputs", "retry", "timeout", "map")
RETRY: Final = tuple(field.name for field in fields_of(Retry) if field.name != "on")
MAP: Final = ("over", "concurrency", "key", "on_error")
RUNTIME: Final = ("expose_env",)
OUTPUTS: Final = ("scratch", "results", "params")

_FORBIDDEN: Final = {
    "flows": "a file holds one flow: use `flow`",
    "discovery": "code is not searched for: name each function with `callable`",
}
_CALLABLE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*|[^\s:]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS: Final = "TSUZUKI_"
_OURS_TOO: Final = frozenset(key.name for key in KEYS)
"""Keys of providers: whoever may submit a workflow is not shown them by it."""


class Reader:
    """Reads the parts of a workflow and notes what is wrong with them."""

    def __init__(self, flaws: Flaws, registered: Collection[str] | None = None) -> None:
        self.flaws = flaws
        self._registered = registered
        self.graph: Reading | None = None
        self.defaults: dict[str, Any] = {}
        self.expose_env: frozenset[str] = frozenset()
        self.tasks: dict[str, YamlTask] = {}
        self.references: dict[str, list[Found]] = {}
        self.keys: dict[str, Text] = {}

    def read(self, root: Node) -> None:
        """Reads the whole document."""
        top = self._fields(root, "a workflow", TOP, required=("flow", "tasks"))
        if "version" in top and scalar_or_none(top["version"], self.flaws) != 1:
            self.flaws.add(top["version"].place, "this version is not known; write `version: 1`, or leave it out")
        if "flow" in top:
            self._flow(top["flow"])
        if "runtime" in top:
            self._runtime(top["runtime"])
        if "tasks" in top:
            self._tasks(top["tasks"])

    # Shapes

    def _fields(self, node: Node, what: str, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Node]:
        """Gives the fields of a mapping, and notes those that are unknown or missing."""
        found: dict[str, Node] = {}
        if not isinstance(node, Fields):
            self.flaws.add(node.place, f"{what} is a mapping with {', '.join(known)}")
            return found
        for key, value in node.fields:
            if key.value in known:
                if not is_null(value):  # a key without a value says nothing
                    found[key.value] = value
            else:
                advice = _FORBIDDEN.get(key.value) or self.flaws.suggest(key.value, known)
                self.flaws.add(key.place, f"{what} has no key {shown(key.value)}; {advice}")
        for name in required:
            if name not in found:
                self.flaws.add(node.place, f"{what} needs `{name}:`")
        return found

    def _text(self, node: Node, what: str) -> str | None:
        value = scalar(node, self.flaws) if isinstance(node, Text) else None
        if isinstance(value, str) and value:
            return value
        self.flaws.add(node.place, f"{what} is a text")
        return None

    def _texts(self, node: Node, what: str) -> list[tuple[str, Node]]:
        if not isinstance(node, Items):
            self.flaws.add(node.place, f"{what} is a list, for example [a, b]")
            return []
        texts = [(self._text(item, f"an element of {what}"), item) for item in node.items]
        return [(text, item) for text, item in texts if text is not None]

    # The flow

    def _flow(self, node: Node) -> None:
        flow = self._fields(node, "`flow`", FLOW, required=("graph",))
        graph = flow.get("graph")
        if isinstance(graph, Text):
            try:
                self.graph = read_graph(graph)
            except BadWorkflow as error:
                self.flaws.take(error)
        elif graph is not None:
            self.flaws.add(graph.place, "`graph` is a text such as `load >> (clean & stats) >> report`")
        defaults = flow.get("defaults")
        if isinstance(defaults, Fields):
            self._refuse_references(defaults)
            self.defaults = value_of(defaults, self.flaws)
        elif defaults is not None:
            self.flaws.add(defaults.place, "`defaults` is a mapping of params to values")

    def _refuse_references(self, node: Node) -> None:
        match node:
            case Text() if looks_like_one(node.value):
                self.flaws.add(
                    node.place, f"defaults are values, and {shown(node.value)} is a reference; use it in `inputs`"
                )
            case Items():
                for item in node.items:
                    self._refuse_references(item)
            case Fields():
                for _, value in node.fields:
                    self._refuse_references(value)

    def _runtime(self, node: Node) -> None:
        runtime = self._fields(node, "`runtime`", RUNTIME)
        if "expose_env" not in runtime:
            return
        names = self._texts(runtime["expose_env"], "`expose_env`")
        for name, item in names:
            if _VARIABLE.fullmatch(name) is None:
                self.flaws.add(item.place, f"{shown(name)} cannot be the name of a variable")
            elif name.startswith(_OURS) or name in _OURS_TOO:
                self.flaws.add(item.place, f"{name} belongs to the worker itself and cannot be exposed")
        self.expose_env = frozenset(name for name, _ in names)

    # Tasks

    def _tasks(self, node: Node) -> None:
        if not isinstance(node, Fields):
            self.flaws.add(node.place, "`tasks` is a mapping of task names to what they are")
            return
        for key, value in node.fields:
            if NAME.fullmatch(key.value) is None:
                self.flaws.add(key.place, f"{shown(key.value)} cannot name a task; use letters, digits, _ and -")
            self.keys[key.value] = key
            self.tasks[key.value] = self._task(key.value, value)

    def _task(self, name: str, node: Node) -> YamlTask:
        found = self._fields(node, f"task {shown(name)}", TASK, required=("callable",))
        references = self.references[name] = []
        task_map = found.get("map")
        mapped = None if task_map is None else self._map(task_map, references)
        return YamlTask(
            name,
            self._callable(found.get("callable")),
            self._inputs(found.get("inputs"), references),
            self._outputs(found.get("outputs"), mapped=mapped is not None),
            self._retry(found.get("retry")),
            self._seconds(found.get("timeout")),
            mapped,
        )

    def _callable(self, node: Node | None) -> str:
        text = None if node is None else self._text(node, "`callable`")
        if node is not None and text is not None and (wrong := self._wrong_callable(text)):
            self.flaws.add(node.place, wrong)
        return text or ""

    def _wrong_callable(self, text: str) -> str:
        if _CALLABLE.fullmatch(text) is None:
            return f'{shown(text)} names no function; write "module:function", or the name of a registered task'
        if self._registered is None or ":" in text or text in self._registered:
            return ""
        advice = self.flaws.suggest(text, sorted(self._registered))
        return f'{shown(text)} is no task that a living worker has registered ({advice}); write "module:function"'

    def _inputs(self, node: Node | None, references: list[Found]) -> dict[str, Any]:
        if node is None:
            return {}
        if not isinstance(node, Fields):
            self.flaws.add(node.place, "`inputs` is a mapping of parameters to values")
            return {}
        for key, _ in node.fields:
            if not key.value.isidentifier():
                self.flaws.add(key.place, f"{shown(key.value)} cannot be the name of a parameter")
        return {key.value: read_input(value, self.flaws, references) for key, value in node.fields}

    def _outputs(self, node: Node | None, *, mapped: bool) -> tuple[Output, ...]:
        outputs = []
        for text, item in [] if node is None else self._texts(node, "`outputs`"):
            where, _, name = text.partition(".")
            if where not in OUTPUTS or NAME.fullmatch(name) is None:
                self.flaws.add(
                    item.place, f"{shown(text)} is no output; write scratch.NAME, results.NAME or params.NAME"
                )
                continue
            outputs.append(Output(cast("Where", where), name))
        if node is not None and len(set(outputs)) < len(outputs):
            self.flaws.add(node.place, "an output is named twice; keep one of them")
        if node is not None and mapped and len(outputs) > 1:
            self.flaws.add(node.place, "the results of a map are one list; name one output for it")
        return tuple(outputs)

    def _retry(self, node: Node | None) -> Retry | None:
        if node is None:
            return None
        numbers: dict[str, Any] = {}
        if isinstance(node, Text):
            numbers["attempts"] = scalar(node, self.flaws)
        else:
            found = self._fields(node, "`retry`", RETRY)
            numbers = {name: value_of(value, self.flaws) for name, value in found.items()}
        try:
            return Retry(**numbers)
        except BadUsage as error:
            advice = "`retry` is a number of attempts, or {attempts: 3, backoff: 1.5}"
            self.flaws.add(node.place, f"{error}; {advice}")
            return None

    def _seconds(self, node: Node | None) -> float | None:
        if node is None:
            return None
        value = scalar(node, self.flaws) if isinstance(node, Text) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            self.flaws.add(node.place, "`timeout` is a number of seconds above 0")
            return None
        return float(value)

    def _map(self, node: Node, references: list[Found]) -> Mapped:
        options: Mapping[str, Node] = {"over": node}
        if isinstance(node, Fields):
            options = self._fields(node, "`map`", MAP, required=("over",))
        over = options.get("over")
        found: list[Found] = []
        items = [] if over is None else read_input(over, self.flaws, found)
        references += found
        if over is not None and (isinstance(items, FromEnv) or not (isinstance(items, list) or found)):
            self.flaws.add(over.place, "a map goes over a list, or over a reference to one such as $node.load.output")
        return Mapped(
            items,
            self._concurrency(options.get("concurrency")),
            self._key(options.get("key")),
            self._on_error(options.get("on_error")),
        )

    def _concurrency(self, node: Node | None) -> int:
        value = 8 if node is None else scalar_or_none(node, self.flaws)
        if type(value) is int and 1 <= value <= MOST_AT_ONCE:
            return value
        if node is not None:
            self.flaws.add(node.place, f"`concurrency` is a number from 1 to {MOST_AT_ONCE}")
        return 1

    def _key(self, node: Node | None) -> tuple[str, ...]:
        text = None if node is None else self._text(node, "`key` (the field of an item that is its key)")
        return () if text is None else tuple(text.split("."))

    def _on_error(self, node: Node | None) -> Any:
        value = "fail" if node is None else scalar_or_none(node, self.flaws)
        if node is not None and value not in ("fail", "collect"):
            self.flaws.add(node.place, "`on_error` is fail or collect")
        return value


MOST_AT_ONCE: Final = 1000


def scalar_or_none(node: Node, flaws: Flaws) -> str | int | float | bool | None:
    """Gives the value of a scalar, and None of anything else."""
    return scalar(node, flaws) if isinstance(node, Text) else None
