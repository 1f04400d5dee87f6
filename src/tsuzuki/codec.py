"""Values in and out of JSON: params by a flow's signature, results by a task's return annotation.

What a flow receives is always the decoded recorded value, the first time too, so that a first run and a
replay cannot differ. There is no pickle.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final

import msgspec
import pydantic
import pydantic_core
import typing_extensions

from tsuzuki import jsonkeys, schemas
from tsuzuki.content import digest
from tsuzuki.errors import BadParams, BadUsage, NotJSON, ValueChanged
from tsuzuki.results import Collected

_encode: Final = msgspec.json.Encoder().encode
_PLAIN: Final[frozenset[type]] = frozenset({int, str, bool, type(None)})
_SMALL: Final = 1 << 62
_ANYTHING_IN: Final = (Any, dict, list, dict[str, Any], list[Any])
"""Annotations that say nothing of what is inside: plain JSON needs no pydantic to go there and back."""
NULL: Final = b"null"
_NOT_FINITE: Final = (b"NaN", b"Infinity")
_KEYS: Final = "Make the keys texts, or pass a list of pairs"
_MAYBE_LOST: Final = (NULL, *_NOT_FINITE)
"""What JSON may say where a float was inf or nan: pydantic models say null unless they are told otherwise."""


def short(value: object, most: int = 80) -> str:
    """Shows a value in a message; an object that cannot even be shown is named by its type."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not hide the error that is being told
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else text[: most - 1] + "…"


