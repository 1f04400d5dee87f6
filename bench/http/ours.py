"""The works over HTTP: many short runs, one at a time, pages, watchers, and what is used while nothing happens."""

import asyncio
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, Final

import msgspec
import nats

from bench import pages
from bench.http.asking import Lane, lane
from bench.http.parts import Part, gateway, started, worker
from bench.ours import address
from bench.process import Figures
from tsuzuki import Runs
from tsuzuki import facts as f
from tsuzuki.backends.nats import frames
from tsuzuki.backends.nats.options import Options
from tsuzuki.backends.nats.topology import Topology

CHANGES: Final = 6
LOOK: Final = 0.02
ACTIVE: Final = "/runs?status=PENDING,RUNNING,CANCELLING&limit=1"
LISTS: Final = ("/runs", "/runs?cursor=&limit=50", "/runs?status=FAILED", "/runs?flow=nightly&tag=default")


def runs_executed(folder: Path, count: int, lanes: int) -> Figures:
    """No-op runs, submitted by so many lanes, from the first request until all have ended."""
    with gateway(folder) as (part, port), worker(folder) as working:
        asyncio.run(_executed(port, lanes * 4, lanes))  # what is imported on first use is not the work
        before = part.cpu(), working.cpu(), process_time()
        seconds, submitted = asyncio.run(_executed(port, count, lanes))
        after = part.cpu(), working.cpu(), process_time()
        used = [(late - early) / count * 1e6 for early, late in zip(before, after, strict=True)]
        return {
            "rate": count / seconds,
            "submitted": count / submitted,
            "gateway_us": used[0],
            "worker_us": used[1],
            "client_us": used[2],
            "gateway_mb": part.resident(),
            "worker_mb": working.resident(),
        }


async def _executed(port: int, count: int, lanes: int) -> tuple[float, float]:
    numbers = iter(range(count))

    async def submit() -> None:
        async with lane(port) as asking:
            for number in numbers:
                body = b'{"flow_name": "no_op_flow", "params": {"number": %d}}' % number
                await asking.ask("POST", "/runs", body)

    began = perf_counter()
    await asyncio.gather(*(submit() for _ in range(lanes)))
    submitted = perf_counter() - began
    async with lane(port) as looking:
        while await looking.json("GET", ACTIVE):
            await asyncio.sleep(LOOK)
        seconds = perf_counter() - began
        assert await _completed(looking, count) >= count, "some runs did not complete"
        return seconds, submitted


async def _completed(looking: Lane, count: int) -> int:
    """Counts the runs that have completed, up to so many."""
    seen, cursor = 0, ""
    while seen < count and cursor is not None:
        page = await looking.json("GET", f"/runs?status=COMPLETED&limit=200&cursor={cursor}")
        seen, cursor = seen + len(page["items"]), page["next_cursor"]
    return seen


def latency(folder: Path, count: int) -> Figures:
    """The time from sending the request to the first line of the flow, in a worker that was idle."""
    with gateway(folder) as (_, port), worker(folder):
        times = asyncio.run(_latencies(port, count))
    return {"p50": median(times) * 1000, "p99": quantiles(times, n=100)[98] * 1000}


async def _latencies(port: int, count: int) -> list[float]:
    times = []
    async with lane(port) as asking:
        for _ in range(count + 5):
            body = {"flow_name": "first_line", "params": {"called": perf_counter()}}
            run_id = (await asking.json("POST", "/runs", body))["run_id"]
            while (run := await asking.json("GET", f"/runs/{run_id}"))["status"] != "COMPLETED":
                await asyncio.sleep(LOOK)
            times.append(float(run["result"]))
    return times[5:]  # the first ones pay for what is imported on first use


def lists(folder: Path, count: int, times: int) -> Figures:
    """Pages of 50 out of many runs, one request after the other."""
    asyncio.run(_filled(folder, count))
    with gateway(folder) as (part, port):
        began, cpu = perf_counter(), part.cpu()
        asyncio.run(_read(port, 1))
        first, cpu = perf_counter() - began, part.cpu()
        took = asyncio.run(_read(port, times))
        figures = {"first_s": first, "cpu_ms": (part.cpu() - cpu) / (times * len(LISTS)) * 1000}
        figures |= {"p50": median(took) * 1000, "p99": quantiles(took, n=100)[98] * 1000}
        return {**figures, "gateway_mb": part.resident()}


