"""Tsuzuki (続き, "to be continued"): durable runs for long Python and LLM work.

Decorate functions with `@task` and one with `@flow`, run it, kill it at any moment, run it again: what had
finished is never done again.
"""

from tsuzuki.context import current
from tsuzuki.errors import TsuzukiError
from tsuzuki.flow import task
from tsuzuki.lifecycle import Run, Status
from tsuzuki.retry import GiveUp, Later, Retry
from tsuzuki.runs import Runs
from tsuzuki.script import flow
from tsuzuki.worker import Worker

__version__ = "0.1.0"

__all__ = [
    "GiveUp",
    "Later",
    "Retry",
    "Run",
    "Runs",
    "Status",
    "TsuzukiError",
    "Worker",
    "__version__",
    "current",
    "flow",
    "task",
]
