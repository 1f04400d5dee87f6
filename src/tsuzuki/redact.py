"""Keeps secrets out of everything that is written down or shown."""

import traceback
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import commandlines
from tsuzuki.facts import Problem
from tsuzuki.namings import named
from tsuzuki.shapes import HIDDEN, PRIVATE_KEYS, shaped
from tsuzuki.suspicion import suspicious

_OURS: Final = str(Path(__file__).parent)
_SECRET_ENDINGS: Final = (
    *("token", "credential", "credentials", "secret", "secrets", "passwords"),
    *("pwd", "cookie", "cookies"),
)
_USER: Final = ("-u", "--user")
_LONGEST_NAME: Final = 64
_MOST: Final = 4096
_MOST_LOOKED_AT: Final = 131072
"""Of a longer text only the beginning and the end are looked at."""
_MOST_TRACE: Final = 16384
_MOST_TRACE_OF_A_LINE: Final = 6144


def redact(text: str) -> str:
    """Gives the text with everything that looks like a secret hidden."""
    return _hiding(text) if suspicious(text) else text


def _hiding(text: str) -> str:
    low = text.lower()
    if any(map(low.__contains__, PRIVATE_KEYS.words)):  # first: the rest of half a key looks like nothing
        text = PRIVATE_KEYS.pattern.sub(PRIVATE_KEYS.shown, text)
    text = commandlines.without_passwords(shaped(text, low))
    parts, past = [], 0
    for begin, end in named(text, text.lower()):
        parts += [text[past:begin], HIDDEN]
        past = end
    return "".join((*parts, text[past:]))


def hidden(body: bytes) -> bytes:
    """Gives JSON with every value hidden that looks like a secret, or whose name says that it is one."""
    return msgspec.json.encode(without_secrets(msgspec.json.decode(body)))


def without_secrets(value: Any) -> Any:
    """Does the same with a value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return _listed(value)
    if not isinstance(value, dict):
        return value
    return {
        name: HIDDEN if part not in (None, "") and _names_a_secret(name) else without_secrets(part)
        for name, part in value.items()
    }


def _listed(parts: list[Any]) -> list[Any]:
    """Hides what follows a name in a command line (`--password`, `x`; `-u`, `me:x`) and in a list of two."""
    told = [without_secrets(part) for part in parts]
    option = commandlines.password_option(parts)
    for place, (name, part) in enumerate(pairwise(parts), 1):
        if not isinstance(part, str) or not part:
            continue
        named = isinstance(name, str) and len(name) <= _LONGEST_NAME and (name.startswith("-") or len(parts) == 2)  # noqa: PLR2004 - a name and its value
        if (named and _names_a_secret(name.lstrip("-"))) or (name == option and not part.startswith("-")):
            told[place] = HIDDEN
        elif name in _USER:
            told[place] = redact(f"{name} {part}").removeprefix(f"{name} ")
        elif option and part.startswith(option) and part != option:
            told[place] = f"{option}{HIDDEN}"
    return told


@lru_cache(maxsize=4096)
def _names_a_secret(name: str) -> bool:
    said = f"{name}=x"
    return name.lower().endswith(_SECRET_ENDINGS) or redact(said) != said


def problem(error: BaseException) -> Problem:
    """Gives what is kept of an exception; one whose `str()` raises is told by its type, a group of one by its one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - whatever it raises, the failure itself must be told
        message = f"<{type(error).__name__}; its str() raised {type(broken).__name__}>"
    try:
        trace = "".join(_shortened(traceback.TracebackException.from_exception(error)).format())
    except Exception:  # noqa: BLE001 - formatting calls the same broken str()
        trace = "".join(traceback.format_tb(error.__traceback__))
    detail = getattr(error, "journal_detail", "")  # of our own errors, which leave out what is secret and long
    return Problem(type(error).__name__, _kept(message, _MOST), _kept(trace, _MOST_TRACE), detail)


def reason_text(text: str) -> str:
    """Return a reason that user code gave as it is kept: short, with secrets hidden."""
    return _kept(text, _MOST)


def traced(error: BaseException) -> str:
    """Gives the traceback of an exception as a log line may carry it, with secrets hidden; its end is the error."""
    return _kept(problem(error).traceback.rstrip(), _MOST_TRACE_OF_A_LINE)


def stack() -> str:
    """Gives where the code that asks stands, for people: without our own frames, with secrets hidden."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_OURS)]
    told = "".join(traceback.StackSummary.from_list(frames).format()).rstrip()
    return _kept(f"Stack (most recent call last):\n{told}", _MOST_TRACE_OF_A_LINE)


def _shortened(told: traceback.TracebackException) -> traceback.TracebackException:
    """Leaves our own frames out of a traceback, and of those it came from: people look for theirs."""
    for part in (told, told.__cause__, told.__context__):
        if part is not None:
            theirs = [frame for frame in part.stack if not frame.filename.startswith(_OURS)]
            part.stack = traceback.StackSummary.from_list(theirs or part.stack)
    return told


def _kept(text: str, most: int) -> str:
    """Hides secrets before it cuts: half of one would not look like one any more."""
    return _cut(redact(_cut(text, _MOST_LOOKED_AT)), most)


def _cut(text: str, most: int) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"
