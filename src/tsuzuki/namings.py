"""Finds secrets by the name before them: `password=…`, `"api_key": "…"`, `--token …`, `<secret>…`.

One pass over a text finds the names, and from the end of each it is looked at what follows: so a text takes no longer
than it is long.
"""

import re
from collections.abc import Iterator
from typing import Final

# Every alternative begins with a letter, and none ignores case: then a search looks at few places of a text.
_KEYS: Final = (
    *("api", "access", "account", "private", "signing", "secret", "encryption", "decryption", "master", "shared"),
    *("subscription", "license", "licence", "service_role", "deploy", "hmac", "jwt", "auth", "app", "webhook", "admin"),
    *("functions", "application"),
)
_SPOKEN: Final = ("api key", "access key", "secret key")
_PASSES: Final = (
    *("db", "smtp", "imap", "mail", "ftp", "ssh", "proxy", "redis", "mysql", "pg", "postgres", "user", "admin"),
    *("root", "login", "auth"),
)
_NAME: Final = re.compile(
    "|".join(
        (
            *(f"{key}[_-]?key" for key in _KEYS),
            *_SPOKEN,
            *(f"{whose}_pass(?!w)" for whose in _PASSES),
            r"secret(?![_ -]?key)",
            r"passw(?:or)?d\d?",
            "passphrase",
            "passcode",
            "token",
            r"pwd(?!['\"]?\s{0,9}[:=]\s{0,9}['\"]?/)",  # a folder is no password
            # one that is a word of many kinds: only as a text of JSON, and as a field that is neither count nor yes
            r"p(?<=['\"]p)ass(?=\\{0,7}['\"]\s{0,9}(?::|=>)\s{0,9}\\{0,7}['\"])",
            r"p(?<![\w-]p)ass(?==(?!(?:\d+|true|false|yes|no|none)(?:[\s,;)}]|$))\S)",
            r"p(?<=[\s'\"]--p)ass(?=[\s=])",
            *("パスワード", "暗証番号", "秘密鍵", "apiキー", "アクセストークン", "シークレット"),
        )
    )
)
_NEXT: Final = frozenset("\\'\" \t\r\n:=：＝>%")
"""What may follow a name before its value; after anything else nothing is looked at."""
_QUOTE: Final = r"(?P<quote>\\{0,7}['\"])"
_INSIDE: Final = r"(?P<value>(?:[^\\'\"\n]|(?!(?<!\\)(?P=quote))[\\'\"]){1,4000}+)"
"""What is in quotes, up to the same quote without another backslash before it, or to the end of the line."""
_SAYS: Final = (
    r"\\{0,7}['\"]?\s{0,9}(?::\s{0,9}(?:str|bytes|string|String|Any)\b[^=\n]{0,20}(?==))?(?:[:=：＝]{1,2}>?)\s{0,9}"
)
_BARE: Final = r"(?P<value>[^\s'\"&,;)}\\]+)"
_BLOCK: Final = re.compile(
    r":[ \t]{0,9}[|>][+-]?\d?[ \t]{0,9}\r?\n(?P<value>([ \t]{1,100})[^\n]+(?:\n\2[^\n]*){0,200})"
)
_ENCODED: Final = re.compile(
    r"(?:%22|%27)?(?:%20|\+)?%3[aAdD](?:%20|\+)?(?:%22|%27)?(?P<value>(?:(?!%2[267])[^\s&'\"]){1,4000}+)"
)
_VALUES: Final = (
    re.compile(rf"{_SAYS}[bBrRuUfF]{{0,2}}{_QUOTE}{_INSIDE}"),
    re.compile(rf"\\{{0,7}}['\"]\s{{0,9}},\s{{0,9}}[bBuU]?{_QUOTE}{_INSIDE}"),  # a name and its value in a list
    _BLOCK,
    re.compile(r"=\{(?P<value>[^}\n]{1,500})\}"),  # ODBC
    re.compile(rf"{_SAYS}\\{{0,7}}['\"]?{_BARE}"),
    _ENCODED,
    re.compile(r"['\"]\r?\n(?:[^\r\n]{1,200}\r?\n)?\r?\n(?P<value>[^\r\n]{1,4000})"),  # a part of a form
)
_SAID: Final = re.compile(r"\s{1,9}[:=：＝]")
_TAGGED: Final = re.compile(r">(?P<value>[^<]{1,4000})<")
_TAG: Final = re.compile(r"<[\w:.-]{0,40}\Z")
_GIVEN: Final = re.compile(rf"\s{{1,9}}(?:{_QUOTE}{_INSIDE}|(?P<bare>[^\s'\"-][^\s'\"]*))")
_OPTION: Final = re.compile(r"(?:^|[\s'\"\[(,=])-{1,2}[a-z-]{0,40}\Z")
_LINE: Final = re.compile(r":[ \t]{1,9}(?P<value>[^\s'\"{\[|>&*!#][^\n]{0,500})")
_BEGUN: Final = re.compile(r"(?:^|\n)[ \t]{0,40}(?:- )?[\w.-]{0,40}\Z")
_WORDS: Final = ("passw", "passp")
_BEFORE: Final = 100
"""How far it is looked back from a name to the beginning of its line, its option or its tag."""


def named(text: str, low: str) -> Iterator[tuple[int, int]]:
    """Gives where secrets are that have a name before them, from left to right; `low` is the text in lower case."""
    if len(low) != len(text):  # few letters have a lower case of two signs; of these texts only ASCII is made lower
        low = text.translate(_LOWER)
    past = 0
    for found in _NAME.finditer(low):
        begin, end = found.span()
        if begin < past or low[end : end + 1] not in _NEXT:
            continue
        place = _value(text, low, begin, end)
        if place is not None:
            yield place
            past = place[1]


_LOWER: Final = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _value(text: str, low: str, begin: int, end: int) -> tuple[int, int] | None:
    line = low.startswith(_WORDS, begin) and _LINE.match(text, end)
    if line and _BEGUN.search(low[max(0, begin - _BEFORE) : begin]):
        return line.span("value")  # a whole line of YAML: a password may have words
    if text[end].isspace() and not _SAID.match(text, end):
        return _given(text, low, begin, end)
    for shape in _VALUES:
        if found := shape.match(text, end):
            return found.span("value")
    if text[end] == ">" and (found := _TAGGED.match(text, end)) and _TAG.search(low[max(0, begin - _BEFORE) : begin]):
        return found.span("value")
    return None


def _given(text: str, low: str, begin: int, end: int) -> tuple[int, int] | None:
    """Gives where the value of an option is."""
    if low.rfind("-", max(0, begin - _BEFORE), begin) < 0 or not _OPTION.search(low[max(0, begin - _BEFORE) : begin]):
        return None
    found = _GIVEN.match(text, end)
    return found and found.span("bare" if found["bare"] else "value")
