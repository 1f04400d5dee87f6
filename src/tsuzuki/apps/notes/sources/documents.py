"""Documents that were written in a conversation, in a canvas or as an artifact: the last version of each."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from tsuzuki.apps.notes.sources.conversation import clean, one_line

_PROSE: Final = frozenset({"", "document", "text/markdown", "text/plain", "application/markdown"})
_LANGUAGES: Final = {"text/html": "html", "image/svg+xml": "svg", "application/vnd.ant.mermaid": "mermaid",
                     "application/vnd.ant.react": "jsx"}  # fmt: skip
_ODD: Final = re.compile(r"[^\w+#.-]")
_FENCES: Final = re.compile(r"`{3,}")


@dataclass(slots=True)
class _Document:
    title: str
    kind: str
    language: str
    text: str
    place: Hashable

    def __str__(self) -> str:
        body = self.text.strip("\n") if self.kind in _PROSE else self._fenced()
        return f"[document: {self.title or 'unnamed'}]\n{body}"

    def _fenced(self) -> str:
        fence = max([*(f"{each}`" for each in _FENCES.findall(self.text)), "```"], key=len)
        given = self.language or _LANGUAGES.get(self.kind, "") or self.kind.removeprefix("code/")
        language = "" if "/" in given else _ODD.sub("", given)
        return f"{fence}{language}\n{self.text.strip(chr(10))}\n{fence}"


class Documents:
    """What became of the documents of a conversation; each stands where its last version was written."""

    def __init__(self) -> None:
        self._known: dict[str, _Document] = {}
        self._last = ""

    def create(self, own: Any, about: dict[str, Any], place: Hashable) -> None:
        """Takes a document, or a whole new version of one with the same name."""
        name, text = str(own), clean(about.get("content"))
        if not text.strip():
            return
        title, kind, language = (one_line(about.get(field)) for field in ("title", "type", "language"))
        before = self._known.pop(name, None)
        if before is not None:
            title, kind, language = title or before.title, kind or before.kind, language or before.language
        self._known[name] = _Document(title, kind, language, text, place)
        self._last = name

    def rewrite_last(self, text: Any, place: Hashable) -> None:
        """Takes a whole new version of the document that was worked on last."""
        if self._last:
            self.create(self._last, {"content": text}, place)

    def edit(self, own: Any, old: Any, new: Any, place: Hashable) -> None:
        """Changes one place in a document."""
        found = self._known.get(str(own))
        if found is not None and isinstance(old, str) and isinstance(new, str) and old and clean(old) in found.text:
            found.text, found.place = found.text.replace(clean(old), clean(new), 1), place

    def placed(self) -> dict[Hashable, str]:
        """Gives them by the places where they stand."""
        return {document.place: str(document) for document in self._known.values()}
