"""Exports as ChatGPT and Claude write them, small ones and nasty ones, made for tests."""

import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ANSWER = "Otters swim in rivers and in the sea. They eat fish, crabs and mussels. See https://example.org/otters."
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd \u202eolleh\u202c"


def said(role: str, text: Any, **more: Any) -> dict[str, Any]:
    """A message of ChatGPT."""
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    return {"author": {"role": role}, "content": content, "recipient": "all", "metadata": {}, "weight": 1.0, **more}


def chatgpt(number: int = 1, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT: its messages in a line below the root."""
    spoken = messages or (said("user", f"What do otters eat? ({number})"), said("assistant", f"{number}: {ANSWER}"))
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["m0"]}}
    for at, message in enumerate(spoken):
        parent = "root" if at == 0 else f"m{at - 1}"
        children = [f"m{at + 1}"] if at + 1 < len(spoken) else []
        mapping[f"m{at}"] = {"id": f"m{at}", "message": message, "parent": parent, "children": children}
    return {
        "conversation_id": f"gpt-{number:04d}",
        "title": f"Otters {number}",
        "create_time": 1767323045.5 + number,
        "mapping": mapping,
        "current_node": f"m{len(spoken) - 1}",
        **more,
    }


def claude(number: int = 1, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation of Claude."""
    spoken = messages or (
        {"sender": "human", "text": f"What do otters eat? ({number})"},
        {"sender": "assistant", "text": f"{number}: {ANSWER}"},
    )
    return {
        "uuid": f"claude-{number:04d}",
        "name": f"Otters {number}",
        "created_at": "2026-01-02T03:04:05.678Z",
        "chat_messages": list(spoken),
        **more,
    }


def written(path: Path, conversations: Iterable[Any]) -> Path:
    """Writes an export as the file that it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(conversations)), encoding="utf-8")
    return path


def zipped(path: Path, files: dict[str, bytes | str]) -> Path:
    """Writes a ZIP with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def zip_bytes(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def nasty_chatgpt() -> list[dict[str, Any]]:
    """Everything that exports of years have in them."""
    branching = chatgpt(1, said("user", "first"), said("assistant", "left out"))
    branching["mapping"]["m9"] = {
        "id": "m9", "message": said("assistant", "the answer that was kept, and it is this one."), "parent": "m0",
        "children": [],
    }  # fmt: skip
    branching["mapping"]["m0"]["children"] = ["m1", "m9"]
    branching["current_node"] = "m9"
    picture = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "What is it?"]}
    spoken = {"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "I spoke."}]}
    tools = chatgpt(
        3,
        said("system", "You are secret."),
        said("user", "Compute it, and tell me the number."),
        said("assistant", {"content_type": "code", "text": "print(6*7)"}, recipient="python"),
        said("tool", "42"),
        said("user", "hidden words", metadata={"is_visually_hidden_from_conversation": True}),
        said("assistant", {"content_type": "thoughts", "thoughts": [{"content": "inner words"}]}),
        said("assistant", "The number is 42, as everybody knows."),
    )
    return [
        branching,
        chatgpt(2, said("user", picture), said("user", spoken), said("assistant", "It is an otter in a river.")),
        tools,
        chatgpt(4, title="🦦🌊 emoji / and \\ slashes: <why>? *"),
        chatgpt(5, title=RIGHT_TO_LEFT),
        chatgpt(6, said("user", "x" * 5_000_000), title="five megabytes"),
        chatgpt(7, title=None),
        {"conversation_id": "empty", "title": "nothing said", "mapping": {}, "current_node": None},
        chatgpt(8, said("user", "half of a pair \ud83d and a bell \x07"), title="con"),
        chatgpt(9, title="日本語のタイトル: 川獺について"),
        {"conversation_id": "broken", "title": "broken", "mapping": ["no", "tree"]},
        chatgpt(10, said("user", "see"), said("assistant", "---\ntitle: not front matter\n---\n# One\n```\n# code")),
        *[chatgpt(100 + number, title="the same title") for number in range(300)],
    ]


def nasty_claude() -> list[Any]:
    """The same for Claude."""
    blocks = [
        {"type": "thinking", "thinking": "inner words"},
        {"type": "text", "text": "The blocks say it, and they say it well."},
        {"type": "tool_use", "name": "search", "input": {"q": "secret"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "tool words"}]},
        {"type": "image"},
    ]
    attached = {"file_name": "notes.txt", "extracted_content": "what the attachment says, in full"}
    return [
        claude(1, {"sender": "human", "text": "ask"}, {"sender": "assistant", "text": "other", "content": blocks}),
        claude(2, {"sender": "human", "text": "", "attachments": [attached], "files": [{"file_name": "cat.png"}]}),
        claude(3, name="", created_at=None),
        claude(4, name="🦦 " * 100),
        claude(5, name="../../etc/passwd"),
        claude(6, name="a\nb: [c]\t#d"),
        {"uuid": "empty", "name": "", "chat_messages": []},
        {"uuid": "broken", "name": "x", "chat_messages": "no list"},
        "no conversation at all",
        claude(7, {"sender": "human", "text": "مرحبا بالعالم. هذا نص طويل بما يكفي."}, name=RIGHT_TO_LEFT),
        *[claude(100 + number, name="the same title") for number in range(50)],
    ]
