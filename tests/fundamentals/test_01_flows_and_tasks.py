"""Flows call tasks; each call is a step whose result is recorded once."""

import asyncio
import dataclasses
import datetime as dt
import math
import re
import threading
import time
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import GiveUp, Retry, Runs, Status, current, flow, task
from tsuzuki.errors import BadParams, BadUsage, StepFailure


async def test_a_flow_returns_what_its_function_returns(run: RunFlow) -> None:
    @task
    async def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(x: int) -> int:
        return await double(x) + await double(x + 1)

    ended = await run(arithmetic, x=3)
    assert (ended.status, ended.result) == (Status.COMPLETED, 14)


async def test_plain_functions_work_as_well(run: RunFlow) -> None:
    threads = set()

    @task
    def double(x: int) -> int:
        threads.add(threading.current_thread())
        return 2 * x

    @task
    async def triple(x: int) -> int:
        return 3 * x

    @flow
    def arithmetic(x: int) -> Any:
        return double(x) + triple(x)  # type: ignore[operator] # a sync flow blocks on async tasks too

    assert (await run(arithmetic, x=3)).result == 15
    assert threading.main_thread() not in threads


async def test_an_async_flow_awaits_sync_tasks_too(run: RunFlow) -> None:
    @task
    def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(x: int) -> Any:
        return await double(x)  # type: ignore[misc] # typed as what it returns outside async code

    assert (await run(arithmetic, x=3)).result == 6


async def test_outside_a_run_a_task_is_its_function() -> None:
    @task
    def double(x: int) -> int:
        return 2 * x

    @flow
    async def arithmetic(xs: list[int]) -> Any:
        return [await double(1), *(await double.map(xs))]  # type: ignore[misc] # see above

    @flow
    def plainly(x: int) -> int:
        current().log.info("nobody listens")
        return double(x) + int(sum(double.map([1, 2])))

    assert await arithmetic([2, 3]) == [2, 4, 6]
    assert plainly(1) == 8
    assert await asyncio.to_thread(double, 4) == 8


async def test_params_are_checked_before_a_run_is_accepted(runs: Runs, run: RunFlow) -> None:
    @flow
    async def crawl(site: str, depth: int = 2) -> int:
        return depth

    with pytest.raises(BadParams, match="depth") as refused:
        await run(crawl, site="a", depth="deep")
    assert refused.value.problems[0]["loc"] == ["depth"]
    with pytest.raises(BadParams, match="colour"):
        await run(crawl, site="a", colour="red")
    assert await runs.list() == []
    assert (await run(crawl, site="a", depth="3")).result == 3


class Page(pydantic.BaseModel):
    url: str
    seen: dt.datetime


@dataclasses.dataclass
class Picture:
    data: bytes
    place: Path


async def test_models_dataclasses_dates_paths_and_bytes_come_back_as_they_were(run: RunFlow) -> None:
    page = Page(url="u", seen=dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    picture = Picture(b"\xff\x00", Path("a/b"))

    @task
    async def load(name: str) -> Page:
        return page

    @task
    async def draw() -> Picture:
        return picture

    seen = []

    @flow
    async def look() -> tuple[Page, Picture]:
        seen.append((await load("x"), await draw()))
        return seen[-1]

    assert (await run(look)).result == (page, picture)
    assert seen == [(page, picture)]


async def test_a_flow_receives_the_recorded_value_the_first_time_too(run: RunFlow) -> None:
    @task
    async def pair() -> Any:
        return (1, 2)

    @flow
    async def look() -> Any:
        return type(await pair()).__name__

    assert (await run(look)).result == "list"


async def test_steps_inside_steps_are_recorded(run: RunFlow) -> None:
    calls: list[str] = []
    broken = True

    @task
    def inner(x: int) -> int:
        calls.append(f"inner {x}")
        return x + 1

    @task
    def outer(x: int) -> int:
        value = inner(x) + inner(x + 1)
        calls.append("outer")
        if broken:
            raise RuntimeError("not yet")
        return value

    @flow
    def nested() -> int:
        return outer(1)

    assert (await run(nested)).status is Status.FAILED
    broken = False
    assert (await run(nested)).result == 5
    assert calls == ["inner 1", "inner 2", "outer", "outer"]


async def test_retries_are_made_and_counted(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=3, backoff=0.001))
    async def flaky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return len(tries)

    @flow
    async def patient() -> int:
        return await flaky()

    assert (await run(patient)).result == 3


async def test_only_the_chosen_exceptions_are_retried(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=5, backoff=0.001, on=(ConnectionError,)))
    async def flaky() -> int:
        tries.append(1)
        raise ValueError("no use")

    @flow
    async def impatient() -> int:
        return await flaky()

    ended = await run(impatient)
    assert (ended.status, len(tries)) == (Status.FAILED, 1)


async def test_give_up_ends_the_retries_at_once(run: RunFlow) -> None:
    tries = []

    @task(retry=Retry(attempts=5, backoff=0.001))
    async def hopeless() -> int:
        tries.append(1)
        raise GiveUp("the page is gone")

    @flow
    async def impatient() -> int:
        return await hopeless()

    ended = await run(impatient)
    assert len(tries) == 1
    assert ended.error is not None
    assert "the page is gone" in ended.error.message


