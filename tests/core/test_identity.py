"""Who a step is: equal arguments say the same in every process, different ones do not."""

import collections
import collections.abc
import copy
import datetime as dt
import decimal
import enum
import functools
import ipaddress
import math
import re
import subprocess
import sys
import threading
import types
import uuid
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tsuzuki.identity import LONG, Unsaid, arguments, content_of, step_id


class Doc:
    def __init__(self, number: object) -> None:
        self.number = number


class Slotted:
    __slots__ = ("number",)

    def __init__(self, number: object) -> None:
        self.number = number


@dataclass
class Page:
    url: str
    size: float


class Model(pydantic.BaseModel):
    name: str
    size: float = 1.5


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Tool:
    """What cannot be copied, as a client with its connections."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()


def work(number: int) -> int:
    return number


def ring(number: int) -> Doc:
    first, second = Doc(number), Doc(number + 1)
    first.next, second.next = second, first  # type: ignore[attr-defined] # objects take what they are given
    return first


UNCOPIED = (collections.abc.MappingView, types.ModuleType, types.MappingProxyType)
DIFFERENT: list[tuple[Any, Any]] = [
    (Doc(1), Doc(2)),
    (Doc(math.nan), Doc(None)),
    (Slotted(1), Slotted(2)),
    ([Doc(1)], [Doc(2)]),
    ({"a": Doc(1)}, {"a": Doc(2)}),
    (Page("a", math.nan), Page("a", math.inf)),
    (Model(name="a", size=math.nan), Model(name="a", size=-math.inf)),
    (range(3), range(10)),
    ({0.5: 1}, {0.5: 1, 0.9: 70}),
    ({(1, 2): "a"}, {(1, 3): "a"}),
    ({1: "a"}, {"1": "a"}),
    ({1: "a"}.keys(), {2: "a"}.keys()),
    ({1: "a"}.values(), {1: "b"}.values()),
    ({1: "a"}.items(), {1: "b"}.items()),
    (types.MappingProxyType({1: 2}), types.MappingProxyType({1: 3})),
    (collections.deque([1]), collections.deque([2])),
    ({1, "a"}, {2, "a"}),
    (1j, 2j),
    (Fraction(1, 2), Fraction(1, 3)),
    (ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2")),
    (re.compile("a"), re.compile("b")),
    (functools.partial(work, 1), functools.partial(work, 2)),
    (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)),
    (Doc(1).__init__, Doc(2).__init__),  # type: ignore[misc] # a bound method, of two objects
    (list[int], list[str]),
    (math, re),
    (ValueError("a"), ValueError("b")),
    (Text("a"), Text("b")),
    ("\ud800", "\ud801"),
    ("a\ud800", "a"),
    (math.nan, None),
    (math.nan, math.inf),
    (math.inf, -math.inf),
    ([1.0, math.nan], [1.0, None]),
    ({"a": (math.inf,)}, {"a": (None,)}),
    (ring(1), ring(2)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_different_arguments_say_something_different_and_equal_ones_the_same(one: Any, other: Any) -> None:
    assert arguments((one,), {}) != arguments((other,), {})
    assert arguments((), {"a": one}) != arguments((), {"a": other})
    for value in (one, other):
        twin = value if isinstance(value, UNCOPIED) else copy.deepcopy(value)
        assert arguments((value, 1), {}) == arguments((twin, 1), {})


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_all_of_that_can_be_told_apart(one: Any, other: Any) -> None:
    unsaid: Unsaid = []
    arguments((one, other), {}, unsaid)
    assert unsaid == []


def test_the_order_of_what_has_none_does_not_count() -> None:
    assert arguments(({1: Doc(1), 2: Doc(2)},), {}) == arguments(({2: Doc(2), 1: Doc(1)},), {})
    one, two = Doc("a"), Doc("b")
    assert arguments(({one, two},), {}) == arguments(({Doc("b"), Doc("a")},), {})


def test_one_part_said_twice_says_what_two_equal_parts_say() -> None:
    part = Doc([1, 2])
    assert arguments(([part, part],), {}) == arguments(([Doc([1, 2]), Doc([1, 2])],), {})


def test_a_value_that_holds_itself_says_something() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    other: list[Any] = [2]
    other.append(other)
    assert arguments((circle,), {}) != arguments((other,), {})


def test_many_ways_through_a_net_are_not_all_gone() -> None:
    nodes = [Doc(number) for number in range(200)]
    for node in nodes:
        node.others = nodes  # type: ignore[attr-defined] # objects take what they are given
    assert arguments((nodes[0],), {}) == arguments((nodes[0],), {})


_ACROSS = """
from tests.core.test_identity import DIFFERENT, Doc, arguments
print([arguments((one, {Doc("a"), Doc("b"), "c", 1}), {}) for one, _ in DIFFERENT])
"""


def test_another_process_says_the_same() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", _ACROSS],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (threading.Lock(), "lock"),
        (Tool(1), "Tool with lock"),
        ([Tool(1)], "Tool with lock"),
        ({1: Tool(1)}, "Tool with lock"),
        (Doc(Tool(1)), "Doc with lock"),
        ((number for number in [1]), "generator"),
        (lambda: 1, "<lambda>"),
        (Doc(lambda: 1), "<lambda>"),
        ([lambda: 1, {1: 2}], "<lambda>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_said_is_known_by_its_kind_and_named(value: Any, what: str) -> None:
    unsaid: Unsaid = []
    arguments((1,), {"a": value}, unsaid)
    assert unsaid == [("a", what)]


def test_tools_of_one_kind_are_equal_whatever_they_have_done() -> None:
    assert arguments((Tool(1),), {}) == arguments((Tool(2),), {})
    assert arguments(([Tool(1), 1],), {}) != arguments(([Tool(1), 2],), {})


def test_what_is_nested_too_deeply_is_known_by_its_kind() -> None:
    value: Any = None
    for _ in range(5000):
        value = Doc(value)
    unsaid: Unsaid = []
    arguments((value,), {}, unsaid)
    assert unsaid == [(0, "Doc with too many levels")]


SAID: list[tuple[Any, bytes]] = [
    (None, b"null"),
    (1.0, b"1.0"),
    ("a", b'"a"'),
    (b"a", b'"YQ=="'),
    ([1, (2, None)], b"[1,[2,null]]"),
    ({"b": 1, "a": {2, 1}}, b'{"a":[1,2],"b":1}'),
    (Page("a", 1.5), b'{"url":"a","size":1.5}'),
    (Model(name="a"), b'{"name":"a","size":1.5}'),
    (Colour.RED, b'"red"'),
    (Path("a/b"), b'"a/b"'),
    (decimal.Decimal("1.10"), b'"1.10"'),
    (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
    (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), b'"2024-01-01T00:00:00Z"'),
    (work, b'"work"'),
    (Doc, b'"Doc"'),
    (threading.Lock(), b'"lock"'),
    (Tool(1), b'"Tool"'),
    (lambda: 1, b'"<lambda>"'),
]


@pytest.mark.parametrize(("value", "said"), SAID, ids=lambda value: type(value).__name__)
def test_what_arguments_say_names_no_module(value: Any, said: bytes) -> None:
    assert arguments((value,), {"a": value}) == b"[[" + said + b'],{"a":' + said + b"}]"


def test_the_ids_of_steps_stay_as_they_were() -> None:
    assert step_id("", "fetch", content_of(("http://a", 3), {"deep": True}), 0) == "0aBUH2GKPIJpTJrL"
    assert step_id("AAAAAAAAAAAAAAAA", "fetch", content_of(("x" * LONG,), {}), 2) == "XJddTIqtVCTuzjP2"
