"""Claude's export: each conversation is a list of messages, with text or with blocks of content."""

from collections.abc import Iterator
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
from tsuzuki.apps.notes.times import day_of

SPEAKERS: Final = {"human": "user", "user": "user", "assistant": "assistant"}
MEDIA: Final = {"image": "[image]", "audio": "[audio]", "video": "[video]", "document": "[document]"}


def fits(value: Any) -> bool:
    """Tells whether something looks like a conversation of Claude."""
    return isinstance(value, dict) and "chat_messages" in value


def conversation(value: dict[str, Any], filename: str) -> Conversation:
    """Reads a conversation; raises where its messages make no sense."""
    listed = value.get("chat_messages")
    if not isinstance(listed, list):
        raise TypeError("会話の形式が正しくありません / its chat_messages are no list")
    messages = tuple(_messages(listed))

    def made_of() -> str:
        return f"{value.get('name')}{value.get('created_at')}{transcript(messages)}"

    return Conversation(
        id=identified(value.get("uuid"), made_of),
        title=titled(value.get("name"), messages),
        created=day_of(value.get("created_at")),
        messages=messages,
        filename=filename,
    )


def _messages(listed: list[Any]) -> Iterator[Message]:
    for message in listed:
        if not isinstance(message, dict):
            raise TypeError("会話の形式が正しくありません / one of its messages is no object")
        role = SPEAKERS.get(str(message.get("sender")))
        if role and (text := _text(message)):
            yield Message(role, text)


def _text(message: dict[str, Any]) -> str:
    blocks = message.get("content")
    said = [piece for block in blocks if (piece := _block(block))] if isinstance(blocks, list) else []
    plain = clean(message.get("text")).strip()
    if plain and not any(piece not in MEDIA.values() for piece in said):
        said = [plain, *said]
    return "\n\n".join([*said, *_attached(message)]).strip()


def _block(block: Any) -> str:
    """Reads a block; thinking and the use of tools are left out, as people do not see them as text."""
    if not isinstance(block, dict):
        return ""
    kind = str(block.get("type"))
    return clean(block.get("text")).strip() if kind == "text" else MEDIA.get(kind, "")


def _attached(message: dict[str, Any]) -> Iterator[str]:
    for name in ("attachments", "files"):
        listed = message.get(name)
        for file in listed if isinstance(listed, list) else ():
            if isinstance(file, dict):
                label = f"[attachment: {one_line(file.get('file_name')) or 'unnamed'}]"
                inside = clean(file.get("extracted_content")).strip()
                yield f"{label}\n{inside}" if inside else label
