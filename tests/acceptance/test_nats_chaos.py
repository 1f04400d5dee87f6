"""Two workers and their server are killed again and again, and the run ends as if nothing had happened."""

import asyncio
import contextlib
import json
import random
import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.acceptance.flows.nested import library
from tests.acceptance.flows.pipelines import pipelines
from tests.acceptance.flows.thousand import thousand
from tests.acceptance.invariants import Named, by_key, calls_in, check_disturbed, in_a_library, in_a_pipeline
from tests.acceptance.processes import Child, eventually, finished, started, until
from tests.acceptance.watched import ended
from tests.nats_server import NatsServer
from tsuzuki import Run, Runs
from tsuzuki.errors import StoreError
from tsuzuki.flow import Flow

LINE = 14
"""About how many bytes the note of a call has."""


async def test_chaos_on_nats_does_no_harm_to_a_thousand_items(
    tmp_path: Path, server: NatsServer, chaos_kills: int
) -> None:
    kills = max(20, chaos_kills)
    await _chaos(
        tmp_path, server, thousand, {"items": max(1000, 50 * kills)}, kills=kills, concurrency=16, named=by_key
    )


async def test_chaos_on_nats_does_no_harm_to_nested_maps(tmp_path: Path, server: NatsServer, chaos_kills: int) -> None:
    kills = max(5, chaos_kills // 3)
    await _chaos(tmp_path, server, library, {"books": 8 * kills}, kills=kills, concurrency=8 * 4, named=in_a_library)


async def test_chaos_on_nats_does_no_harm_to_gathered_pipelines_in_any_order(
    tmp_path: Path, server: NatsServer, chaos_kills: int
) -> None:
    kills = max(5, chaos_kills // 3)
    count = max(40, 10 * kills)
    await _chaos(tmp_path, server, pipelines, {"count": count}, kills=kills, concurrency=count * 2, named=in_a_pipeline)


class Pair:
    """Two workers on a server; whoever is killed is started again."""

    def __init__(self, server: NatsServer, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._stack = contextlib.ExitStack()
        self._workers: list[Child] = []

    def __enter__(self) -> Self:
        self._workers = [self._start(), self._start()]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> Child:
        return self._stack.enter_context(started("work", "--backend", self._server.url, folder=self._folder))

    async def strike(self) -> None:
        """Kills the server, a worker, or both workers, and starts them again; at times something freezes before."""
        if random.random() < 0.1:
            await self._freeze()
        if random.random() < 0.3:
            self._server.kill()
            await asyncio.sleep(random.uniform(0, 0.3))
            self._server.start()
            return
        for number in random.choice([[0], [1], [0], [1], [0, 1]]):
            self._workers[number].kill()
            self._workers[number] = self._start()

    async def _freeze(self) -> None:
        """Lets the server or a worker stand still for a moment."""
        victim = random.choice([self._server.signal, *(worker.send for worker in self._workers)])
        victim(signal.SIGSTOP)
        await asyncio.sleep(random.uniform(0, 1))
        victim(signal.SIGCONT)


async def _chaos(
    folder: Path,
    server: NatsServer,
    flow: Flow[..., Any],
    params: dict[str, int],
    *,
    kills: int,
    concurrency: int,
    named: Named,
) -> None:
    disturbed, undisturbed = folder / "disturbed", folder / "undisturbed"
    disturbed.mkdir()
    undisturbed.mkdir()
    script = {"library": "nested"}.get(flow.name, flow.name)
    expected = json.loads(finished(script, *params.values(), folder=undisturbed))
    calls = len(calls_in(undisturbed))
    _limit(disturbed, 0)
    async with Runs.open(server.url) as runs:
        run = await runs.submit(flow, params)
        with Pair(server, disturbed) as pair:
            for left in range(kills, 0, -1):
                await _moment(runs, run, disturbed, calls, left)
                await pair.strike()
            assert not (await _row(runs, run)).status.terminal, "it ended before it was disturbed often enough"
            (disturbed / "limit").unlink()
            row = await ended(runs, run)
        assert await runs.result(run.id) == expected
        await check_disturbed(runs, row, disturbed, undisturbed, at_most=kills * concurrency, named=named)


async def _moment(runs: Runs, run: Run, folder: Path, calls: int, left: int) -> None:
    """Waits for a random moment: after some calls, after something was recorded, or while the killed come back.

    Until then the workers get no further than what they may do before the next moment.
    """
    before = (await _row(runs, run)).position
    share = max(1.0, (calls - len({call for _, call in calls_in(folder)})) / (left + 1))
    made = _size(folder)
    _limit(folder, made + share * LINE)
    moment = random.random()
    if moment < 0.2:
        await asyncio.sleep(random.uniform(0, 0.3))
    elif moment < 0.6:
        enough = made + random.uniform(0, share) * LINE
        await until(lambda: _size(folder) >= enough, "there is some progress")
    else:
        await eventually(lambda: _further(runs, run, before), "something is recorded")


async def _further(runs: Runs, run: Run, before: int) -> bool:
    """Tells whether an outcome was recorded since, by whoever holds the run now."""
    row = await _row(runs, run)
    return row.position > before and not row.barren


async def _row(runs: Runs, run: Run) -> Run:
    """Reads a row, also while its server comes back."""
    while True:
        with contextlib.suppress(StoreError):
            return await runs.get(run.id)
        await asyncio.sleep(0.01)


def _limit(folder: Path, size: float) -> None:
    (folder / "limit").write_text(str(int(size)))


def _size(folder: Path) -> int:
    file = folder / "calls"
    return file.stat().st_size if file.exists() else 0
