"""What a call was given, in few bytes: kept with its outcome for people to look at; replay never reads it.

An object by the names of the parameters. What is too long is cut inside, so that every parameter can be seen. Secrets
are hidden before anything is cut: half of one would not look like a secret any more.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from tsuzuki.content import kind_of
from tsuzuki.facts import NOT_KEPT, Outcome, StepStarted
from tsuzuki.identity import plainly, stand_in
from tsuzuki.redact import hidden, redact
from tsuzuki.suspicion import suspicious

Kept: TypeAlias = tuple[msgspec.Raw, bool]
"""What is kept of what a call was given, and whether that is only a part."""
NOTHING: Final[Kept] = NOT_KEPT, False
NO_NAMES: Final[Mapping[str, Any]] = {}
ELLIPSIS: Final = "…"
_MARGIN: Final = 1024
"""So many characters beyond a cut are looked at for a secret that it would go through."""
_LEAST: Final = 8
"""In fewer bytes nothing can be said."""
_NUMBERS: Final[frozenset[type]] = frozenset({int, float, bool, type(None)})
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _said_by_kind(value: Any) -> Any:
    """Says what JSON cannot: models by their fields, else a note of what kind of thing it is."""
    try:
        return stand_in(value)
    except TypeError:
        return f"<{kind_of(value)}>"


_encode: Final = msgspec.json.Encoder(order="deterministic", enc_hook=_said_by_kind).encode
_split: Final = msgspec.json.Decoder(tuple[list[msgspec.Raw], dict[str, msgspec.Raw]]).decode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text: Final = msgspec.json.Decoder(str).decode


class Given:
    """Says what the calls of one function are given, by the names of its parameters."""

    __slots__ = ("_begin", "_names", "_rest", "_sure")

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # some functions written in C do not tell
            parameters = []
        self._names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
        self._begin = b"{%b:" % _encode(self._names[0]) if self._names else b""
        self._sure = _sure(self._names[0]) if self._names else frozenset()
        """The types of a single argument that cannot be a secret."""

    def call(self, said: bytes | None, args: tuple[Any, ...], kwargs: Mapping[str, Any], most: int) -> Kept:
        """Gives what a call is given, in so many bytes; `said` is what identity made of it, where JSON can say that."""
        if not most:
            return NOTHING
        alone = said is not None and not kwargs and len(args) == 1 and self._begin != b"" and type(args[0]) is not bytes
        if alone and said is not None and len(said) <= most:
            body = b"%b%b}" % (self._begin, said[2:-5])  # [[…],{}] without what is around the one argument
            return msgspec.Raw(body if type(args[0]) in self._sure else _safe(body)), False
        return _kept(self._parts(said, args, kwargs), most)

    def _parts(self, said: bytes | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, bytes]:
        if said is not None:
            listed, named = _split(said)
            ordered = [_bare(value, raw) for value, raw in zip(args, listed, strict=True)]
            by_name = {name: _bare(kwargs[name], raw) for name, raw in named.items()}
        else:
            ordered, by_name = list(map(_spoken, args)), {name: _spoken(value) for name, value in kwargs.items()}
        names = self.names(kwargs)
        parts = dict(zip(names, ordered, strict=False))
        if len(ordered) > len(names):
            parts[self._rest] = b"[%b]" % b",".join(ordered[len(names) :])
        return parts | by_name

    def names(self, kwargs: Iterable[str]) -> list[str]:
        """Gives the names of what is given by its place; a name that is given by name cannot be meant."""
        return [name for name in self._names if name not in kwargs]

    def map(self, shared: Mapping[str, Any], most: int, *, keyed: bool) -> "GivenItems":
        """Gives what says the inputs of the items of a map."""
        return GivenItems(self, shared, most, next(iter(self.names(shared)), self._rest), keyed=keyed)


class GivenItems:
    """Says what the items of one map are given; where an item is its own key and all it is given, the key says it."""

    __slots__ = ("_begin", "_end", "_given", "_most", "_shared", "_sure", "takes")

    def __init__(self, given: Given, shared: Mapping[str, Any], most: int, name: str, *, keyed: bool) -> None:
        self._given, self._shared, self._most = given, shared, most
        self.takes = "" if keyed or shared or not most else name
        """The parameter that is said by the key, if one is."""
        self._begin = b"{%b:" % _encode(name)
        self._sure = _sure(name)
        rest = _safe(_joined({name: _spoken(value) for name, value in shared.items()})) if most else b"{}"
        self._end = b",%b" % rest[1:] if shared else b"}"

    def of(self, item: Any) -> Kept:
        """Gives what the fact of an item has to keep."""
        kind = type(item)
        if not self._most or (self.takes and (kind is int or (kind is str and _number(item) is None))):
            return NOTHING
        said = plainly((item,), NO_NAMES)
        if said is None or kind is bytes or not self._sure or len(said) + len(self._end) > self._most:
            return self._given.call(None, (item,), self._shared, self._most)
        body = said[2:-5]
        return msgspec.Raw(b"".join((self._begin, body if kind in self._sure else _safe(body), self._end))), False


def given_to(fact: Outcome, mapped: StepStarted | None) -> bytes | None:
    """Reads what a call was given, as JSON; None where that is not kept."""
    if fact.inputs != NOT_KEPT:
        return bytes(fact.inputs)
    if mapped is None or not mapped.takes:
        return None
    number = _number(fact.key)
    return _safe(_encode({mapped.takes: fact.key if number is None else number}))


def shortened(inputs: bytes, most: int) -> bytes:
    """Gives inputs in fewer bytes, for lists."""
    return _fitted(inputs, most)


def _sure(name: str) -> frozenset[type]:
    """Gives the types of a parameter whose values cannot be secrets."""
    return frozenset() if suspicious(name) else _NUMBERS


def _number(key: str) -> int | None:
    """Reads the key of an item as the number that it stands for, unless it was a text that looks like one."""
    return int(key) if key[-1:].isdigit() and _WHOLE.fullmatch(key) else None


def _bare(value: Any, raw: msgspec.Raw) -> bytes:
    """Gives an argument as JSON says it; of bytes only how many there are, for in Base64 nothing finds a secret."""
    return _encode(f"<{len(value):,} bytes>") if type(value) is bytes else bytes(raw)


def _spoken(value: Any) -> bytes:
    """Says an argument, whatever it is; one that cannot even be looked at by what it is."""
    try:
        if type(value) is float and not isfinite(value):
            return _encode(str(value))
        return _bare(value, msgspec.Raw(_encode(value)))
    except Exception:  # noqa: BLE001 - models say themselves, and a look at them must not fail the call
        return _encode(f"<{kind_of(value)}>")


def _safe(body: bytes) -> bytes:
    """Gives JSON without secrets."""
    return hidden(body) if suspicious(body.decode()) else body


def _kept(parts: Mapping[str, bytes], most: int) -> Kept:
    whole = _joined(parts)
    body = whole if len(whole) <= most else _shared_out(parts, most)
    return msgspec.Raw(_safe(body)), body is not whole


# What is too long, cut inside


def _joined(parts: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (_encode(name), raw) for name, raw in parts.items())


def _shared_out(parts: Mapping[str, bytes], most: int) -> bytes:
    """Cuts what is longest, and leaves what is short whole."""
    shown = _with_room(parts, most)
    lengths = {name: len(_encode(name)) for name in shown}
    left, sizes = most, sorted((lengths[name] + len(raw), name) for name, raw in shown.items())
    room: dict[str, int] = {}
    for place, (size, name) in enumerate(sizes):
        room[name] = max(min(size, left // (len(sizes) - place)) - lengths[name], _LEAST)
        left -= room[name] + lengths[name]
    cut = {name: _fitted(raw, room[name]) for name, raw in shown.items()}
    if len(parts) > len(shown):
        cut[ELLIPSIS] = b"%d" % (len(parts) - len(shown))
    return _joined(cut)


def _with_room(parts: Mapping[str, bytes], most: int) -> dict[str, bytes]:
    """Gives as many parts as there is room for: for their names, and for a little of what each holds; one at least."""
    shown: dict[str, bytes] = {}
    left = most
    for name, raw in list(parts.items())[: max(most // 16, 1)]:
        called = name if len(_encode(name)) <= most // 2 + 2 else _beginning(name, most // 2)
        left -= len(_encode(called)) + _LEAST
        if shown and left < 0:
            break
        shown[called] = raw
    return shown


def _fitted(raw: bytes, most: int) -> bytes:
    """Gives a JSON value in about so many bytes: texts and lists lose their ends, objects those of what they hold."""
    if len(raw) <= most:
        return raw
    match raw[:1]:
        case b"{":
            return _shared_out({name: bytes(part) for name, part in _fields(raw).items()}, most)
        case b"[":
            return _fewer(list(map(bytes, _elements(raw))), most)
        case b'"':
            return _encode(_beginning(_text(raw), most))
    return raw  # a number


def _fewer(elements: list[bytes], most: int) -> bytes:
    shown: list[bytes] = []
    left = most
    for element in elements:
        if left < _LEAST:
            break
        shown.append(_fitted(element, left))
        left -= len(shown[-1]) + 1
    if len(shown) < len(elements):
        shown.append(_encode(f"{ELLIPSIS} {len(elements) - len(shown):,}"))
    return b"[%b]" % b",".join(shown)


def _beginning(text: str, most: int) -> str:
    """Gives the beginning of a text; a secret that goes through the cut is hidden before."""
    window = redact(text[: most + _MARGIN])
    return window.encode()[:most].decode(errors="ignore") + ELLIPSIS
