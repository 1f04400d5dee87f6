"""Keeps secrets out of everything that is written down or shown."""

import re
import traceback
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki.facts import Problem

_HIDDEN: Final = "***"
_OURS: Final = str(Path(__file__).parent)
# Every repetition is bounded or begins at a fixed word, so that no text takes more than linear time.
_SAYS: Final = r"\\{0,3}(?:['\"]\s{0,9},\s{0,9}b?['\"]|['\"]?\s{0,9}[:=]\s{0,9}(?:b(?=['\"]))?\\{0,3})"
"""Between a name and its value: in a header, a query, JSON (also inside of a text), a dict or a list of pairs."""
_NAMES: Final = (
    r"(?:(?:api|access|account|private|signing)[_-]?key|secret|passw(?:or)?d|passphrase|token|"
    r"(?:db|smtp|imap|mail|ftp|ssh|proxy|redis|mysql|pg|postgres|user|admin|root|login|auth)_pass|"
    r"pwd(?!['\"]?\s{0,9}[:=]\s{0,9}['\"]?/))"  # a folder is no password
)
_PATTERNS: Final = (
    (
        re.compile(
            rf"(?i)\b((?:proxy-)?authorization{_SAYS}['\"]?(?:(?:bearer|basic|token|digest)\s{{1,9}})?)[^\s'\",}}\\]+"
        ),
        r"\1" + _HIDDEN,
    ),
    (re.compile(r"(?i)\b(bearer\s{1,9})[A-Za-z0-9._~+/=-]{8,}"), r"\1" + _HIDDEN),
    (re.compile(rf"(?i)({_NAMES}{_SAYS}(['\"]))[^'\"\n\\]{{1,500}}(?=\\{{0,3}}\2)"), r"\1" + _HIDDEN),
    (re.compile(rf"(?i)({_NAMES}{_SAYS}['\"]?)[^\s'\"&,;)}}\\]+"), r"\1" + _HIDDEN),
    (re.compile(rf"(?i)(--[a-z-]{{0,40}}{_NAMES}\s{{1,9}}['\"]?)[^\s'\"-][^\s'\"]*"), r"\1" + _HIDDEN),
    (
        re.compile(rf"(?i)\b((?:set-)?cookie{_SAYS}['\"]?)[\w!#$%&*+.^`|~-]{{1,100}}=[^'\"\n\\}}]{{1,4000}}"),
        r"\1" + _HIDDEN,
    ),
    (  # a user of a command line, who is no pair of numbers
        re.compile(r"((?:\s|^)(?:-u|--user)[\s=]\s{0,9}['\"]?[^\s'\":]{1,200}:)(?!\d+(?:\s|$))[^\s'\"]{1,500}"),
        r"\1" + _HIDDEN,
    ),
    (re.compile(r"(?i)([?&](?:x-(?:amz|goog)-)?sig(?:nature)?=)[^\s'\"&]{1,2000}"), r"\1" + _HIDDEN),
    (re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}"), _HIDDEN),
    (re.compile(r"\b(?:glpat-|gh[oprsu]_|github_pat_|xox[abeprs]-|AIza|AKIA|tsz_)[A-Za-z0-9_-]{10,}"), _HIDDEN),
    (re.compile(r"\b(?:(?:[spr]k_(?:live|test)_|gsk_|hf_|npm_)[A-Za-z0-9]{16,}|pypi-AgE[A-Za-z0-9_-]{10,})"), _HIDDEN),
    (re.compile(r"\bASIA[A-Z0-9]{12,}|\bya29\.[A-Za-z0-9_-]{10,}"), _HIDDEN),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?"), _HIDDEN),
    (re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]{1,16384}"), r"\1" + _HIDDEN),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,200}:)[^\s/@]{1,500}(@)"), r"\1" + _HIDDEN + r"\2"),
    (re.compile(r"(\b(?:nats|tls)://)[^\s/:@]{1,500}(@)"), r"\1" + _HIDDEN + r"\2"),  # a token in a user's place
)
_DASHED: Final = re.compile(r"\b(?:(?:[spr]k|glpat|xox[abeprs])-[a-z0-9_-]{10}|pypi-age)")
_USER: Final = ("-u", "--user")
_NAMED_USER: Final = re.compile(r"(?:[\s\"]|^)(?:-u|--user)[\s=\"]")
_UNDERSCORED: Final = (
    *("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"),
    *("tsz_", "k_live_", "k_test_", "gsk_", "hf_", "npm_"),
)
_KEYED: Final = re.compile("(?:api|access|account|private|signing)[_-]?key")
_SECRET_ENDINGS: Final = (
    *("token", "credential", "credentials", "secret", "secrets", "passwords"),
    *("pwd", "cookie", "cookies"),
)
_LONGEST_NAME: Final = 64
_MOST: Final = 4096
_MOST_TRACE: Final = 16384
_MOST_TRACE_OF_A_LINE: Final = 6144


