"""Claude's export: each conversation is a list of messages, with text or with blocks of content.

Newer ones name the parent of each message: edits and retries lie beside what took their place, and what people saw is
one branch.
"""

from collections.abc import Callable, Hashable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from tsuzuki.apps.notes.sources.conversation import (
    Conversation,
    Message,
    clean,
    identified,
    one_line,
    titled,
    transcript,
)
from tsuzuki.apps.notes.sources.documents import Documents
from tsuzuki.apps.notes.times import day_of, seconds_of

SPEAKERS: Final = {"human": "user", "user": "user", "assistant": "assistant"}
MEDIA: Final = {"image": "[image]", "audio": "[audio]", "video": "[video]", "document": "[document]"}

_NOT_SHOWN: Final = "```\nThis block is not supported on your current device yet.\n```"
"""What stands in the plain text of a message for a block that is no text."""
_PARENT: Final = "parent_message_uuid"
_ROOTS: Final = (None, "", "00000000-0000-4000-8000-000000000000")
"""What the first message has for its parent."""


def fits(value: Any) -> bool:
    """Tells whether something looks like a conversation of Claude."""
    return isinstance(value, dict) and "chat_messages" in value


def conversation(value: dict[str, Any], filename: str) -> Conversation:
    """Reads a conversation; raises where its messages make no sense."""
    listed = value.get("chat_messages")
    if not isinstance(listed, list):
        raise TypeError(
            "会話の形式が正しくありません（chat_messages がリストではありません） / its chat_messages are no list"
        )
    messages = tuple(_messages(_branch(listed, value.get("current_leaf_message_uuid"))))

    def made_of() -> str:
        return f"{value.get('name')}{value.get('created_at')}{transcript(messages)}"

    return Conversation(
        id=identified(value.get("uuid"), made_of),
        title=titled(value.get("name"), messages),
        created=day_of(value.get("created_at")) or day_of(value.get("updated_at")),
        messages=messages,
        filename=filename,
    )


def _branch(listed: list[Any], current: Any) -> list[Any]:
    """Gives the branch that was last seen; all messages where they make no tree, so that none is lost."""
    if not any(isinstance(node, dict) and _PARENT in node for node in listed):
        return listed
    nodes = {node["uuid"]: node for node in listed if isinstance(node, dict) and isinstance(node.get("uuid"), str)}
    if len(nodes) < len(listed):
        return listed
    found: dict[str, dict[str, Any]] = {}
    at = current if isinstance(current, str) and current in nodes else _last_leaf(nodes)
    while isinstance(at, str) and at in nodes and at not in found:
        found[at] = nodes[at]
        at = nodes[at].get(_PARENT)
    branch = list(found.values())[::-1]
    return branch if branch and at in _ROOTS and not any(map(_astray, listed[1:])) else listed


def _astray(node: dict[str, Any]) -> bool:
    """Tells whether a later message may follow the one before although it does not say so: then no branch is sure.

    One without a parent may; and an answer that begins a conversation is none: only a question is asked otherwise.
    """
    return not node.get(_PARENT) or (node[_PARENT] in _ROOTS and SPEAKERS.get(str(node.get("sender"))) != "user")


def _last_leaf(nodes: dict[str, Any]) -> str | None:
    """Gives the leaf that was written last, or that stands last, where none is told."""
    inner = {parent for node in nodes.values() if isinstance(parent := node.get(_PARENT), str)}
    leaves = [name for name in reversed(nodes) if name not in inner]
    return max(leaves, key=lambda name: seconds_of(nodes[name].get("created_at")) or 0.0, default=None)


def _messages(listed: list[Any]) -> Iterator[Message]:
    for message in listed:
        if not isinstance(message, dict):
            raise TypeError(
                "会話の形式が正しくありません（オブジェクトではないメッセージがあります） / "
                "one of its messages is no object"
            )
    artifacts = _artifacts(listed)
    for number, message in enumerate(listed):
        role = SPEAKERS.get(str(message.get("sender")))
        if role and (text := _text(message, number, artifacts)):
            yield Message(role, text)


def _text(message: dict[str, Any], number: int, artifacts: dict[Hashable, str]) -> str:
    said: list[str] = []
    spoken = False
    for at, block in enumerate(_blocks(message)):
        words = _block(block)
        spoken = spoken or bool(words)
        piece = words or artifacts.get((number, at)) or MEDIA.get(str(block.get("type")), "")
        said += [piece] if piece else []
    plain = clean(message.get("text")).replace(_NOT_SHOWN, "").strip()
    if plain and not spoken:
        said = [plain, *said]
    return "\n\n".join([*said, *_attached(message)]).strip()


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = message.get("content")
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _block(block: dict[str, Any]) -> str:
    """Reads a block; thinking and the use of tools are left out, as people do not see them as text."""
    kind, text = block.get("type"), block.get("text")
    if kind == "voice_note":
        title = one_line(block.get("title"))
        return "\n".join([*([f"[voice note: {title}]"] if title else []), clean(text).strip()]).strip()
    return clean(text).strip() if kind == "text" else ""


def _artifacts(listed: list[dict[str, Any]]) -> dict[Hashable, str]:
    """Gives artifacts, and files that were made, by the message and the block that has the last version of each."""
    found = Documents()
    for number, message in enumerate(listed):
        for at, block in enumerate(_blocks(message)):
            about, write = block.get("input"), _WRITING.get(str(block.get("name")))
            if block.get("type") == "tool_use" and isinstance(about, dict) and write is not None:
                write(found, about, (number, at))
    return found.placed()


def _artifact(found: Documents, about: dict[str, Any], place: Hashable) -> None:
    own = about.get("id") or about.get("title") or place
    if about.get("command") == "update":
        found.edit(own, about.get("old_str"), about.get("new_str"), place)
    else:
        found.create(own, about, place)


def _created(found: Documents, about: dict[str, Any], place: Hashable) -> None:
    path = PurePosixPath(one_line(about.get("path")))
    suffix = path.suffix.removeprefix(".").lower()
    prose = suffix in _PROSE
    told = {"title": path.name, "content": about.get("file_text"), "type": "" if prose else "code", "language": suffix}
    found.create(str(path) if path.name else place, told, place)


def _replaced(found: Documents, about: dict[str, Any], place: Hashable) -> None:
    path = PurePosixPath(one_line(about.get("path")))
    found.edit(str(path), about.get("old_str"), about.get("new_str"), place)


_PROSE: Final = frozenset({"", "md", "markdown", "txt"})
_WRITING: Final[dict[str, Callable[[Documents, dict[str, Any], Hashable], None]]] = {
    "artifacts": _artifact, "create_file": _created, "str_replace": _replaced,
}  # fmt: skip
"""The tools by which something is written that people keep."""


def _attached(message: dict[str, Any]) -> Iterator[str]:
    for name in ("attachments", "files"):
        listed = message.get(name)
        for file in listed if isinstance(listed, list) else ():
            if isinstance(file, dict):
                label = f"[attachment: {one_line(file.get('file_name')) or 'unnamed'}]"
                inside = clean(file.get("extracted_content")).strip()
                yield f"{label}\n{inside}" if inside else label
