"""Which format an export has, and its conversations one after the other."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tsuzuki.apps.notes.refusals import BadExport, NoInput, UnknownFormat, both
from tsuzuki.apps.notes.sources import chatgpt, claude, plain
from tsuzuki.apps.notes.sources.archive import SHARD, Files, Readable, opened
from tsuzuki.apps.notes.sources.conversation import Conversation, Unreadable, one_line
from tsuzuki.apps.notes.sources.jsonstream import PassedOver, elements
from tsuzuki.apps.notes.sources.spelling import spelled
from tsuzuki.errors import BadUsage

PROVIDERS: Final = ("chatgpt", "claude", "jsonl", "markdown")
ALIASES: Final = {"openai": "chatgpt", "anthropic": "claude", "text": "markdown", "md": "markdown", "auto": ""}
_DEEPEST: Final = 2
"""An export may lie in one folder of its own inside a ZIP."""

Read = Callable[[dict[str, Any], str], Conversation]
_READERS: Final[dict[str, tuple[Callable[[Any], bool], Read]]] = {
    "chatgpt": (chatgpt.fits, chatgpt.conversation),
    "claude": (claude.fits, claude.conversation),
}


def provider_named(name: str) -> str:
    """Gives the name of a format; "" where it is to be found out."""
    known = ALIASES.get(name.lower(), name.lower())
    if known and known not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise BadUsage(
            both(
                f"{name!r} という形式はありません。{known} か auto を指定してください",
                f"there is no provider {name!r}: exports come from {known}, or auto",
            )
        )
    return known


def recognized(path: Path, provider: str = "") -> str:
    """Finds out which format an export has, or checks that it has this one."""
    with opened(path) as files:
        return _recognized(files, spelled(path.name), provider_named(provider))


def _recognized(files: Files, label: str, wanted: str) -> str:
    names = files.names()
    first: Any = None
    found = [name for name in PROVIDERS if (not wanted or name == wanted) and chosen(names, name)]
    if wanted and not found:
        raise _none_for(label, wanted)
    for provider in found:
        if provider not in _READERS:
            return provider
        first = _first(files, chosen(names, provider))
        if first is None or _READERS[provider][0](first):  # an empty export is of whatever kind it is said to be
            return provider
    if found:
        raise _unknown(label, first, wanted)
    if not names:
        raise NoInput.because(
            f"{label} は空です（隠しファイルと、外へのリンクは読みません）",
            f"{label} is empty (hidden files, and links that lead out of it, are not read)",
        )
    zips = [name for name in names if name.lower().endswith(".zip")]
    advice, hint = (
        (f"。中の ZIP を指定してください：{zips[0]}", f"; name the ZIP file in it: {zips[0]}") if zips else ("", "")
    )
    raise UnknownFormat(
        both(
            f"{label} の形式がわかりません。conversations.json も .jsonl も Markdown・テキスト"
            f"ファイルもありません{advice}",
            f"the format of {label} is not known: it has no conversations.json, no .jsonl and no Markdown or text "
            f"files{hint}",
        )
    )


def _none_for(label: str, provider: str) -> NoInput:
    return NoInput.because(f"{label} に {provider} のファイルがありません", f"{label} has none for {provider}")


def _unknown(label: str, first: Any, wanted: str) -> UnknownFormat:
    other = next((name for name, (fits, _) in _READERS.items() if name != wanted and fits(first)), "")
    if other:
        return UnknownFormat(
            both(
                f"{label} は {wanted} ではなく {other} のエクスポートです。形式に {other} を指定するか、"
                "指定しないでください",
                f"{label} is no export of {wanted}, but of {other}: say --provider {other}, or leave it out",
            )
        )
    keys = ", ".join(sorted(map(one_line, first))[:8]) if isinstance(first, dict) else type(first).__name__
    return UnknownFormat(
        both(
            f"{label} の形式がわかりません。会話に `mapping`（ChatGPT）も `chat_messages`（Claude）もありません。"
            f"あるもの：{keys}",
            f"the format of {label} is not known: its conversations have neither `mapping` (ChatGPT) nor "
            f"`chat_messages` (Claude), but: {keys}",
        )
    )


def chosen(names: list[str], provider: str) -> list[str]:
    """Gives the files that a format is read from."""
    if provider in _READERS:
        near = [name for name in names if len(PurePosixPath(name).parts) <= _DEEPEST]
        shards = [name for name in near if SHARD.fullmatch(PurePosixPath(name).name)]
        return shards or [name for name in names if len(names) == 1 and name.endswith(".json")]
    endings = (".jsonl",) if provider == "jsonl" else plain.TEXTS
    return [name for name in names if name.lower().endswith(endings)]


def _first(files: Files, names: list[str]) -> Any:
    for name in names:
        with closing(files.open(name)) as file:
            for value in elements(file, name):
                return value.beginning if isinstance(value, PassedOver) else value
    return None


def conversations(path: Path, provider: str) -> Iterator[Conversation | Unreadable]:
    """Gives the conversations of an export, one at a time."""
    with opened(path) as files:
        names = chosen(files.names(), provider)
        if not names:
            raise _none_for(spelled(path.name), provider)
        for name in names:
            with closing(files.open(name)) as file:
                yield from _of(file, name, provider)


def _of(file: Readable, name: str, provider: str) -> Iterator[Conversation | Unreadable]:
    if provider == "markdown":
        yield plain.text_file(file, name)
    elif provider == "jsonl":
        yield from plain.lines(file, name)
    else:
        fits, read = _READERS[provider]

        def told(number: int, value: Any) -> Conversation | Unreadable:
            return _read(value, name, number, fits, read)

        yield from map(told, count(1), elements(file, name))  # nobody holds one while the next is read


def _read(value: Any, name: str, number: int, fits: Callable[[Any], bool], read: Read) -> Conversation | Unreadable:
    """Reads one conversation; whatever is wrong with it, the others are read."""
    label = f"{name}:{number}"
    try:
        if isinstance(value, PassedOver):
            value, why = value.beginning, value.why
            raise BadExport(why)  # noqa: TRY301 - see above
        if not fits(value):
            has = one_line(str(value))[:60]
            raise BadExport(both(f"会話ではありません（{has}）", f"it is no conversation, but has {has}"))  # noqa: TRY301 - see above
        return read(value, name)
    except Exception as error:  # noqa: BLE001 - for that reason
        given = value.get("title") or value.get("name") if isinstance(value, dict) else None
        return Unreadable(label, one_line(given) or label, name, error)