def redact(text: str) -> str:
    """Gives the text with everything that looks like a secret hidden."""
    if not suspicious(text):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def suspicious(text: str) -> bool:
    """Tells whether a text may have something to hide; that takes a hundredth of the time of hiding it.

    In lower case, one of these is in all that the patterns find, and in all names of secrets.
    """
    low = text.lower()
    return (
        "token" in low
        or "secret" in low
        or "passw" in low
        or "passphrase" in low
        or "authoriz" in low
        or "bearer" in low
        or "credential" in low
        or "aiza" in low
        or "akia" in low
        or "asia" in low
        or "ya29." in low
        or "eyj" in low
        or "pwd" in low
        or "cookie" in low
        or "private key" in low
        or "_pass" in low
        or "sig=" in low
        or "signature=" in low
        or ("key" in low and _KEYED.search(low) is not None)
        or ("-u" in low and _NAMED_USER.search(low) is not None)
        or ("-" in low and _DASHED.search(low) is not None)
        or ("_" in low and any(map(low.__contains__, _UNDERSCORED)))
        or ("@" in low and "://" in low)
    )


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
        name: _HIDDEN if part not in (None, "") and _names_a_secret(name) else without_secrets(part)
        for name, part in value.items()
    }


def _listed(parts: list[Any]) -> list[Any]:
    """Hides what follows a name in a command line (`--password`, `x`; `-u`, `me:x`) and in a list of two."""
    told = [without_secrets(part) for part in parts]
    for place, (name, part) in enumerate(pairwise(parts), 1):
        named = isinstance(name, str) and len(name) <= _LONGEST_NAME and (name.startswith("-") or len(parts) == 2)  # noqa: PLR2004 - a name and its value
        if named and isinstance(part, str) and part and _names_a_secret(name.lstrip("-")):
            told[place] = _HIDDEN
        elif name in _USER and isinstance(part, str):
            told[place] = redact(f"{name} {part}").removeprefix(f"{name} ")
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
    return Problem(type(error).__name__, redact(_cut(message, _MOST)), redact(_cut(trace, _MOST_TRACE)))


def traced(error: BaseException) -> str:
    """Gives the traceback of an exception as a log line may carry it, with secrets hidden; its end is the error."""
    return redact(_cut(problem(error).traceback.rstrip(), _MOST_TRACE_OF_A_LINE))


def stack() -> str:
    """Gives where the code that asks stands, for people: without our own frames, with secrets hidden."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(_OURS)]
    told = "".join(traceback.StackSummary.from_list(frames).format()).rstrip()
    return redact(_cut(f"Stack (most recent call last):\n{told}", _MOST_TRACE_OF_A_LINE))


def _shortened(told: traceback.TracebackException) -> traceback.TracebackException:
    """Leaves our own frames out of a traceback, and of those it came from: people look for theirs."""
    for part in (told, told.__cause__, told.__context__):
        if part is not None:
            theirs = [frame for frame in part.stack if not frame.filename.startswith(_OURS)]
            part.stack = traceback.StackSummary.from_list(theirs or part.stack)
    return told


def _cut(text: str, most: int) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"
