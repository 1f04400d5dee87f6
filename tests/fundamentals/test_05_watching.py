"""Logs, progress and facts reach those who watch."""

import asyncio
import logging
from typing import Any

import msgspec

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Retry, Runs, Status, Worker, current, flow, task
from tsuzuki.facts import kind


async def test_log_lines_carry_the_step_and_the_item(runs: Runs, run: RunFlow) -> None:
    @task
    async def chatty(x: str) -> str:
        current().log(f"working on {x}")
        logging.getLogger("library").warning("standard logging of %s", x)
        return x

    @task
    def plain() -> int:
        current().log.error("from a thread")
        return 1

    @flow
    async def talking() -> int:
        current().log.info("the flow begins")
        await chatty.map(["a", "b"], concurrency=1)
        await plain()  # type: ignore[misc] # a sync task in an async flow
        return 1

    ended = await run(talking)
    lines = [(line.text, line.level, line.name, line.key, line.logger) async for line in runs.log(ended.id)]
    assert lines == [
        ("the flow begins", "info", "talking", "", ""),
        ("working on a", "info", "chatty", "a", ""),
        ("standard logging of a", "warning", "chatty", "a", "library"),
        ("working on b", "info", "chatty", "b", ""),
        ("standard logging of b", "warning", "chatty", "b", "library"),
        ("from a thread", "error", "plain", "", ""),
    ]


async def test_secrets_do_not_reach_the_log_or_the_error(runs: Runs, run: RunFlow) -> None:
    @task(retry=Retry(attempts=2, backoff=0.001))
    async def careless() -> int:
        current().log("Authorization: Bearer abcdef123456 and api_key=s3cr3t")
        raise RuntimeError("https://ann:hunter2@example.org/ refused sk-ABCDEFGH12345678")

    @task
    async def named(address: str) -> int:
        current().log("asks")
        return len(address)

    @flow
    async def leaking() -> int:
        await named.map(["https://example.org/?token=k3ykey"])
        return await careless()

    ended = await run(leaking)
    lines = [line async for line in runs.log(ended.id)]
    assert [line.key for line in lines if line.text == "asks"] == ["https://example.org/?token=***"]
    shown = "".join(f"{line.key} {line.text}" for line in lines)
    assert "k3ykey" not in shown
    shown += "".join([str(record) async for record in runs.export(ended.id)])
    for secret in ("abcdef123456", "s3cr3t", "hunter2", "sk-ABCDEFGH12345678"):
        assert secret not in shown


async def test_too_many_lines_are_dropped_and_counted_trouble_last(runs: Runs, run: RunFlow) -> None:
    @flow
    async def flooding() -> int:
        for number in range(5000):
            current().log(f"line {number}")
        logging.getLogger("shop").error("the shop is on fire")
        return 1

    ended = await run(flooding)
    texts = [line.text async for line in runs.log(ended.id)]
    assert len(texts) == 2002
    assert texts[-2:] == ["the shop is on fire", "3000 log lines were dropped: too many at once"]


async def test_an_exception_whose_str_raises_is_told_by_its_type(run: RunFlow) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @flow
    async def failing() -> int:
        raise Unspeakable

    ended = await run(failing)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert "its str() raised RuntimeError" in ended.error.message


async def test_progress_shows_counts_and_an_estimate(runs: Runs) -> None:
    hold = asyncio.Event()

    @task
    async def item(x: int) -> int:
        await asyncio.sleep(0.001)
        if x == 9:
            await hold.wait()
        return x

    @flow
    async def mapping() -> int:
        return len(await item.map(range(20), concurrency=1))

    async with Worker(runs.backend, [mapping]) as worker:
        loop = asyncio.create_task(worker.run())
        row = await runs.submit(mapping)
        progress: list[Any] = []
        while not (progress and progress[0]["done"] == 9):
            await runs.backend.changed(row.id, 10**9, 1.0)
            progress = msgspec.json.decode((await runs.get(row.id)).progress)
        hold.set()
        row = await runs.wait(row.id)
        worker.stop()
        await loop
    [shown] = progress
    assert (shown["name"], shown["total"], shown["running"]) == ("item", 20, 1)
    assert shown["eta"] > 0
    assert (row.done, bytes(row.progress)) == (20, b"[]")