class Codec:
    """Encodes and decodes the values of one annotation."""

    def __init__(self, annotation: Any = Any) -> None:
        self._annotation = Any if annotation is inspect.Parameter.empty else annotation
        self._kept = _kept_as_they_are(self._annotation)
        self._anything = self._annotation in _ANYTHING_IN

    def record(self, value: Any) -> tuple[bytes, Any]:
        """Gives the JSON of a value and the value that this JSON will give back."""
        if type(value) in self._kept and (type(value) is not int or -_SMALL < value < _SMALL):
            try:
                return _encode(value), value
            except UnicodeEncodeError as error:
                raise _not_json(value, error) from error
        if self._anything and type(value) in (dict, list) and (plain := _there_and_back(value)) is not None:
            return plain
        data = self.encode(value)
        try:
            back = self.decode(data)
        except ValueChanged as error:
            self._refuse_lost(value, None)
            raise NotJSON(f"the result {short(value)} cannot be recorded and read back: {error}") from error
        if any(sign in data for sign in _MAYBE_LOST):
            self._refuse_lost(value, back)
        if jsonkeys.other_than_text(value) and (lost := jsonkeys.lost(value, back)):
            raise NotJSON(f"the result {short(value)} cannot be recorded: result{lost}. {_KEYS}")
        return data, back

    def _refuse_lost(self, value: Any, back: Any) -> None:
        """Refuses a value whose inf or nan would come back as something else."""
        if lost := _lost(self._adapter or _any(), value, back):
            hint = 'that place as float (a pydantic model: also with ser_json_inf_nan="strings" in its config)'
            text = f"the result {short(value)} cannot be recorded: result{lost}. Annotate {hint}"
            raise NotJSON(f"{text}, or put None or a text there yourself")

    def encode(self, value: Any) -> bytes:
        """Gives the JSON of a value."""
        try:
            if self._adapter is None:
                return pydantic_core.to_json(
                    value, bytes_mode="base64", inf_nan_mode="constants", fallback=_plain_or_refused
                )
            return self._adapter.dump_json(value, warnings="none", fallback=_plain_or_refused)
        except (pydantic_core.PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            raise _not_json(value, error) from error

    def decode(self, data: bytes | str | msgspec.Raw) -> Any:
        """Gives the value that a JSON text stands for."""
        text = bytes(data) if isinstance(data, msgspec.Raw) else data
        try:
            if self._adapter is None:
                return pydantic_core.from_json(text, allow_inf_nan=False)
            return self._adapter.validator.validate_json(text)
        except ValueError as error:
            shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
            name = getattr(self._annotation, "__name__", None) or repr(self._annotation)
            raise ValueChanged(f"{short(shown)} does not fit {name}: {_told(error)}") from error

    @cached_property
    def _adapter(self) -> "pydantic.TypeAdapter[Any] | None":
        return None if self._annotation is Any else _adapter(self._annotation)


def _there_and_back(value: Any) -> tuple[bytes, Any] | None:
    """Gives the JSON of plain values and what it gives back, ten times as fast; None where these are not the same.

    Equal says enough: what JSON has another type for (a tuple, a date, a key that is a number) is not equal to it.
    """
    try:
        data = _encode(value)
        back = msgspec.json.decode(data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    return (data, back) if NULL not in data and back == value else None


@cache
def _any() -> "pydantic.TypeAdapter[Any]":
    return pydantic.TypeAdapter(Any)


def _lost(adapter: "pydantic.TypeAdapter[Any]", value: Any, back: Any) -> str:
    """Says which inf or nan of a value has not come back as such, if one has not."""
    had = _not_finite_in(adapter, value)
    if not had or len(kept := _not_finite_in(adapter, back)) >= len(had):
        return ""
    place, number = next((one for one in had if one not in kept), had[0])
    return f"{place} is {number}, which JSON has no word for"


def _not_finite_in(adapter: "pydantic.TypeAdapter[Any]", value: Any) -> list[tuple[str, str]]:
    """Gives the places of a value where a float is inf or nan; a value without is known by its bytes alone."""
    try:
        told = adapter.dump_python(value, warnings="none")
        data = pydantic_core.to_json(told, bytes_mode="base64", inf_nan_mode="constants", fallback=_plain_or_refused)
    except (ValueError, TypeError, RecursionError):  # it has parts that only their own serializer can say
        return []
    if not any(word in data for word in _NOT_FINITE):
        return []
    return list(_not_finite(pydantic_core.from_json(data), ""))


def _not_finite(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place, str(value)
    elif isinstance(value, list | dict):
        for index, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _not_finite(part, f"{place}[{index!r}]")


def _not_json(value: Any, error: Exception) -> NotJSON:
    hint = "Return JSON types, a pydantic model or a dataclass, and annotate the function with it"
    if "surrogates not allowed" in str(error):  # as in file names that are not UTF-8
        hint = 'Spell such a text out, text.encode("utf-8", "backslashreplace").decode(), or return bytes'
    elif inspect.isawaitable(value):  # as what a task gives that is called in an async flow
        hint = "It is a call that was not made yet: await it, and return what it gives"
    return NotJSON(f"{short(value)} ({type(value).__name__}) cannot be recorded as JSON: {error}. {hint}")


def _plain_or_refused(value: Any) -> Any:
    """Lets the outcomes of a map be recorded as the list they are."""
    if isinstance(value, Collected):
        return list(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _told(error: ValueError) -> str:
    if not isinstance(error, pydantic.ValidationError):
        return f"{error}"
    return "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in error.errors(include_url=False))


def _kept_as_they_are(annotation: Any) -> frozenset[type]:
    if annotation is Any:
        return _PLAIN
    if annotation is None:
        annotation = type(None)
    return frozenset(plain for plain in _PLAIN if plain is annotation)


def _adapter(annotation: Any) -> "pydantic.TypeAdapter[Any] | None":
    """Builds the adapter; an annotation that JSON knows nothing of counts as none at all."""
    config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings")
    try:
        return pydantic.TypeAdapter(annotation, config=config)
    except pydantic.PydanticSchemaGenerationError:
        return None
    except pydantic.PydanticUserError:  # a model, dataclass or typed dict takes ours only as a part of something
        return pydantic.TypeAdapter(annotation | None, config=config)


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Reads a signature with its annotations resolved, or as they stand where they cannot be."""
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError, SyntaxError):
        return inspect.signature(function)


def result_codec(function: Callable[..., Any]) -> Codec:
    """Gives the codec of a function's return annotation."""
    annotation = signature(function).return_annotation
    return Codec(Any if isinstance(annotation, str) else annotation)


class Params:
    """The params of a flow: checked against its signature, and stored as one JSON object."""

    def __init__(self, flow: str, function: Callable[..., Any]) -> None:
        self._flow = flow
        self._signature = signature(function)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise BadUsage(f"flow {flow}: params have names; *args and positional-only ones cannot be recorded")

    @cached_property
    def _adapter(self) -> "pydantic.TypeAdapter[dict[str, Any]]":
        fields: dict[str, Any] = {}
        extra: Any = "forbid"
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = "allow"
                continue
            annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
            optional = parameter.default is not parameter.empty
            fields[parameter.name] = typing_extensions.NotRequired[annotation] if optional else annotation
        make: Any = typing_extensions.TypedDict  # its functional form: the names are known only now
        shape: Any = make(f"{self._flow} params", fields)
        shape.__pydantic_config__ = pydantic.ConfigDict(
            extra=extra, ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings"
        )
        return pydantic.TypeAdapter(shape)

    @property
    def names(self) -> frozenset[str]:
        """The names of the params."""
        return frozenset(self._signature.parameters)

    @property
    def any_name(self) -> bool:
        """Whether params of any name are taken."""
        return any(p.kind is p.VAR_KEYWORD for p in self._signature.parameters.values())

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the params, with their defaults."""
        parameters = self._signature.parameters.values()
        return schemas.of_params(self._adapter, {p.name: p.default for p in parameters if p.default is not p.empty})

    def encode(self, given: Mapping[str, Any]) -> bytes:
        """Checks params given as Python values, fills in defaults, and gives their JSON."""
        filled = {p.name: p.default for p in self._signature.parameters.values() if p.default is not p.empty}
        try:
            params = filled | self._adapter.validate_python(dict(given))
            data = self._adapter.dump_json(params, warnings="none")
        except pydantic.ValidationError as error:
            raise self._refusal(error) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise BadParams(f"flow {self._flow}: its params cannot be recorded as JSON: {error}") from error
        if any(sign in data for sign in _MAYBE_LOST):
            try:
                back: Any = self._adapter.validate_json(data)
            except pydantic.ValidationError:  # whoever decodes them will tell, unless it is for what was lost
                back = None
            if lost := _lost(self._adapter, params, back):
                raise BadParams(f"flow {self._flow}: params{lost}: pass None or a text instead")
        if jsonkeys.other_than_text(params) and (lost := jsonkeys.lost(params, self.decode(data))):
            raise BadParams(f"flow {self._flow}: params{lost}. {_KEYS}")
        return data

    def decode(self, data: bytes | msgspec.Raw) -> dict[str, Any]:
        """Gives the arguments to call the flow with; what no longer fits is refused."""
        try:
            params: dict[str, Any] = self._adapter.validator.validate_json(bytes(data))  # four times as fast
            return params
        except pydantic.ValidationError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: "pydantic.ValidationError") -> BadParams:
        problems: tuple[dict[str, object], ...] = tuple(
            {"type": e["type"], "loc": list(e["loc"]), "msg": e["msg"]} for e in error.errors(include_url=False)
        )
        return BadParams(f"flow {self._flow}{self._signature}: {_told(error)}", problems)


def plain_params(given: Mapping[str, Any]) -> bytes:
    """Gives the JSON of the params of a flow that is known by its name alone."""
    try:
        params = dict(given)
        data = msgspec.json.encode(params)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadParams(f"params must be JSON: {error}") from error
    if NULL in data and (lost := _lost(_any(), params, msgspec.json.decode(data))):
        raise BadParams(f"params{lost}: pass None or a text instead")
    return data


def params_digest(data: bytes) -> str:
    """Gives the same digest for the same params, whatever the order of their names."""
    return digest(msgspec.json.encode(msgspec.json.decode(data), order="sorted"))
