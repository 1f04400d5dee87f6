"""A batch on its way, as values: what is in it, what came of it, what is to be waited for, and where it is noted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import msgspec

from tsuzuki import settings
from tsuzuki.llm.providers.interface import Intent
from tsuzuki.llm.questions import Question, Reply, Turn

FIRST_LOOK: Final = 2.0
"""How soon a batch is looked at for the first time (seconds)."""
AN_HOUR: Final = 3600.0
_turns: Final = msgspec.json.Decoder(tuple[Turn, ...]).decode


class Waiting(Exception):
    """A batch is not over, or not sure: look again after so many seconds."""

    def __init__(self, seconds: float, text: str, done: int = 0, total: int = 0) -> None:
        super().__init__(text)
        self.seconds, self.text, self.done, self.total = seconds, text, done, total


class Placed(NamedTuple):
    """A job in a batch: what is asked there, and what the tries before took."""

    question: Question
    before: Reply | None


class Collected(NamedTuple):
    """What came of a job in a batch; with turns it is asked again, saying these."""

    job: str
    reply: Reply
    turns: tuple[Turn, ...] | None


class Submission(NamedTuple):
    """A batch on its way, as its row has it."""

    id: str
    process_id: str
    provider: str
    base_url: str
    state: str
    batch_job_id: str | None
    intended_at: float
    sent_at: float | None
    """When it was last sent, as far as this queue knows; None where it never was, or was surely not taken."""
    cancelled: int
    """Whether its end was asked for here."""
    follows: str
    """The batch that it follows, if any."""


class Followed(NamedTuple):
    """A batch that is over, and of which jobs wait to be asked again."""

    id: str
    most: int | None
    """How many of them go into one batch, where the provider took no more; those go one after the other."""
    refused_at: float | None


class Ledger(Protocol):
    """Where intents and the ids of batches are written down beside the queue: in a run, its journal."""

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Writes an intent down; gives it as it was first written, and whether that is now."""
        ...

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Gives the id of the batch: as written down, else what `create` gives, which is then written down."""
        ...


class SendingLedger(Ledger, Protocol):
    """A ledger that also knows when a batch was sent, and who may send it."""

    async def last_sent(self, intent: Intent) -> float | None:
        """Return when the batch was last sent, unless the provider surely did not take it; None if it never was."""
        ...

    async def sending(self, intent: Intent) -> None:
        """Record that the batch is being sent now; raise if somebody else may send it by now."""
        ...

    async def unsent(self, intent: Intent) -> None:
        """Record that the provider did not take what was sent last."""
        ...


class NoLedger:
    """Nothing but the queue: its side tables are all there is."""

    async def last_sent(self, intent: Intent) -> float | None:
        """Return None: the queue knows."""
        del intent
        return None

    async def sending(self, intent: Intent) -> None:
        """Has nothing to write."""

    async def unsent(self, intent: Intent) -> None:
        """Has nothing to write."""

    async def intend(self, intent: Intent) -> tuple[Intent, bool]:
        """Has nothing to write."""
        return intent, True

    async def submitted(self, intent: Intent, create: Callable[[], Awaitable[str]]) -> str:
        """Creates."""
        del intent
        return await create()


@dataclass(frozen=True, slots=True)
class Process:
    """Questions that outlive the run which asks them: whoever asks under the same name finds the same batches.

    A run that has lost its journal, or another one on another machine, attaches to what the ledger knows of.
    """

    name: str
    """What it is known by, everywhere: no two have the same."""
    keys: tuple[str, ...]
    """What each question is known by, in their order; what it says may change with a version."""
    ledger: Ledger
    """Where the asker writes down intents and the ids of batches, beside the journal of the run."""
    resumed: bool = False
    """Whether it was begun before: then what a batch that was cancelled meanwhile has not done is asked again."""


def question_of(request: str, turns: str | None) -> Question:
    """Gives what a job asks, with what was said since."""
    question = msgspec.json.decode(request, type=Question)
    return question if not turns else msgspec.structs.replace(question, turns=_turns(turns))


def reply_of(tried: str | None) -> Reply | None:
    """Gives what the tries of a job took so far."""
    return None if tried is None else msgspec.json.decode(tried, type=Reply)


def settle() -> float:
    """Return how long a batch may appear after it was sent (seconds): at least as long as a request may take."""
    return max(float(settings.value("TSUZUKI_LLM_SETTLE_SEC")), float(settings.value("TSUZUKI_LLM_TIMEOUT_SEC")))


def interval() -> float:
    """Gives how often an open batch is looked at (seconds)."""
    return float(settings.value("TSUZUKI_LLM_POLL_SEC"))


def pause(age: float) -> float:
    """Gives how long to wait before a batch of an age is looked at again: soon at first, later after an hour."""
    often = interval()
    if age > AN_HOUR:
        return min(often * age / AN_HOUR, 10 * often)
    return max(min(FIRST_LOOK, often), min(age / 4, often))