async def test_followers_see_every_fact_in_order_also_late_ones(runs: Runs) -> None:
    @task
    async def item(x: int) -> int:
        await asyncio.sleep(0.0005)
        return x

    @flow
    async def mapping() -> int:
        return len(await item.map(range(100), concurrency=3))

    async def follow(after: int) -> list[tuple[int, str]]:
        return [(entry.position, kind(entry.fact)) async for entry in runs.follow(row.id, after=after)]

    async with Worker(runs.backend, [mapping]) as worker:
        loop = asyncio.create_task(worker.run())
        row = await runs.submit(mapping)
        early = asyncio.create_task(follow(0))
        await runs.backend.changed(row.id, 50, 5.0)
        middle = asyncio.create_task(follow(20))
        await runs.wait(row.id)
        late = await follow(0)
        worker.stop()
        await loop
    assert [position for position, _ in late] == list(range(1, len(late) + 1))
    assert await early == late
    assert await middle == late[20:]
    assert late[0][1] == "Submitted"
    assert late[-1][1] == "RunCompleted"


async def test_a_line_is_written_once_however_many_workers_there_are(runs: Runs, run: RunFlow) -> None:
    @flow
    async def talking() -> int:
        logging.getLogger("library").warning("once")
        return 1

    async with Worker(runs.backend), Worker(runs.backend):
        ended = await run(talking)
    assert [line.text async for line in runs.log(ended.id)] == ["once"]


async def test_an_error_in_a_task_group_is_told_as_itself(run: RunFlow) -> None:
    @flow
    async def grouping() -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            raise KeyError("the one")

    error = (await run(grouping)).error
    assert error is not None
    assert (error.type, error.message) == ("KeyError", "'the one'")


async def test_the_log_is_called_like_a_logger(runs: Runs, run: RunFlow) -> None:
    @flow
    async def talking() -> int:
        log = current().log
        log.info("%d of %s", 1, "many")
        log.warning("does not %d fit", "x")
        try:
            dict[str, int]()["lost"]
        except KeyError:
            log.exception("it went %s", "wrong")
        log.critical("stop")
        return 1

    ended = await run(talking)
    lines = [(line.level, line.text) async for line in runs.log(ended.id)]
    assert [level for level, _ in lines] == ["info", "warning", "error", "critical"]
    assert lines[0][1] == "1 of many"
    assert lines[1][1] == "does not %d fit x"
    assert lines[2][1].startswith("it went wrong\nTraceback")
    assert "KeyError: 'lost'" in lines[2][1]


def refused(why: str) -> None:
    raise RuntimeError(why)


async def test_the_log_takes_what_a_standard_logger_takes(runs: Runs, run: RunFlow) -> None:
    @task
    def talks() -> int:
        log = current().log
        try:
            refused("refused: api_key=s3cr3t")
        except RuntimeError as error:
            log.warning("at %s", "hand", exc_info=True)
            log.exception("given", exc_info=error, stacklevel=2)
            log.info("as a tuple", exc_info=(type(error), error, error.__traceback__))
        log.warning("nothing at hand", exc_info=True)  # noqa: LOG014 - people write it
        log.info("more", extra={"page": 3, "token": "glpat-abcdefghijkl"})
        log("where", stack_info=True)
        log.log(logging.ERROR, "by %s", "number")
        log.log("warning", "by name")
        log.info("%(count)d of %(all)d", {"count": 1, "all": 2})
        return int(log.isEnabledFor(logging.DEBUG))

    @flow
    def talking() -> int:
        return talks()

    ended = await run(talking)
    assert (ended.status, ended.result) == (Status.COMPLETED, 1)
    lines = [(line.level, line.text) async for line in runs.log(ended.id)]
    assert [line.partition("\n")[0] for _, line in lines] == [
        *("at hand", "given", "as a tuple", "nothing at hand", "more (page=3, token=***)", "where"),
        *("by number", "by name", "1 of 2"),
    ]
    assert [level for level, _ in lines[-3:]] == ["error", "warning", "info"]
    for _, line in lines[:3]:
        assert line.endswith("RuntimeError: refused: api_key=***")
    assert "log(" in lines[5][1].rpartition("in talks")[2]


async def test_tracebacks_of_standard_logging_reach_the_log(runs: Runs, run: RunFlow) -> None:
    logger = logging.getLogger("library")

    @task
    async def talks() -> int:
        try:
            refused("password=hunter2 refused")
        except RuntimeError:
            logger.exception("it went %s", "wrong")
        return 1

    @flow
    async def talking() -> int:
        return await talks()

    ended = await run(talking)
    [line] = [line.text async for line in runs.log(ended.id)]
    assert line.startswith("it went wrong\nTraceback")
    assert line.endswith("RuntimeError: password=*** refused")
