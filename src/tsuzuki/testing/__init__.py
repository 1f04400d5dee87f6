"""Tools for tests of flows and of backends, for users as much as for ourselves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.testing.clock import FakeClock
from tsuzuki.testing.faulty import Crash, FaultyBackend
from tsuzuki.testing.running import FinishedRun, run_flow

if TYPE_CHECKING:
    from tsuzuki.testing.contract import BackendContract
    from tsuzuki.testing.models import FakeLLM

__all__ = [
    "BackendContract",
    "Crash",
    "FakeClock",
    "FakeLLM",
    "FaultyBackend",
    "FinishedRun",
    "MemoryBackend",
    "run_flow",
]


def __getattr__(name: str) -> Any:
    """Imports what is heavy when it is asked for: the contract needs pytest, the model HTTP; the other tools do not."""
    if name == "FakeLLM":
        return import_module("tsuzuki.testing.models").FakeLLM
    if name != "BackendContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest  # noqa: PLC0415 - an optional extra

    pytest.register_assert_rewrite("tsuzuki.testing.builders", "tsuzuki.testing.contract")
    from tsuzuki.testing.contract import BackendContract  # noqa: PLC0415 - after the line above, or asserts say nothing

    return BackendContract