async def _read(port: int, times: int) -> list[float]:
    took = []
    async with lane(port) as asking:
        for _ in range(times):
            for path in LISTS:
                began = perf_counter()
                found = await asking.json("GET", path)
                took.append(perf_counter() - began)
                assert len(found["items"] if isinstance(found, dict) else found) == pages.PAGE
    return took


async def _filled(folder: Path, count: int) -> None:
    """Fills a store with runs as they are after a year of use: one by one through the port it would take minutes."""
    if not (folder / "address").exists():
        await (await pages.build(folder, count)).close()
        return
    async with Runs.open(address(folder)):
        pass  # its streams are there now
    names, dice = Topology(Options(servers=())), random.Random(7)
    connection = await nats.connect(address(folder).partition("?")[0])
    for number in range(1, count + 1):
        run = msgspec.structs.replace(pages.made(number, dice), number=number, position=1)
        fact = f.Submitted(at=run.updated_at, flow=run.flow, params=run.params, tag=run.tag)
        frame = frames.Frame(f"{number}", 1, 0, frames.encode_row(run), [f.encode(fact)])
        await connection.publish(names.chain(run.id), frames.encode(frame))
        if number % 1000 == 0:
            await connection.flush(60)
    await connection.flush(60)
    await connection.close()


def watchers(folder: Path, count: int) -> Figures:
    """Many who watch one run: how long after a request to change it the last of them knows."""
    with gateway(folder) as (part, port):
        return asyncio.run(_watched(port, count, part)) | {"gateway_mb": part.resident()}


async def _watched(port: int, count: int, part: Part) -> Figures:
    async with AsyncExitStack() as stack:
        asking = await stack.enter_async_context(lane(port))
        body = {"flow_name": "nobody_knows_it", "tag": "nobody"}
        run_id = (await asking.json("POST", "/runs", body))["run_id"]
        watching = [await stack.enter_async_context(lane(port)) for _ in range(count)]
        for each in watching:
            each.send("GET", f"/runs/{run_id}/watch?timeout_sec=600")
        await asyncio.gather(*(_seen(each, b'"status":"PENDING"') for each in watching))
        last, middle, cpu = [], [], part.cpu()
        for number in range(CHANGES):
            await asyncio.sleep(0.3)
            verb, status = ("resume", b"PENDING") if number % 2 else ("cancel", b"CANCELLED")
            looks = [asyncio.create_task(_seen(each, b'"status":"%s"' % status)) for each in watching]
            began = perf_counter()
            await asking.ask("POST", f"/runs/{run_id}/{verb}")
            seen = [await look - began for look in looks]
            last.append(max(seen) * 1000)
            middle.append(median(seen) * 1000)
        used = (part.cpu() - cpu) / CHANGES * 1000
        return {"last": max(last), "last_p50": median(last), "p50": median(middle), "cpu_ms": used}


async def _seen(each: Lane, word: bytes) -> float:
    """Gives when a watcher has read of it."""
    async with asyncio.timeout(60):
        while word not in await each.reader.readline():
            pass
        return perf_counter()


def idle(folder: Path, seconds: int) -> Figures:
    """What gateway and worker use while nothing happens, as `tsuzuki up` starts them."""
    with started(folder, "up", "--port", "0", "--flows", "bench/http/flows.py") as up:
        up.waited("Tsuzuki is up")
        up.waited("takes runs")
        time.sleep(2)
        before = up.cpu()
        time.sleep(seconds)
        used = (up.cpu() - before) / seconds
        sizes: dict[str, Any] = {}
        for pid in up.family[1:]:
            text = Path(f"/proc/{pid}/cmdline").read_text()
            memory = int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
            sizes |= {f"{name}_mb": memory for name in ("serve", "worker") if f"\0{name}\0" in text}
        return {"cpu": used, **sizes, "up_mb": up.resident()}
