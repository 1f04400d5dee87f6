"""Who a step is: by name and content, never by order of completion.

A step is its parent, the task's name, a digest of its arguments (or an explicit key) and how many equal
calls its parent made before. A map cannot digest an input that it has not read yet; it is its parent, the
task's name, a digest of the arguments that all items share, the branch it was called in (`context.Branches`)
and how many equal maps that branch started before. The root's id is the same in every run, so that a run
that continues another one finds its items.
"""

import inspect
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

ROOT: Final = ""
_FIXED: Final = frozenset({str, int, float, bool, bytes, type(None)})
LONG: Final = 256
"""Arguments of more bytes are remembered by their digest."""
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def _kind_of(value: Any) -> str:
    """Names a thing by its definition; an address in memory would differ in the next process."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _stand_in(value: Any) -> Any:
    """Encodes what msgspec does not know: models by their fields, anything else by what kind of thing it is."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return [_kind_of(value), dump()]
    if hasattr(value, "__fspath__"):
        return str(value)
    return _kind_of(value)


_encoder: Final = msgspec.json.Encoder(order="deterministic", enc_hook=_stand_in)


def digest(*parts: str | bytes) -> str:
    """Gives 16 characters that stand for these parts."""
    data = [part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in parts]
    lengths = ",".join([str(len(part)) for part in data]).encode()
    return _digested(b"\0".join((lengths, *data)))


def _digested(data: bytes) -> str:
    digested = blake2b(data, digest_size=12).digest()
    return b2a_base64(digested, newline=False).translate(_URL_SAFE).decode()


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Gives bytes that are equal for equal arguments, whatever their types."""
    try:
        return _encoder.encode((args, kwargs))
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return _encoder.encode(([_portable(a) for a in args], {k: _portable(v) for k, v in kwargs.items()}))


def content_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Gives what arguments say, in few bytes."""
    said = arguments(args, kwargs)
    return said if len(said) <= LONG else digest(said).encode()


def unchangeable(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tells whether nothing that is called with these arguments could change them."""
    return _FIXED.issuperset(map(type, args)) and (not kwargs or _FIXED.issuperset(map(type, kwargs.values())))


def step_id(parent: str, name: str, content: bytes | str, ordinal: int) -> str:
    """Gives the id of a step; a parent's id has 16 characters or none, JSON has no zero byte."""
    text = content if isinstance(content, bytes) else content.encode()
    return _digested(b"%b\0%b\0%b\0%d" % (parent.encode(), name.encode("utf-8", "surrogatepass"), text, ordinal))


def again(step: str) -> str:
    """Gives the id under which a step that failed is recorded when what called it is tried again."""
    return _digested(b"%b\0again" % step.encode())


def fingerprint(functions: Iterable[Callable[..., Any]]) -> str:
    """Gives a digest of the source of functions, so that a changed flow is noticed."""
    return digest(*(_source(function) for function in functions))


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return repr(function) if code is None else f"{code.co_code!r}{code.co_names!r}{code.co_consts!r}"


def _portable(value: Any) -> Any:
    """Gives the value where JSON can say it, and what kind of thing it is where it cannot."""
    try:
        return msgspec.Raw(_encoder.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return _kind_of(value)
