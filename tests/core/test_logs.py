"""What a line of the log of a worker or a gateway says."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

from tsuzuki import Runs, Status, Worker, flow, logs, task
from tsuzuki.errors import StoreUnavailable
from tsuzuki.testing import run_flow


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The log of a process, as long as a test; the logging of pytest is put back after it."""
    root, stream = logging.getLogger(), io.StringIO()
    before, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    monkeypatch.setenv("TSUZUKI_LOAD_DOTENV", "0")
    yield stream
    root.handlers[:], logging.raiseExceptions = before, raises
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise StoreUnavailable("no disk; password=tell-nobody")


def test_a_line_says_when_who_where_and_what(written: io.StringIO) -> None:
    logs.configure(logs.WORKER, stream=written, worker_id="w1")
    logging.getLogger("mine").info("続き %s", 3, extra={"run_id": "r", "flow_name": "f", "tag": "t", "reason": "why"})
    (line,) = lines(written)
    assert line["ts"].endswith("+00:00")
    assert (line["service"], line["level"], line["logger"], line["message"]) == (
        "tsuzuki-server:worker",
        "INFO",
        "mine",
        "続き 3",
    )
    assert line["pathname"] == __file__
    assert (line["func"], line["lineno"] > 0) == ("test_a_line_says_when_who_where_and_what", True)
    assert (line["run_id"], line["flow_name"], line["tag"], line["worker_id"], line["reason"]) == (
        "r",
        "f",
        "t",
        "w1",
        "why",
    )


def test_an_exception_is_told_with_its_type_words_traceback_origin_and_id(written: io.StringIO) -> None:
    logs.configure(logs.GATEWAY, stream=written)
    try:
        fail()
    except StoreUnavailable:
        logging.getLogger("mine").exception("it failed")
    (line,) = lines(written)
    assert (line["service"], line["level"], line["exc_type"]) == ("tsuzuki-server:http", "ERROR", "StoreUnavailable")
    assert line["exc_message"].startswith("no disk")
    assert "in fail\n" in line["exc_traceback"]
    assert line["exc_origin"].endswith("in fail")
    assert (line["err_id"], line["msg_id"]) == ("ERR-TSUZUKI-0003", "MSG-TSUZUKI-0003")
    assert "tell-nobody" not in written.getvalue()


@flow
def breaks() -> None:
    raise ValueError("broken")


@flow
def hangs() -> None:
    BEGAN.set()
    GO_ON.wait(60)


BEGAN, GO_ON = threading.Event(), threading.Event()


async def test_every_error_of_a_worker_is_told_as_an_exception_is(written: io.StringIO) -> None:
    logs.configure(logs.WORKER, stream=written)
    async with Runs.open("memory:") as runs, Worker(runs.backend, [breaks, hangs], grace=0.1) as worker:
        working = asyncio.create_task(worker.run())
        submitted = [await runs.submit(name, params) for name, params in (("breaks", {}), ("breaks", {"x": 1}))]
        submitted.append(await runs.submit("unknown"))
        assert {(await runs.wait(run.id)).status for run in submitted} == {Status.FAILED}
        late = await runs.submit("hangs")
        await asyncio.to_thread(BEGAN.wait, 60)
        await runs.cancel(late.id)
        await runs.wait(late.id)
        GO_ON.set()
        worker.stop()
        await working
    errors = [line for line in lines(written) if line["level"] == "ERROR"]
    assert {line["err_id"][-4:] for line in errors} == {"0006", "0007", "0012", "0021"}
    for line in errors:
        assert {"exc_type", "exc_message", "exc_traceback", "exc_origin"} <= line.keys(), line


def test_the_settings_decide_level_form_zone_and_tracebacks(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LEVEL": "warning", "INCLUDE_TRACEBACK": "0", "UTC": "0"}.items():
        monkeypatch.setenv(f"TSUZUKI_LOG_{name}", value)
    logs.configure(logs.WORKER, stream=written)
    logging.getLogger("mine").info("not told")
    try:
        fail()
    except StoreUnavailable:
        logging.getLogger("mine").exception("told")
    (line,) = lines(written)
    assert "exc_traceback" not in line
    assert line["exc_type"] == "StoreUnavailable"
    monkeypatch.setenv("TSUZUKI_LOG_FORMAT", "text")
    logs.configure(logs.WORKER, stream=written)
    logging.getLogger("mine").warning("for people", extra={"run_id": "r"})
    assert written.getvalue().splitlines()[-1].endswith("WARNING mine: for people  [run_id=r]")


def test_whatever_is_logged_is_one_line_of_json(written: io.StringIO) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError

    logs.configure(logs.WORKER, stream=written)
    template = "two\nlines \udce9 %s %s"
    logging.getLogger("mine").info(template, 1)
    logging.getLogger("mine").error("broken", exc_info=Broken())
    first, second = lines(written)
    assert first["message"].startswith("two\nlines")
    assert second["exc_message"] == "<its str() raised ValueError>"


def test_what_is_told_beside_a_message_has_no_secrets_either(written: io.StringIO) -> None:
    logs.configure(logs.WORKER, stream=written)
    more = {"reason": "password=abc123", "details": {"job": {"api_key": "abc123"}, "tokens": 3}}
    logging.getLogger("shop").warning("no", extra=more)
    told = json.loads(written.getvalue())
    assert (told["reason"], told["job"], told["tokens"]) == ("password=***", {"api_key": "***"}, 3)


def test_the_ids_of_a_trace_are_told_where_there_is_one(written: io.StringIO) -> None:
    logs.configure(logs.WORKER, stream=written)
    place = trace.SpanContext(trace_id=10, span_id=11, is_remote=False)
    with trace.use_span(trace.NonRecordingSpan(place)):
        logging.getLogger("mine").info("traced")
        logging.getLogger("mine").info("by hand", extra={"trace_id": "mine"})
    logging.getLogger("mine").info("outside")
    traced, by_hand, outside = lines(written)
    assert (traced["trace_id"], traced["span_id"]) == (f"{10:032x}", f"{11:016x}")
    assert by_hand["trace_id"] == "mine"
    assert not {"trace_id", "span_id"} & outside.keys()


async def test_the_log_of_a_run_tells_of_the_trace_that_its_task_is_in(written: io.StringIO) -> None:
    @task
    async def traced() -> int:
        place = trace.SpanContext(trace_id=20, span_id=21, is_remote=True)
        with trace.use_span(trace.NonRecordingSpan(place)):
            logging.getLogger("mine").warning("inside")
        return 1

    @flow
    async def follows() -> int:
        return await traced()

    logs.configure(logs.WORKER, stream=written)
    run = await run_flow(follows)
    [line] = [line for line in lines(written) if line["message"] == "inside"]
    assert (line["trace_id"], line["flow_name"], line["run_id"]) == (f"{20:032x}", "follows", run.id)
