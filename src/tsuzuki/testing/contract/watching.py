"""What a store promises to those who watch: they wake, they miss nothing, and they read the log in order."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tsuzuki import facts as f
from tsuzuki.backends import Backend, Line
from tsuzuki.testing import builders as b
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.stopwatch import Stopwatch

MOST_LINES = 20_000
SOON = 1.0
LONG = 30.0


class WatchingContract:
    """`changed` and `work` wake those who wait; the log is ordered, numbered and capped."""

    async def test_a_change_before_the_call_is_not_missed(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        await b.claim_of(backend, run.id)
        with Stopwatch() as watch:
            await backend.changed(run.id, 1, LONG)
        assert watch.fair < SOON

    async def test_a_watcher_wakes_when_the_run_moves(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await self.wakes(lambda: backend.changed(claim.run.id, 2, LONG), lambda: backend.append(claim, [b.item("a")]))

    async def test_a_watcher_wakes_when_somebody_asks(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await self.wakes(lambda: backend.changed(claim.run.id, 2, LONG), lambda: backend.ask(claim.run.id, b.cancel()))

    async def test_a_watcher_wakes_when_the_log_grows(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        await self.wakes(
            lambda: backend.changed(run.id, 1, LONG), lambda: backend.log(run.id, [Line(at=b.AT, text="hello")])
        )

    async def test_every_watcher_of_a_run_wakes(self, backend: Backend) -> None:
        claim = await b.claimed(backend)

        async def watch_thrice() -> None:
            await asyncio.gather(*(backend.changed(claim.run.id, 2, LONG) for _ in range(3)))

        await self.wakes(watch_thrice, lambda: backend.append(claim, [b.item("a")]))

    async def test_a_watch_without_a_change_ends_when_its_time_is_up(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        with Stopwatch() as watch:
            await backend.changed(run.id, 1, 0.1)
        assert watch.seconds >= 0.05
        assert watch.fair < SOON

    async def test_a_watcher_that_follows_sees_every_fact_once_and_in_order(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        seen: list[int] = []

        async def follow() -> None:
            while len(seen) < 102:
                await backend.changed(claim.run.id, seen[-1] if seen else 0, LONG)
                page = await backend.read(claim.run.id, after=seen[-1] if seen else 0)
                seen.extend(entry.position for entry in page)

        follower = asyncio.create_task(follow())
        for n in range(100):
            await backend.append(claim, [b.item(str(n))])
        await asyncio.wait_for(follower, LONG)
        assert seen == list(range(1, 103))

    async def test_a_worker_wakes_when_a_run_is_submitted(self, backend: Backend) -> None:
        await self.wakes(lambda: backend.work(LONG), lambda: b.submitted(backend))

    async def test_a_worker_wakes_when_a_run_is_handed_back(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await self.wakes(lambda: backend.work(LONG), lambda: backend.append(claim, [f.Released(at=b.AT)]))

    async def test_a_worker_wakes_when_somebody_asks(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await self.wakes(lambda: backend.work(LONG), lambda: backend.ask(claim.run.id, b.cancel()))

    async def test_a_worker_wakes_when_the_time_of_a_delayed_run_has_come(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [f.Released(at=b.AT, not_before=clock.now() + 0.3)])
        with Stopwatch() as watch:
            while not (claims := await backend.claim("worker", tags=("default",))):
                await backend.work(LONG)
        assert [given.run.id for given in claims] == [claim.run.id]
        assert watch.seconds > 0.2
        assert watch.fair < 0.3 + SOON

    async def test_a_wait_for_work_ends_when_its_time_is_up(self, backend: Backend) -> None:
        with Stopwatch() as watch:
            await backend.work(0.1)
        assert watch.fair < SOON

    async def wakes(self, wait: Callable[[], Awaitable[None]], change: Callable[[], Awaitable[object]]) -> None:
        """Checks that who waits wakes within a second of the change, and not before."""
        waiter = asyncio.ensure_future(_await(wait))
        await b.waiting(waiter)
        with Stopwatch() as watch:
            await change()
            await asyncio.wait_for(waiter, LONG)
        assert watch.fair < SOON

    async def test_log_lines_are_numbered_in_order(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        await backend.log(run.id, [Line(at=b.AT, text="one"), Line(at=b.AT - 5, text="two", level="error", key="k")])
        await backend.log(run.id, [Line(at=b.AT, text="three", step="s", name="fetch", logger="app")])
        lines = await backend.read_log(run.id)
        assert [(line.number, line.text) for line in lines] == [(1, "one"), (2, "two"), (3, "three")]
        assert (lines[1].level, lines[1].key, lines[1].at) == ("error", "k", b.AT - 5)
        assert (lines[2].step, lines[2].name, lines[2].logger) == ("s", "fetch", "app")

    async def test_a_log_line_keeps_the_position_it_was_written_after(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.append(claim, [b.item("a"), b.item("b")])
        await backend.log(claim.run.id, [Line(at=b.AT, text="after a", position=3)])
        assert [line.position for line in await backend.read_log(claim.run.id)] == [3]

    async def test_a_log_is_read_in_pages(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        await backend.log(run.id, [Line(at=b.AT, text=str(n)) for n in range(1, 6)])
        assert [line.number for line in await backend.read_log(run.id, limit=2)] == [1, 2]
        assert [line.number for line in await backend.read_log(run.id, after=2, limit=2)] == [3, 4]
        assert [line.number for line in await backend.read_log(run.id, after=5)] == []

    async def test_logs_of_runs_do_not_mix(self, backend: Backend) -> None:
        one, two = await b.submitted(backend), await b.submitted(backend)
        await backend.log(one.id, [Line(at=b.AT, text="one")])
        await backend.log(two.id, [Line(at=b.AT, text="two")])
        assert [(line.number, line.text) for line in await backend.read_log(two.id)] == [(1, "two")]

    async def test_the_oldest_log_lines_beyond_the_cap_go(self, backend: Backend) -> None:
        run = await b.submitted(backend)
        lines = [Line(at=b.AT, text=f"line {n}") for n in range(1, 1001)]
        for _ in range(21):
            await backend.log(run.id, lines)
        kept = await backend.read_log(run.id, limit=30_000)
        assert len(kept) <= MOST_LINES
        assert [line.number for line in kept] == list(range(21_001 - len(kept), 21_001))
        assert len(kept) >= MOST_LINES // 2, "the cap removes far more than it must"

    async def test_progress_is_shown_on_the_row_and_not_in_the_journal(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.log(claim.run.id, [], progress=b'[{"step":"s","done":3}]')
        assert bytes((await b.row(backend, claim.run.id)).progress) == b'[{"step":"s","done":3}]'
        assert await b.kinds(backend, claim.run.id) == ["Submitted", "Claimed"]

    async def test_log_lines_without_progress_leave_it_as_it_was(self, backend: Backend) -> None:
        claim = await b.claimed(backend)
        await backend.log(claim.run.id, [], progress=b"[1]")
        await backend.log(claim.run.id, [Line(at=b.AT, text="hello")])
        await backend.append(claim, [b.item("a")])
        assert bytes((await b.row(backend, claim.run.id)).progress) == b"[1]"

    @pytest.mark.parametrize("text", ["続き", "a\nb\0c", "x" * 100_000])
    async def test_a_log_line_may_hold_any_text(self, backend: Backend, text: str) -> None:
        run = await b.submitted(backend)
        await backend.log(run.id, [Line(at=b.AT, text=text)])
        assert [line.text for line in await backend.read_log(run.id)] == [text]


async def _await(wait: Callable[[], Awaitable[None]]) -> None:
    await wait()