async def test_a_failure_looks_the_same_the_first_time_and_on_replay(run: RunFlow) -> None:
    seen: list[str] = []
    first = True

    @task
    async def fail() -> int:
        raise ZeroDivisionError("oh")

    @flow
    async def careful() -> int:
        try:
            await fail()
        except StepFailure as failure:
            seen.append(f"{failure} {failure.error_type} {failure.tries}")
        if first:
            raise RuntimeError("crash")
        return 1

    assert (await run(careful)).status is Status.FAILED
    first = False
    assert (await run(careful)).status is Status.COMPLETED
    assert seen[0] == seen[1] == "fail failed: ZeroDivisionError: oh ZeroDivisionError 1"


async def test_a_timeout_interrupts_an_async_task(run: RunFlow) -> None:
    @task(timeout=0.05, retry=Retry(attempts=2, backoff=0.001))
    async def slow() -> int:
        await asyncio.sleep(60)
        return 1

    @flow
    async def impatient() -> int:
        return await slow()

    ended = await run(impatient)
    assert ended.error is not None
    assert "slow failed after 2 tries: TimeoutError: timed out after 0.05 s" in ended.error.message


async def test_a_rate_spaces_the_calls(run: RunFlow) -> None:
    times = []

    @task(rate="50/s")
    async def ask(x: int) -> float:
        times.append(asyncio.get_running_loop().time())
        return times[-1]

    @flow
    async def asking() -> int:
        return len(await ask.map(range(5), concurrency=5))

    assert (await run(asking)).result == 5
    assert times[-1] - times[0] >= 0.075


async def test_a_concurrency_limit_holds_across_maps(run: RunFlow) -> None:
    now = most = 0

    @task(concurrency=2)
    async def ask(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return x

    @flow
    async def asking() -> int:
        both = await asyncio.gather(ask.map(range(10)), ask.map(range(10, 20)))
        return sum(len(part) for part in both)

    assert (await run(asking)).result == 20
    assert most == 2


async def test_a_shared_limit_holds_for_the_whole_backend(run: RunFlow) -> None:
    now = most = 0

    @task(limit="gitlab", concurrency=2, rate="500/s")
    async def ask(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return x

    @flow
    async def asking(start: int) -> int:
        return len(await ask.map(range(start, start + 6)))

    both = await asyncio.gather(run(asking, start=0), run(asking, start=10))
    assert [ended.result for ended in both] == [6, 6]
    assert most <= 2


@pytest.mark.parametrize("rate", ["", "fast", "0/s", "-1/s", "3/week"])
def test_a_rate_that_makes_no_sense_is_refused(rate: str) -> None:
    with pytest.raises(BadUsage, match="rate"):
        task(rate=rate)(lambda: 1)


async def test_two_tasks_of_one_name_are_refused(run: RunFlow) -> None:
    def make(value: int) -> Any:
        @task(name="same")
        async def same() -> int:
            return value

        return same

    one, other = make(1), make(2)

    @flow
    async def confused() -> int:
        return int(await one()) + int(await other())

    ended = await run(confused)
    assert ended.error is not None
    assert "two tasks of this run are called 'same'" in ended.error.message


async def test_artifacts_are_kept_beside_the_result(runs: Runs, run: RunFlow) -> None:
    @task
    async def report() -> int:
        await current().artifacts.save("report.txt", "all is well")
        return 1

    @flow
    async def reporting() -> int:
        return await report()

    ended = await run(reporting)
    [done] = [e.fact async for e in runs.journal(ended.id) if type(e.fact).__name__ == "StepDone"]
    [artifact] = done.artifacts  # type: ignore[union-attr] # it is a StepDone
    assert artifact.name == "report.txt"
    assert await runs.backend.get_blob(ended.id, artifact.blob) == b"all is well"


async def test_a_sync_call_that_timed_out_keeps_its_place_until_it_really_ends(run: RunFlow) -> None:
    release = threading.Event()
    inside: list[int] = []

    @task(concurrency=1, timeout=0.05)
    def stuck(x: int) -> int:
        inside.append(x)
        if x == 0:
            release.wait()
        return x

    @flow
    async def waiting() -> int:
        pages = await stuck.map(range(2), concurrency=2, on_error="collect")
        return len(pages.failed)

    going = asyncio.ensure_future(run(waiting))
    while not inside:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.15)  # the first call has timed out by now, and its thread still runs
    assert inside == [0]
    release.set()
    assert (await going).result == 1
    assert inside == [0, 1]


async def test_what_an_async_task_returns_after_its_time_is_refused(run: RunFlow) -> None:
    @task(timeout=0.05)
    async def deaf() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return 1

    @flow
    async def waiting() -> int:
        return await deaf()

    error = (await run(waiting)).error
    assert error is not None
    assert "it returned later all the same, which is refused" in error.message


async def test_an_async_task_that_blocks_the_loop_past_its_time_has_timed_out(run: RunFlow) -> None:
    @task(timeout=0.02)
    async def blocking() -> int:
        time.sleep(0.05)
        return 1

    @flow
    async def waiting() -> int:
        return await blocking()

    error = (await run(waiting)).error
    assert error is not None
    assert "timed out after 0.02 s" in error.message
    assert "it blocks the event loop" in error.message


async def test_a_shared_place_is_handed_on_and_never_taken_twice(runs: Runs, run: RunFlow) -> None:
    now = most = 0

    @task(limit="one", concurrency=1)
    async def alone(x: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return x

    @flow
    async def queueing(start: int) -> int:
        return len(await alone.map(range(start, start + 20), concurrency=10))

    both = await asyncio.gather(run(queueing, start=0), run(queueing, start=100))
    assert [ended.result for ended in both] == [20, 20]
    assert most == 1
    assert await runs.backend.enter("one", places=1, worker="somebody else")


class Measured(pydantic.BaseModel):
    mean: float | None = None


class Spelled(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")

    mean: float | None = None


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (Any, math.inf, "result is inf"),
        (Any, {"scores": [1.0, math.nan]}, r"result\['scores'\]\[1\] is nan"),
        (dict, {"score": -math.inf}, r"result\['score'\] is -inf"),
        (object, math.nan, "result is nan"),
        (float | str, math.inf, "result is inf"),
        (list[Any], [None, math.inf], r"result\[1\] is inf"),
        (Measured, Measured(mean=math.inf), r"result\['mean'\] is inf"),
        (Any, Measured(mean=math.inf), r"result\['mean'\] is inf"),
    ],
)
async def test_a_number_that_json_has_no_word_for_is_never_changed_silently(
    run: RunFlow, annotation: Any, value: Any, place: str
) -> None:
    async def measure() -> Any:
        return value

    measure.__annotations__["return"] = annotation
    ended = await run(flow(measure))
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert ended.error.type == "NotJSON"
    assert re.search(f"{place}, which JSON has no word for", ended.error.message)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.inf),
        (list[float], [1.0, -math.inf]),
        (dict[str, float | None], {"a": math.inf, "b": None}),
        (Spelled, Spelled(mean=math.inf)),
        (Any, ["NaN", "Infinity", None]),
        (list[Any], ["NaN", None, 1.5]),
    ],
)
async def test_an_annotated_number_comes_back_as_it_was(run: RunFlow, annotation: Any, value: Any) -> None:
    async def measure() -> Any:
        return value

    measure.__annotations__["return"] = annotation
    ended = await run(flow(measure))
    assert (ended.status, ended.result) == (Status.COMPLETED, value)


