"""Language models: providers, structured answers, a job queue, and questions as durable steps.

    from tsuzuki import flow, llm

    @flow
    async def summaries(pages: list[str]) -> list[str]:
        answers = await llm.ask_all([llm.Request(f"Summarise: {page}") for page in pages], strategy="auto")
        return [answer.text for answer in answers if answer.ok]

Names are imported when they are asked for: HTTP and SQLite are heavy, and not every flow that may ask does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tsuzuki.llm import text
    from tsuzuki.llm.asking import answer, ask, ask_all
    from tsuzuki.llm.cached import Cache
    from tsuzuki.llm.capability import Capability
    from tsuzuki.llm.ending import end_batches, has_open_batches
    from tsuzuki.llm.examining import examined
    from tsuzuki.llm.providers import Address, offline, opened
    from tsuzuki.llm.providers.interface import Intent
    from tsuzuki.llm.questions import Answer, Question, Request, Usage
    from tsuzuki.llm.queue.jobs import Job, JobQueue
    from tsuzuki.llm.queue.progress import ProgressEvent, ProgressNotifier
    from tsuzuki.llm.queue.submissions import Ledger, Process
    from tsuzuki.llm.queue.worker import QueueWorker
    from tsuzuki.llm.wire import Patience, patient

__all__ = [
    "Address",
    "Answer",
    "Cache",
    "Capability",
    "Intent",
    "Job",
    "JobQueue",
    "Ledger",
    "Patience",
    "Process",
    "ProgressEvent",
    "ProgressNotifier",
    "Question",
    "QueueWorker",
    "Request",
    "Usage",
    "answer",
    "ask",
    "ask_all",
    "end_batches",
    "examined",
    "has_open_batches",
    "offline",
    "opened",
    "patient",
    "text",
]

_PLACES: Final = {
    "Address": "providers",
    "Answer": "questions",
    "Cache": "cached",
    "Capability": "capability",
    "Intent": "providers.interface",
    "Job": "queue.jobs",
    "JobQueue": "queue.jobs",
    "Ledger": "queue.submissions",
    "Patience": "wire",
    "Process": "queue.submissions",
    "ProgressEvent": "queue.progress",
    "ProgressNotifier": "queue.progress",
    "Question": "questions",
    "QueueWorker": "queue.worker",
    "Request": "questions",
    "Usage": "questions",
    "answer": "asking",
    "ask": "asking",
    "ask_all": "asking",
    "end_batches": "ending",
    "examined": "examining",
    "has_open_batches": "ending",
    "opened": "providers",
    "patient": "wire",
}
"""Where each name is."""


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for."""
    if name == "offline":
        return import_module("tsuzuki.llm.providers.offline")
    if name == "text":
        return import_module("tsuzuki.llm.text")
    if name in _PLACES:
        return getattr(import_module(f"tsuzuki.llm.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
