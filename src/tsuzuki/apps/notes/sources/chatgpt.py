"""ChatGPT's export: each conversation is a tree, and what people saw is the branch that ends at `current_node`."""

import json
from collections.abc import Hashable, Iterator
from typing import Any, Final

from tsuzuki.apps.notes.sources.citations import references, unmarked
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
from tsuzuki.apps.notes.times import day_of

SPEAKERS: Final = ("user", "assistant")
LEFT_OUT: Final = frozenset(
    {"user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "tether_browsing_display"}
)
"""Kinds of content that people never saw as a message."""
MEDIA: Final = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}

_CANVAS: Final = ("canmore.create_textdoc", "canmore.update_textdoc")
_EVERYTHING: Final = (".*", "(?s).*", "^.*$", "[\\s\\S]*")


def fits(value: Any) -> bool:
    """Tells whether something looks like a conversation of ChatGPT."""
    return isinstance(value, dict) and "mapping" in value


def conversation(value: dict[str, Any], filename: str) -> Conversation:
    """Reads a conversation; raises where its tree makes no sense."""
    mapping = value.get("mapping")
    if not isinstance(mapping, dict):
        raise TypeError(
            "会話の形式が正しくありません（mapping がオブジェクトではありません） / its mapping is no object"
        )
    messages = tuple(_messages(mapping, value.get("current_node")))
    given = value.get("conversation_id") or value.get("id")
    return Conversation(
        id=identified(given, lambda: f"{value.get('title')}{value.get('create_time')}{transcript(messages)}"),
        title=titled(value.get("title"), messages),
        created=day_of(value.get("create_time")) or day_of(value.get("update_time")),
        messages=messages,
        filename=filename,
    )


def _messages(mapping: dict[str, Any], current: Any) -> Iterator[Message]:
    nodes = (node.get("message") for node in _branch(mapping, current))
    shown = [message for message in nodes if isinstance(message, dict) and _shown(message)]
    canvases = _canvases(shown)
    for number, message in enumerate(shown):
        text = canvases.get(number) or (_text(message) if message.get("recipient") in (None, "", "all") else "")
        if text:
            yield Message(message["author"]["role"], text)


def _canvases(shown: list[dict[str, Any]]) -> dict[Hashable, str]:
    """Gives the documents of canvases by the message that has the last version of each.

    An update says what it replaces as a pattern: one of everything is a new version, and others are left alone, since
    a pattern out of a file may take for ever.
    """
    told = [number for number, message in enumerate(shown) if message.get("recipient") in _CANVAS]
    if not told:  # as nearly always
        return {}
    found = Documents()
    for number in told:
        message = shown[number]
        if message["author"]["role"] != "assistant":
            continue
        about = _told(message)
        if message["recipient"] == _CANVAS[0]:
            found.create(about.get("name") or number, {**about, "title": about.get("name")}, number)
        else:
            updates = about.get("updates")
            for update in updates if isinstance(updates, list) else ():
                if isinstance(update, dict) and update.get("pattern") in _EVERYTHING:
                    found.rewrite_last(update.get("replacement"), number)
    return found.placed()


def _told(message: dict[str, Any]) -> dict[str, Any]:
    """Reads what was said to a tool."""
    content = message.get("content")
    content = content if isinstance(content, dict) else {}
    parts = content.get("parts")
    text = content.get("text") or (parts[0] if isinstance(parts, list) and parts else None)
    try:
        found = json.loads(text, strict=False) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _branch(mapping: dict[str, Any], current: Any) -> list[dict[str, Any]]:
    """Follows the parents from the current node to the root; gives them from the root on."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    at = current if isinstance(current, str) and current in mapping else _last_leaf(mapping)
    while isinstance(at, str) and at in mapping and at not in seen:
        seen.add(at)
        node = mapping[at]
        if not isinstance(node, dict):
            raise TypeError(
                f"会話の形式が正しくありません（mapping の {at!r} がオブジェクトではありません） / "
                f"the node {at!r} of its mapping is no object"
            )
        found.append(node)
        at = node.get("parent")
    return found[::-1]


def _last_leaf(mapping: dict[str, Any]) -> str | None:
    """Gives the leaf that was written last, where no current node is told."""
    leaves = [name for name, node in mapping.items() if isinstance(node, dict) and not node.get("children")]
    return max(leaves, key=lambda name: _written(mapping[name]), default=None)


def _written(node: dict[str, Any]) -> float:
    message = node.get("message")
    at = message.get("create_time") if isinstance(message, dict) else None
    return float(at) if isinstance(at, int | float) else 0.0


def _shown(message: dict[str, Any]) -> bool:
    """Tells whether people saw a message: no system, no tool, nothing hidden."""
    author = message.get("author")
    if not isinstance(author, dict) or author.get("role") not in SPEAKERS:
        return False
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))
    return not hidden and message.get("weight") != 0 and message.get("channel") != "analysis"


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if not isinstance(content, dict) or content.get("content_type") in LEFT_OUT:
        return ""
    parts = content.get("parts")
    pieces = [_part(part) for part in parts] if isinstance(parts, list) else [_whole(content)]
    text = "\n".join(piece for piece in [*pieces, *_attached(message)] if piece)
    return (_cited(message, text) if message["author"]["role"] == "assistant" else text).strip()


def _cited(message: dict[str, Any], text: str) -> str:
    """Gives what the assistant said without the marks of its page, and with the links that they stood for."""
    plain = unmarked(text)
    listed = references(message.get("metadata"), plain)
    return f"{plain.rstrip()}\n\n{listed}" if plain and listed else plain


def _whole(content: dict[str, Any]) -> str:
    """Reads content that has no parts: code, quotes."""
    text = clean(content.get("text"))
    if content.get("content_type") == "code" and text:
        return f"```{one_line(content.get('language')).replace('unknown', '')}\n{text}\n```"
    return text


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return clean(part)
    kind = part.get("content_type")
    if isinstance(kind, str) and kind in MEDIA:
        return MEDIA[kind]
    return clean(part.get("text")) or ("[media]" if isinstance(kind, str) and kind.endswith("pointer") else "")


def _attached(message: dict[str, Any]) -> list[str]:
    """Names the files that came with a message; pictures stand in its parts already."""
    metadata = message.get("metadata")
    files = metadata.get("attachments") if isinstance(metadata, dict) else None
    if not isinstance(files, list):
        return []
    other = [file for file in files if isinstance(file, dict) and not _is_picture(file)]
    return [f"[attachment: {name}]" for file in other if (name := one_line(file.get("name")))]


def _is_picture(file: dict[str, Any]) -> bool:
    return str(file.get("mime_type") or file.get("mimeType") or "").startswith("image/")