@pytest.mark.parametrize("value", ["half \ud800", ["half \ud800"], {"half \ud800": 1}])
async def test_a_text_that_utf8_cannot_say_is_refused_with_what_to_do(run: RunFlow, value: Any) -> None:
    @task
    async def read() -> Any:
        return value

    @flow
    async def reading() -> Any:
        return await read()

    ended = await run(reading)
    assert ended.error is not None
    assert "NotJSON" in ended.error.message
    assert "backslashreplace" in ended.error.message


@pytest.mark.parametrize("where", ["flow", "async task", "sync task"])
async def test_what_a_cancellation_from_inside_says_is_kept(run: RunFlow, where: str) -> None:
    @task
    async def leave() -> None:
        raise asyncio.CancelledError("the quota is used up")

    @task
    def leave_a_thread() -> None:
        raise asyncio.CancelledError("the quota is used up")

    @flow
    async def leaving() -> None:
        if where == "async task":
            await leave()
        if where == "sync task":
            await leave_a_thread()  # type: ignore[misc] # typed as what it returns outside async code
        raise asyncio.CancelledError("the quota is used up")

    ended = await run(leaving)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "ancelled" in ended.error.message
    assert "the quota is used up" in ended.error.message


async def test_steps_inside_steps_may_go_deep(run: RunFlow) -> None:
    broken = True
    calls = 0

    @task
    async def down(depth: int) -> int:
        nonlocal calls
        calls += 1
        return 0 if depth == 0 else 1 + await down(depth - 1)

    @flow
    async def deep() -> int:
        found = await down(400)
        if broken:
            raise ValueError("not yet")
        return found

    assert (await run(deep)).status is Status.FAILED
    broken = False
    assert (await run(deep)).result == 400
    assert calls == 401


class Collector:
    """Somebody puts tasks into classes, too."""

    @task
    def method(self, number: int) -> int:
        return number

    @staticmethod
    @task
    def apart(number: int) -> int:
        return number


async def test_a_method_as_a_task_is_refused_in_words(run: RunFlow) -> None:
    @flow
    def collecting(method: bool) -> int:
        return Collector().method(1) if method else Collector().apart(2)  # type: ignore[arg-type,call-arg] # its fault

    assert (await run(collecting, method=False)).result == 2
    error = (await run(collecting, method=True)).error
    assert error is not None
    assert "task method is a method of Collector, which no task can be" in error.message
