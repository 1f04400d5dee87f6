"""The documents of a project: added one by one or many at once, read from a folder, given to the pipeline."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tsuzuki.apps.glossary.filenames import ENDINGS, LARGEST, check_content, checked_name
from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import Document, StoredDocument
from tsuzuki.apps.glossary.refusals import NotThere, Refused, Taken
from tsuzuki.apps.glossary.times import current_utc_iso
from tsuzuki.apps.ledger import Ledger, records

UNREADABLE: Final = "neither UTF-8 nor Shift_JIS. Save it as UTF-8"
_KANA: Final = re.compile("[ぁ-んァ-ヶ]")


class Documents:
    """The documents of one project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def list(self) -> list[StoredDocument]:
        """Lists documents by name, without their text."""
        return records(StoredDocument, self._ledger.all("documents"))

    def get(self, number: int) -> tuple[StoredDocument, str]:
        """Gives a document with its text."""
        row = self._ledger.one("document", (number,))
        if row is None:
            raise NotThere(f"ファイルが見つかりません / there is no document {number}")
        return StoredDocument(*row[:5]), row[5]

    def each(self) -> Iterator[Document]:
        """Gives one document after the other."""
        with self._ledger.reading() as connection:
            for row in connection.execute(SQL["document_texts"]):
                yield Document(*row)

    def digest(self) -> str:
        """Gives what the documents say, in a few letters."""
        told = "\n".join(f"{each.file_name}\0{each.content_hash}" for each in self.list())
        return hashlib.sha256(told.encode()).hexdigest()[:24]

    def add(self, documents: Sequence[Document], *, from_folder: bool = False) -> Sequence[StoredDocument]:
        """Adds documents: all of them, or none."""
        named = _checked(documents)
        with self._ledger.writing() as connection:
            for name in named:
                if connection.execute(SQL["document_named"], (name,)).fetchone() is not None:
                    raise Taken(f"同じ名前のファイルがあります / there is a document of that name already: {name!r}")
            now, own = current_utc_iso(), int(from_folder)
            rows = [(name, content, hashed(content), now, own) for name, content in named.items()]
            connection.executemany(SQL["document_add"], rows)
        return [each for each in self.list() if each.file_name in named]

    def remove(self, number: int) -> None:
        """Removes a document."""
        self.get(number)
        with self._ledger.writing() as connection:
            connection.execute(SQL["document_remove"], (number,))

    def sync_folder(self, documents: Iterable[Document]) -> Sequence[str]:
        """Make the documents of the folder those given; return the names that were added elsewhere with another text.

        Documents that were added elsewhere, such as in the browser, are never changed or removed.
        """
        named = _checked(list(documents))
        known = {each.file_name: each for each in self.list()}
        with self._ledger.writing() as connection:
            own = {row[0] for row in connection.execute(SQL["documents_of_folder"])}
            connection.executemany(
                SQL["document_remove"], [(each.id,) for name, each in known.items() if name in own - named.keys()]
            )
            for name, content in named.items():
                if name not in known:
                    row = (name, content, hashed(content), current_utc_iso(), 1)
                    connection.execute(SQL["document_add"], row)
                elif name in own and known[name].content_hash != hashed(content):
                    connection.execute(SQL["document_change"], (content, hashed(content), known[name].id))
        return [
            name
            for name, content in named.items()
            if name in known and name not in own and known[name].content_hash != hashed(content)
        ]


def hashed(content: str) -> str:
    """Gives the SHA-256 of a text."""
    return hashlib.sha256(content.encode()).hexdigest()


def _checked(documents: Sequence[Document]) -> dict[str, str]:
    named: dict[str, str] = {}
    for document in documents:
        name = checked_name(document.file_name)
        if name in named:
            raise Refused(f"同じ名前のファイルが複数あります / the request has this document twice: {name!r}")
        check_content(name, document.content)
        named[name] = unicodedata.normalize("NFC", document.content)
    return named


def read_folder(folder: Path) -> tuple[list[Document], list[str]]:
    """Reads the documents of a folder by their paths inside it; gives also what was left out, and why.

    What resolves to a place outside the folder is left out; no message names a path outside it.
    """
    top = folder.resolve()
    found: list[Document] = []
    skipped: list[str] = []
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if not path.name.lower().endswith(ENDINGS) or any(part.startswith(".") for part in Path(name).parts):
            continue
        try:
            found.append(_document(path, top, name))
        except (Refused, OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            skipped.append(f"{name}: {UNREADABLE if isinstance(error, UnicodeDecodeError) else why}")
    return found, skipped


def _document(path: Path, top: Path, name: str) -> Document:
    if not path.resolve().is_relative_to(top):
        raise Refused("it leads outside the folder")
    if not path.is_file():
        raise Refused("it is no file")
    if path.stat().st_size > LARGEST:
        raise Refused("it has more than 3 MB")
    content = _decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
    check_content(name, content)
    return Document(checked_name(name), content)


def _decoded(content: bytes) -> str:
    """Read UTF-8, or else Shift_JIS with kana, which bytes of other encodings hardly ever make."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp932")
        if not _KANA.search(text):
            raise
        return text
