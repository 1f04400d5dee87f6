"""The readers of what comes from outside, each as a function of bytes.

A target returns where its reader has read or refused what it was given. Anything else is a finding: an exception that
is no error of ours, a 500, a file outside of a folder.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import documents
from tests.fuzz.asking import ask
from tsuzuki.apps.commits.authors import shown_name
from tsuzuki.apps.notes import chunking, headings, markdown, names
from tsuzuki.apps.notes import extractive as noting
from tsuzuki.apps.notes.sources import conversations, recognized
from tsuzuki.apps.notes.sources.conversation import Conversation, Message
from tsuzuki.errors import TsuzukiError
from tsuzuki.gateway import cursors
from tsuzuki.llm import structured, text
from tsuzuki.redact import redact
from tsuzuki.wheels import naming, resolving, unpacking
from tsuzuki.yamlflow import parse

Target = Callable[[bytes], None]
NAME = "demo-1.0-py3-none-any.whl"
RUN = "6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e"


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Lets errors of ours pass: they have an id and a sentence."""
    found: TsuzukiError | None = None
    try:
        yield
    except TsuzukiError as error:
        found = error
    assert found is None or (found.error_id.startswith("ERR-TSUZUKI-") and str(found)), repr(found)


def said(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def workflow(data: bytes) -> None:
    with refused():
        parse(data)


def cursor(data: bytes) -> None:
    for read in (cursors.run_place, cursors.position):
        with refused():
            read(said(data)[:512])


def wheel_name(data: bytes) -> None:
    with refused():
        naming.parse_name(said(data))
    with refused():
        naming.parse_tags([said(data)])
    naming.accepts_python(said(data), "3.11.2")  # what a wheel says that it requires, as a worker reads it
    with refused():
        resolving.missing([said(data)], [])


def wheel(data: bytes) -> None:
    """A wheel that is taken in is unpacked, and nothing of it lies elsewhere."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        file = folder / "wheel"
        file.write_bytes(data)
        with refused():
            unpacking.unpack(file, NAME, folder / "inside" / "out")
        assert {path.name for path in folder.iterdir()} <= {"wheel", "inside"}
        assert not any(path.is_symlink() for path in folder.rglob("*"))


def export_of(suffix: str) -> Target:
    def export(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as made:
            file = Path(made) / f"conversations{suffix}"
            file.write_bytes(data)
            with refused():
                for each in conversations(file, recognized(file)):
                    if isinstance(each, Conversation):
                        noted(each)
            assert [path.name for path in Path(made).iterdir()] == [file.name]

    return export


def noted(conversation: Conversation) -> None:
    """What becomes of a conversation before a model is asked, and the name of its file."""
    list(chunking.chunks(conversation.messages))
    markdown.scalar(conversation.title)
    name = names.safe(conversation.title)
    assert name == Path(name).name
    assert "\0" not in name
    for message in conversation.messages[:3]:
        noting.note(conversation.title, message.text[:20_000])


def document(data: bytes) -> None:
    with refused():
        documents.document(said(data))


def document_name(data: bytes) -> None:
    with refused():
        documents.named(said(data))


def answer(data: bytes) -> None:
    """What a model has answered, which is no friend either."""
    content = said(data)
    list(structured.candidates(content))
    with refused():
        markdown.shifted(headings.read(content, "t").content)
    text.sentences(content)
    shown_name(content)
    redact(content)
    list(chunking.chunks([Message("user", content)]))


def http(data: bytes) -> None:
    """The first lines are method, path and headers; what follows an empty one is the body."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.partition(b" ")
    headers = [(name.lower(), value) for line in lines for name, _, value in [line.partition(b": ")] if name]
    status = ask(method.decode("latin-1").upper()[:10] or "GET", path, headers, body)
    assert status != 500, (method, path)


TARGETS: dict[str, Target] = {
    "workflow": workflow,
    "cursor": cursor,
    "wheel-name": wheel_name,
    "wheel": wheel,
    "export-zip": export_of(".zip"),
    "export-json": export_of(".json"),
    "export-jsonl": export_of(".jsonl"),
    "export-text": export_of(".md"),
    "document": document,
    "document-name": document_name,
    "answer": answer,
    "http": http,
}


def texts() -> dict[str, Callable[[str], Any]]:
    """The readers of long texts."""
    return {
        "document": documents.read,
        "answer": lambda content: answer(content.encode()),
        "author": shown_name,
        "note": lambda content: noting.note("t", content),
        "front": lambda content: export_of(".md")(f"---\ntitle: {content}".encode()),
        "heading": lambda content: headings.read(f"# Title{content}\x01", "t"),
        "value": lambda content: workflow(f"flow: {{graph: a}}\nx: 1{content}".encode()),
    }
