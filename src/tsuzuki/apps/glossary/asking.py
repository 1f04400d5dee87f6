"""How this application asks: one question is one durable item; what goes wrong with it stays with it."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from tsuzuki import current, llm, settings
from tsuzuki.apps.glossary.prompts import RULES

Model = TypeVar("Model", bound=BaseModel)
Item = TypeVar("Item")
ProgressCallback = Callable[[int, int, str], None]
"""Takes how many are done, of how many, and the term."""


class CancelEvent(Protocol):
    """What says that a run is to end; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Tells whether it is to end."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom to ask, and where to write down what was said; a part of each item's identity."""

    provider: str = ""
    base_url: str = ""
    model: str = ""

    @classmethod
    def of(cls, address: "llm.Address") -> "Asked":
        """Gives the one who is asked, with nothing left open."""
        full = address.filled()
        return cls(full.provider, full.base_url, full.model)

    @property
    def lanes(self) -> int:
        """How many questions are asked at once."""
        chosen = settings.value("TSUZUKI_LLM_CONCURRENCY")
        return int(chosen or llm.opened(llm.Address(**asdict(self))).capability.concurrency)


async def answer(schema: type[Model], prompt: str, asked: Asked, debug: str = "") -> Model:
    """Asks one question; in a run its answer is a fact."""
    given = await llm.ask(
        schema, prompt, system=RULES, provider=asked.provider, base_url=asked.base_url, model=asked.model
    )
    if debug:
        _write_down(Path(debug), prompt, given)
    return given


def _write_down(folder: Path, prompt: str, given: BaseModel) -> None:
    """Keeps a question and its answer in a file that only its owner reads."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    told = {"system": RULES, "prompt": prompt, "answer": given.model_dump()}
    file = folder / f"{digest(prompt)}.json"
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")


def digest(*said: Any) -> str:
    """Gives what is said in a few letters; equal things have equal ones."""
    text = json.dumps(said, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_set(event: CancelEvent | None) -> bool:
    """Tells whether a run is to end."""
    return event is not None and event.is_set()


def until(event: CancelEvent | None, items: Iterable[Item]) -> Iterator[Item]:
    """Gives items until a run is to end: none is begun after that."""
    for item in items:
        if is_set(event):
            return
        yield item


def told(callback: Callable[..., None] | None, *values: Any) -> None:
    """Tells somebody how far it is; what goes wrong with that stops nothing."""
    if callback is None:
        return
    try:
        callback(*values)
    except Exception as error:  # noqa: BLE001 - somebody else's code, which must not stop the work
        current().log.warning("a progress callback failed: %s", type(error).__name__)
