"""What a value says, as a digest that is the same in every process: for whatever JSON cannot say.

A value is taken apart as copying it would (`__reduce_ex__`): its class by name, its arguments, its state, its
items. What cannot be taken apart (a lock, an open file, a client that holds one) is known by its kind alone, and
noted: two of them cannot be told apart. Sets and mappings have no order here; equal parts say the same.
"""

import copyreg
from binascii import b2a_base64
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from hashlib import blake2b
from types import GenericAlias, MappingProxyType, ModuleType
from typing import Any, Final

MOST_PARTS: Final = 500_000
MOST_BYTES: Final = 256 << 20
"""A value of more parts or bytes is known by its kind: to look at all of it would cost more than most calls."""

_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_SCALARS: Final = frozenset({str, int, float, bool, bytes, type(None)})
_SHORT: Final = 64
_PROTOCOL: Final = 4


def digest(*parts: str | bytes) -> str:
    """Gives 16 characters that stand for these parts."""
    data = [part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in parts]
    lengths = ",".join([str(len(part)) for part in data]).encode()
    return digested(b"\0".join((lengths, *data)))


def digested(data: bytes) -> str:
    """Gives 16 characters that stand for these bytes."""
    return b2a_base64(blake2b(data, digest_size=12).digest(), newline=False).translate(_URL_SAFE).decode()


def kind_of(value: Any) -> str:
    """Return the qualified name of a function or a class, or of the class of anything else.

    The module is left out: it is `__main__` in a script, and another name in every other process that may execute
    the same call (`tsuzuki resume`, a worker, a wheel).
    """
    return str((value if has_name(value) else type(value)).__qualname__)


def has_name(value: Any) -> bool:
    """Tells whether a thing is a function or a class, which its name says."""
    return hasattr(value, "__qualname__") and hasattr(value, "__module__") and not isinstance(value, GenericAlias)


def bound_to(value: Any) -> Any:
    """Gives the object whose method this is, or None."""
    owner = getattr(value, "__self__", None)
    return None if isinstance(owner, type | ModuleType) else owner


def is_local(function: Any) -> bool:
    """Tells whether other functions may have the same name: a lambda, or one that a function has made."""
    return "<" in str(function.__qualname__)


class Unsayable(TypeError):
    """A value has a part that says nothing about itself."""


