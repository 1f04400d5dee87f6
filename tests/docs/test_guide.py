"""Every piece of code in docs/guide.md does what the page says."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs import fragments
from tests.docs.fragments import body, run, saved, the
from tsuzuki import Runs, Status, flow, task
from tsuzuki.testing import FakeClock, run_flow

PAGE = "docs/guide.md"
TRIED = ["# count.py", "on_error=", "hopeless", "continues=", "current()", "Worker("]


@dataclass
class Request:
    id: int


def test_every_piece_is_tried_here() -> None:
    assert [block for block in fragments.blocks(PAGE) if not any(word in block for word in TRIED)] == []


def test_the_first_flow_counts_and_a_later_run_continues_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope = run(the(PAGE, "# count.py"), {"__name__": "count"})
    first = scope["count"].run(paths=saved(tmp_path, "one two three", "a.txt", "b.txt"))
    assert (first.result, first.status, first.done) == (6, Status.COMPLETED, 2)
    more = {
        "count": scope["count"],
        "run_id": first.id,
        "more_paths": saved(tmp_path, "a b c", "a.txt", "b.txt", "c.txt"),
    }
    second = run(f"ended = {the(PAGE, 'continues=')}", more)["ended"]
    assert (second.result, second.done, second.skipped) == (9, 1, 2)


async def test_maps_take_these_options() -> None:
    found: dict[str, Any] = {}

    @task
    async def fetch(request: Request | str, language: str = "") -> str:
        if request == Request(2):
            raise ValueError("no such page")
        return f"{request} in {language}"

    @flow
    async def maps() -> None:
        scope = {"fetch": fetch, "requests": [Request(1), Request(2)], "urls": ["a", "b"], "found": found}
        await body(f"{the(PAGE, 'on_error=')}\nfound.update(pages=pages, page=page)", scope)()

    ended = await run_flow(maps)
    assert ended.status is Status.COMPLETED, ended.error
    assert found["pages"].succeeded == ["Request(id=1) in en"]
    assert [failure.error_type for failure in found["pages"].failed] == ["ValueError"]
    assert found["page"] == "b in "


@pytest.mark.parametrize(("hopeless", "status"), [(True, Status.FAILED), (False, Status.COMPLETED)])
async def test_a_task_may_say_not_now_and_never(hopeless: bool, status: Status) -> None:
    busy = [True, False]
    scope = {"busy": lambda: busy.pop(0) if busy else False, "hopeless": lambda: hopeless}
    ask = run(the(PAGE, "hopeless"), scope)["ask"]

    @flow
    async def asks() -> None:
        await ask("why?")

    ended = await run_flow(asks, clock=FakeClock(autoadvance=True))
    assert (ended.status, busy) == (status, [])


async def test_a_task_logs_tells_its_progress_and_keeps_files() -> None:
    inside = body(the(PAGE, "current()"), {"html": b"<p>", "partial": None}, sync=True)

    @task
    def look() -> None:
        inside()

    @flow
    def looks() -> None:
        look()

    ended = await run_flow(looks)
    assert ended.status is Status.COMPLETED, ended.error


async def test_a_worker_works_off_what_was_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @flow
    async def crawl(site: str, urls: list[str]) -> int:
        return len(urls)

    working = asyncio.create_task(body(the(PAGE, "Worker("), {"crawl": crawl, "urls": ["a", "b"]})())
    async with asyncio.timeout(60), Runs.open("sqlite:.tsuzuki/tsuzuki.db") as runs:
        while not (rows := await runs.list()):
            await asyncio.sleep(0.01)
        assert (await runs.wait(rows[0].id)).status is Status.COMPLETED
        assert await runs.result(rows[0].id) == 2
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
