"""How much the page computes, by Chromium's own trace: processor time, which others on the machine cannot lengthen."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.dashboard.browsing import Stage, Window

CATEGORIES = ["toplevel", "devtools.timeline", "v8", "disabled-by-default-v8.compile"]
SCRIPT = {
    "EvaluateScript",
    "FunctionCall",
    "RunMicrotasks",
    "TimerFire",
    "v8.compileModule",
    "v8.evaluateModule",
    "v8.compile",
}
TASK = "ThreadControllerImpl::RunTask"


class Trace:
    """What the main threads of pages did meanwhile; milliseconds of processor time."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []

    def read(self, data: bytes) -> None:
        events = json.loads(data)["traceEvents"]
        main = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        self._events = [
            event for event in events if event["ph"] == "X" and "tdur" in event and (event["pid"], event["tid"]) in main
        ]
        assert self._events, "the trace is empty"

    def longest(self) -> float:
        """The longest task: what keeps a person waiting."""
        return max((event["tdur"] / 1000 for event in self._events if event["name"] == TASK), default=0.0)

    def script(self) -> float:
        """All script together; what is called by script is counted once."""
        spent, until = 0.0, 0.0
        for event in sorted(self._events, key=lambda event: float(event["ts"])):
            if event["name"] in SCRIPT and event["ts"] >= until:
                spent += event["tdur"]
                until = event["ts"] + event["dur"]
        return spent / 1000


@contextmanager
def traced(stage: Stage, window: Window) -> Iterator[Trace]:
    """Traces a window meanwhile."""
    trace = Trace()
    stage.browser.start_tracing(page=window.page, categories=CATEGORIES)
    try:
        yield trace
    finally:
        data = stage.browser.stop_tracing()
    trace.read(data)