class Content:
    """Says values that belong together; `unsaid` has the kinds of those that are known by their kind alone."""

    def __init__(self) -> None:
        self.unsaid: list[str] = []
        self._known: dict[int, tuple[Any, str]] = {}
        self._circles: dict[int, tuple[Any, str]] = {}
        self._path: dict[int, int] = {}
        self._nearest = 0
        """The place on the path of the outermost value that a part has led back to."""
        self._inside = False
        self._parts, self._bytes = MOST_PARTS, MOST_BYTES

    def of(self, value: Any) -> str:
        """Gives the digest of what a value says."""
        kind = type(value)
        if kind in _SCALARS:
            return self._scalar(kind, value)
        if has_name(value) and bound_to(value) is None:
            return self.named(value)
        return self._once(value)

    def _scalar(self, kind: type, value: Any) -> str:
        """Says a short one itself: a digest, which has no colon, takes much longer."""
        if kind is not str and kind is not bytes:
            return f"{kind.__name__}:{value!r}"
        self._bytes -= len(value)
        return digest(kind.__name__, value) if kind is bytes or len(value) > _SHORT else f"str:{value}"

    def named(self, value: Any) -> str:
        """Gives the name of a function or a class; a function that may not be the only one of its name is noted."""
        if is_local(value) and not isinstance(value, type):
            self.unsaid.append(kind_of(value))
        return kind_of(value)

    def stand_in(self, value: Any) -> Any:
        """Gives JSON for what JSON cannot say: models by their fields, paths, names, else a digest of the content."""
        dump = getattr(value, "model_dump", None)
        if dump is not None and not isinstance(value, type):
            return dump()
        if hasattr(value, "__fspath__"):
            return str(value)
        said, kind = self.of(value), kind_of(value)
        return said if said == kind else [kind, said]

    def _once(self, value: Any) -> str:
        """Says a value that has parts: once, however often it occurs, and not again inside itself."""
        mark = id(value)
        found = self._known.get(mark) or self._circles.get(mark)
        if found is not None:
            return found[1]
        if mark in self._path:
            self._nearest = min(self._nearest, self._path[mark])
            return digest("again", str(len(self._path) - self._path[mark]))
        self._parts -= 1
        if self._parts < 0 or self._bytes < 0:
            raise Unsayable("more in it than is looked at")
        outer, depth = self._nearest, len(self._path)
        self._path[mark] = self._nearest = depth
        try:
            said = self._said(value)
        finally:
            del self._path[mark]
            nearest, self._nearest = self._nearest, min(outer, self._nearest)
        if nearest < depth:  # a part of a circle: what it says depends on where the circle was entered
            self._circles[mark] = value, digest("circle", str(len(self._circles)))
        else:
            self._known[mark] = value, said  # with the value, so that nothing else gets its address
        return said

    def _said(self, value: Any) -> str:
        kind = type(value)
        if kind is list or kind is tuple:
            return self._sequence(kind.__name__, value)
        if kind is dict or kind is MappingProxyType:
            return self._mapping("dict", value)
        if kind is set or kind is frozenset or isinstance(value, KeysView | ItemsView):
            return self._unordered(value)
        if isinstance(value, ValuesView):
            return self._sequence("values", value)
        return self._object(value)

    def _sequence(self, kind: str, values: Iterable[Any]) -> str:
        return digest(kind, *map(self.of, values))

    def _mapping(self, kind: str, value: Mapping[Any, Any]) -> str:
        keys = sorted(((self.of(key), key) for key in value), key=lambda pair: pair[0])
        return digest(kind, *(part for said, key in keys for part in (said, self.of(value[key]))))

    def _unordered(self, values: Iterable[Any]) -> str:
        said, depth = [], len(self._path) - 1
        for value in values:
            circles, self._circles = self._circles, {}  # none may depend on which of them came first
            try:
                said.append(self.of(value))
            finally:
                self._circles = circles
        if self._nearest < depth:
            raise Unsayable("a circle through a set")
        return digest("set", *sorted(said))

    # Objects

    def _object(self, value: Any) -> str:
        """Says an object, or its kind where one of its parts says nothing: it is rather a tool than a value.

        What else such a one holds (its connections, what it counts) differs from process to process.
        """
        if self._inside:
            return self._taken_apart(value)
        self._inside = True
        try:
            return self._taken_apart(value)
        except (Unsayable, RecursionError) as part:
            kind = kind_of(value)
            within = str(part) if isinstance(part, Unsayable) else "too many levels"
            self.unsaid.append(kind if within == kind else f"{kind} with {within}")
            return kind
        finally:
            self._inside = False

    def _taken_apart(self, value: Any) -> str:
        if (owner := bound_to(value)) is not None:
            return digest("method", kind_of(value), self.of(owner))
        dump = getattr(value, "model_dump", None)
        if dump is not None:
            return digest("model", self.of(dump()))
        if hasattr(value, "__fspath__"):
            return digest("path", str(value))
        if isinstance(value, ModuleType):
            return digest("module", value.__name__)
        reduced = _reduced(value)
        if isinstance(reduced, str):
            return digest("global", reduced)
        made, args, *more = reduced
        if made is copyreg.__newobj__:  # type: ignore[attr-defined] # typeshed does not know the usual one
            made, args = args[0], args[1:]
        state, listed, pairs = (*more, None, None, None)[:3]
        return digest(
            "object",
            kind_of(made),
            *map(self.of, (args, state, list(listed or ()), dict(pairs or ()))),
        )


def _reduced(value: Any) -> Any:
    """Takes an object apart as `copy` does."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return value.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(value)
    except Exception as error:
        raise Unsayable(kind_of(value)) from error
