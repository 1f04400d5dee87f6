"""What is wrong with an option: which one, what was given, and what is allowed; the same words everywhere."""

import math
import re
from collections.abc import Callable, Collection, Iterable
from numbers import Integral, Real
from typing import Any

from tsuzuki.errors import BadUsage

_MOST_SHOWN = 80


def wrong(option: str, allowed: str, given: object) -> BadUsage:
    """Says that an option is not what it may be."""
    try:
        shown = repr(given)
    except Exception:  # noqa: BLE001 - whatever was given, its option must be named
        shown = f"a {type(given).__name__}"
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    return BadUsage(f"{option} is {allowed}, not {shown}")


def _is_a(kind: type, given: object) -> bool:
    """Tells whether something is a number; to Python True is one too, to people it is not."""
    return isinstance(given, kind) and not isinstance(given, bool)


def whole(option: str, given: Any, least: int, *, optional: bool = False) -> None:
    """Refuses what is no whole number of at least so much."""
    if optional and given is None:
        return
    if not _is_a(Integral, given) or given < least:
        raise wrong(option, f"a whole number of at least {least}" + (" or None" if optional else ""), given)


def number(option: str, given: Any, least: float, most: float = math.inf) -> None:
    """Refuses what is no number between two others; infinity is none."""
    if _is_a(Real, given) and least <= given <= most and given < math.inf:
        return
    raise wrong(option, f"a number of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}", given)


def seconds(option: str, given: Any) -> None:
    """Refuses what is no time above 0; None means none."""
    if given is None:
        return
    if not _is_a(Real, given) or not 0 < given < math.inf:
        raise wrong(option, "a number of seconds above 0, or None for no limit", given)


def word(option: str, given: Any, words: Collection[str]) -> None:
    """Refuses what is none of these words."""
    if not isinstance(given, str) or given not in words:
        raise wrong(option, " or ".join(f'"{known}"' for known in words), given)


def text(option: str, given: Any, *, optional: bool = False) -> None:
    """Refuses what is no text."""
    if not isinstance(given, str) and not (optional and given is None):
        raise wrong(option, "a text" + (" or None" if optional else ""), given)


def texts(option: str, given: Any) -> tuple[str, ...]:
    """Gives texts; refuses what is no list of them: a lone text would be taken for its letters."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(one, str) for one in found):
        raise wrong(option, 'a list of texts, for example ["nightly"]', given)
    return found


def matching(option: str, given: Any, pattern: re.Pattern[str], allowed: str) -> re.Match[str]:
    """Gives how a text fits a pattern; refuses what does not."""
    found = pattern.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise wrong(option, allowed, given)
    return found


def exceptions(option: str, given: Any) -> None:
    """Refuses what is no exception class, nor a tuple of such."""
    kinds = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise wrong(option, "exception classes, for example on=(ConnectionError,)", given)


def switch(option: str, given: Any) -> None:
    """Refuses what is neither True nor False."""
    if not isinstance(given, bool):
        raise wrong(option, "True or False", given)


def function(option: str, given: Any, example: str) -> Callable[..., Any]:
    """Gives a function; refuses what cannot be called."""
    if not callable(given):
        raise wrong(option, f"a function, for example {example}", given)
    return given  # type: ignore[no-any-return] # it can be called: that is all that is promised
