"""Tsuzuki (続き, "to be continued"): durable runs for long Python and LLM work.

Decorate functions with `@task` and one with `@flow`, run it, kill it at any moment, run it again: what had
finished is never done again.
"""

from tsuzuki.excepthook import show_plainly

try:  # to load all this takes a tenth of a second, in which people may press Ctrl-C
    from importlib import import_module
    from typing import TYPE_CHECKING, Any

    from tsuzuki.context import current
    from tsuzuki.errors import TsuzukiError
    from tsuzuki.flow import task
    from tsuzuki.lifecycle import Run, RunUpdateResult, Status
    from tsuzuki.retry import GiveUp, Later, Retry
    from tsuzuki.runs import Runs
    from tsuzuki.script import flow
    from tsuzuki.version import VERSION
    from tsuzuki.worker import Worker
except KeyboardInterrupt as early:
    show_plainly(early)
    raise

if TYPE_CHECKING:
    from tsuzuki import llm
    from tsuzuki.client import AsyncClient, Client

__version__ = VERSION

__all__ = [
    "AsyncClient",
    "Client",
    "GiveUp",
    "Later",
    "Retry",
    "Run",
    "RunUpdateResult",
    "Runs",
    "Status",
    "TsuzukiError",
    "Worker",
    "__version__",
    "current",
    "flow",
    "llm",
    "task",
]


def __getattr__(name: str) -> Any:
    """Imports the clients and `llm` when they are asked for: most programs need neither, and HTTP is heavy."""
    if name == "llm":
        return import_module("tsuzuki.llm")
    if name in ("AsyncClient", "Client"):
        from tsuzuki import client  # noqa: PLC0415 - for that reason

        return getattr(client, name)
    raise AttributeError(f"module 'tsuzuki' has no attribute {name!r}")
