"""Who a step is: by name and content, never by order of completion.

A step is its parent, the task's name, a digest of its arguments (or an explicit key) and how many equal
calls its parent made before. A map cannot digest an input that it has not read yet; it is its parent, the
task's name, a digest of the arguments that all items share, the branch it was called in (`context.Branches`)
and how many equal maps that branch started before. The root's id is the same in every run, so that a run
that continues another one finds its items.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from tsuzuki.content import Content, Unsayable, bound_to, digest, digested, has_name, is_local, kind_of

_FIXED: Final = frozenset({str, int, float, bool, bytes, type(None)})
_SURE: Final = _FIXED - {float}
LONG: Final = 256
"""Arguments of more bytes are remembered by their digest."""
_NULL: Final = b"null"
Unsaid: TypeAlias = list[tuple[int | str, str]]
"""The places (or names) of arguments that cannot be said, and what they are."""


def stand_in(value: Any) -> Any:
    """Encodes what msgspec does not know and a few words say: models by their fields, paths, names of definitions."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump()
    if hasattr(value, "__fspath__"):
        return str(value)
    if has_name(value) and bound_to(value) is None and not is_local(value):
        return kind_of(value)
    raise Unsayable


_encode: Final = msgspec.json.Encoder(order="deterministic", enc_hook=stand_in).encode
_HARD: Final = (TypeError, ValueError, msgspec.MsgspecError, RecursionError)


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any], unsaid: Unsaid | None = None) -> bytes:
    """Gives bytes that are equal for equal arguments, whatever their types.

    Those that are known by their kind alone are added to `unsaid`.
    """
    said = plainly(args, kwargs)
    return spelled_out(args, kwargs, unsaid) if said is None else said


def plainly(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes | None:
    """Gives arguments as the JSON `[[…],{…}]`; None where JSON cannot say them, or would say too little."""
    try:
        said = _encode((args, kwargs))
    except _HARD:
        return None
    if _NULL in said and (kwargs or not _SURE.issuperset(map(type, args))) and not _finite((args, kwargs)):
        return None
    return said


def spelled_out(args: tuple[Any, ...], kwargs: Mapping[str, Any], unsaid: Unsaid | None) -> bytes:
    """Gives such bytes for what JSON cannot say."""
    content = Content()
    encoder = msgspec.json.Encoder(order="deterministic", enc_hook=content.stand_in)
    said: dict[int | str, msgspec.Raw] = {}
    given: dict[int | str, Any] = dict(enumerate(args))
    for place, value in (given | {**kwargs}).items():
        said[place] = msgspec.Raw(_spelled(value, content, encoder))
        if unsaid is not None:
            unsaid += [(place, kind) for kind in dict.fromkeys(content.unsaid)]
        content.unsaid.clear()
    return _encode(([said[i] for i in range(len(args))], {name: said[name] for name in kwargs}))


def _spelled(value: Any, content: Content, encoder: msgspec.json.Encoder) -> bytes:
    try:
        said = encoder.encode(value)
        if _NULL not in said or _finite(value, content.stand_in):
            return said
    except _HARD:  # a key that is no text, half of a pair, a circle
        pass
    try:
        return _encode(digest(content.of(value)))
    except RecursionError:
        content.unsaid.append(f"{kind_of(value)} with too many levels")
        return _encode(kind_of(value))


def _finite(value: Any, stand_in: Callable[[Any], Any] = stand_in) -> bool:
    """Tells that no float in a value is inf or nan, for which JSON says null."""
    kind = type(value)
    if kind is float:
        return isfinite(value)
    if kind in _SURE:
        return True
    if isinstance(value, dict):
        return all(_finite(part, stand_in) for part in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return all(_finite(part, stand_in) for part in value)
    plain: Any = msgspec.to_builtins(value, enc_hook=stand_in)
    return type(plain) is kind or _finite(plain, stand_in)


def content_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], unsaid: Unsaid | None = None) -> bytes:
    """Gives what arguments say, in few bytes."""
    return in_few_bytes(arguments(args, kwargs, unsaid))


def in_few_bytes(said: bytes) -> bytes:
    """Gives what is long as its digest."""
    return said if len(said) <= LONG else digest(said).encode()


def unchangeable(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tells whether nothing that is called with these arguments could change them."""
    return _FIXED.issuperset(map(type, args)) and (not kwargs or _FIXED.issuperset(map(type, kwargs.values())))


def step_id(parent: str, name: str, content: bytes | str, ordinal: int) -> str:
    """Gives the id of a step; a parent's id has 16 characters or none, JSON has no zero byte."""
    text = content if isinstance(content, bytes) else content.encode()
    return digested(b"%b\0%b\0%b\0%d" % (parent.encode(), name.encode("utf-8", "surrogatepass"), text, ordinal))


def again(step: str) -> str:
    """Gives the id under which a step that failed is recorded when what called it is tried again."""
    return digested(b"%b\0again" % step.encode())


def fingerprint(functions: Iterable[Callable[..., Any]]) -> str:
    """Gives a digest of the source of functions, so that a changed flow is noticed."""
    return digest(*(_source(function) for function in functions))


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return repr(function) if code is None else f"{code.co_code!r}{code.co_names!r}{code.co_consts!r}"
