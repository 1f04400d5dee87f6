"""How this application asks: one question is one durable item; what goes wrong with it stays with it."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeVar

from pydantic import BaseModel

from tsuzuki import current, llm, privacy, settings
from tsuzuki.apps.glossary.prompts import RULES
from tsuzuki.apps.glossary.refusals import ModelUnavailable, sanitised
from tsuzuki.errors import (
    ProviderDenied,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnclear,
    StepFailure,
)

Model = TypeVar("Model", bound=BaseModel)
Item = TypeVar("Item")
ProgressCallback = Callable[[int, int, str], None]
"""Takes how many are done, of how many, and the term."""
_SILENT: Final = frozenset(
    kind.__name__ for kind in (ProviderUnavailable, ProviderUnclear, ProviderTimeout, ProviderRefused, ProviderDenied)
)
"""What says that nobody is there to answer, rather than that an answer cannot be used."""
PATIENCE: Final = 5
"""After so many questions in a row that nobody answered a step ends: the rest would only take time."""


SILENCE_S: Final = 5.0
"""After how long without any answer the log says so for the first time; then after twice as long, and so on."""


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
    def shown(self) -> str:
        """The provider and the model, for people."""
        return f"{self.provider} {self.model}".strip()

    @property
    def timeout(self) -> float:
        """How long an answer may take (seconds)."""
        return float(settings.value("TSUZUKI_LLM_TIMEOUT_SEC"))

    @property
    def lanes(self) -> int:
        """How many questions are asked at once."""
        chosen = settings.value("TSUZUKI_LLM_CONCURRENCY")
        return int(chosen or llm.opened(llm.Address(**asdict(self))).capability.concurrency)


async def answer(schema: type[Model], prompt: str, asked: Asked, debug: str = "") -> Model:
    """Asks one question; in a run its answer is a fact."""
    try:
        given = await llm.ask(
            schema, prompt, system=RULES, provider=asked.provider, base_url=asked.base_url, model=asked.model
        )
    except StepFailure as failure:
        if failure.error_type in _SILENT:  # so that who counts faults can tell them apart
            raise ModelUnavailable(str(failure)) from failure
        raise
    if debug:
        _write_down(Path(debug), prompt, given)
    return given


class SilenceWatch:
    """Says in the log that nobody answers, long before the timeout of a question does; `with` it around a step."""

    def __init__(self, asked: Asked, log: Callable[[str], None]) -> None:
        self._asked = asked
        self._log = log
        self._since: float | None = None
        self._watching: asyncio.Task[None] | None = None

    def heard(self) -> None:
        """Note that the step begins to ask, or has got an answer."""
        self._since = asyncio.get_running_loop().time()

    def __enter__(self) -> Self:
        if self._asked.provider != "offline":
            self._watching = asyncio.create_task(self._watch())
        return self

    def __exit__(self, *error: object) -> None:
        if self._watching is not None:  # it is not awaited: what the step has finished is saved before anything else
            self._watching.cancel()

    async def _watch(self) -> None:
        loop, heard_at, wait = asyncio.get_running_loop(), None, SILENCE_S
        while True:
            since = self._since
            if since != heard_at:
                heard_at, wait = since, SILENCE_S
            await asyncio.sleep(SILENCE_S if since is None else max(since + wait - loop.time(), SILENCE_S / 10))
            if since is not None and since == self._since and loop.time() >= since + wait:
                wait *= 2
                self._tell(int(loop.time() - since))

    def _tell(self, seconds: int) -> None:
        who, timeout = self._asked.shown, self._asked.timeout
        self._log(
            f"{who} から {seconds} 秒間回答がありません（1 回の問い合わせで最大 {timeout:g} 秒待ちます） / "
            f"no answer from {who} for {seconds} s; each try may take {timeout:g} s (TSUZUKI_LLM_TIMEOUT_SEC)"
        )


class Faults:
    """Counts the questions of a step that failed: some may, but a step without any answer is not done."""

    def __init__(self) -> None:
        self.count = 0
        """How many questions failed."""
        self._answered = 0
        self._silent = 0
        self._last = ""

    def answered(self) -> None:
        """Notes an answer."""
        self._answered += 1
        self._silent = 0

    def failed(self, failure: Any) -> str:
        """Notes a question that failed, and gives why."""
        self.count += 1
        self._last = sanitised(failure.error)
        self._silent = self._silent + 1 if failure.error_type == ModelUnavailable.__name__ else 0
        return self._last

    def is_set(self) -> bool:
        """Tells whether nobody is there to answer."""
        return self._silent >= PATIENCE

    def settle(self) -> None:
        """Raises where the answers of a step make no result: what was there before stays."""
        if self.is_set() or (self._last and not self._answered):
            raise ModelUnavailable(
                f"使える回答がありません（{self._last}） / "
                f"the language model gave no answer that can be used: {self._last}"
            )


def _write_down(folder: Path, prompt: str, given: BaseModel) -> None:
    """Keeps a question and its answer in a file that only its owner reads."""
    told = {"system": RULES, "prompt": prompt, "answer": given.model_dump()}
    file = folder / f"{digest(prompt)}.json"
    privacy.make_file(file)
    file.write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")


def digest(*said: Any) -> str:
    """Gives what is said in a few letters; equal things have equal ones."""
    text = json.dumps(said, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_set(event: CancelEvent | None) -> bool:
    """Tells whether a run is to end."""
    return event is not None and event.is_set()


def until(event: CancelEvent | None, faults: Faults, items: Iterable[Item]) -> Iterator[Item]:
    """Gives items until a run is to end, or nobody answers: none is begun after that."""
    for item in items:
        if is_set(event) or faults.is_set():
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
