"""What stays open: snapshots of a run as it changes, and its journal."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from typing import Any

import httpx2
import pytest
from starlette.types import Message

from tests.gateway.conftest import House, Serve
from tsuzuki.backends import Entry
from tsuzuki.gateway import scenes, snapshots, watch
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.session import Session
from tsuzuki.lifecycle import Run


async def all_closed(house: House) -> None:
    async with asyncio.timeout(60):
        while house.app.state.gateway.streams.open:
            await asyncio.sleep(0.01)


async def test_a_watcher_sees_the_run_as_it_is_and_every_change(house: House) -> None:
    run_id = await house.submit("sums")
    seen = []
    async with aclosing(house.events(f"/runs/{run_id}/watch")) as events:
        async for event in events:
            assert event.data["run_id"] == run_id
            assert event.data["ts"] > 0
            if event.name == "heartbeat":
                assert set(event.data) == {"run_id", "ts"}
                continue
            seen.append(event.data["snapshot"])
            if len(seen) == 1:
                assert (event.name, seen[0]["status"]) == ("snapshot", "PENDING")
                await house.work()
            if seen[-1]["status"] == "COMPLETED":
                break
    times = [snapshot["updated_at"] for snapshot in seen]
    assert times == sorted(set(times))
    assert seen[-1]["tasks"] == {"load": "SUCCEEDED", "add": "SUCCEEDED"}
    assert "task_records" not in seen[-1]


async def test_a_watch_ends_at_its_time_with_the_last_snapshot_and_heartbeats(house: House) -> None:
    await house.work()
    run_id = await house.submit("nothing")
    await house.ended(run_id)
    names = [event.name async for event in house.events(f"/runs/{run_id}/watch", timeout_sec=4, include="all")]
    assert names == ["snapshot", "heartbeat"]


async def test_since_leaves_older_snapshots_out(house: House) -> None:
    run_id = await house.submit("nothing")
    updated_at = (await house.get(f"/runs/{run_id}"))["updated_at"]
    path = f"/runs/{run_id}/watch"
    assert [e.name async for e in house.events(path, timeout_sec=1, since=updated_at)] == ["snapshot"]
    assert [e.name async for e in house.events(path, timeout_sec=1, since=updated_at + 1)] == []


@pytest.mark.parametrize("params", [{"timeout_sec": 0}, {"timeout_sec": 601}, {"since": "x"}, {"since": "nan"}])
async def test_a_watch_that_makes_no_sense_is_refused(small: House, params: dict) -> None:
    await small.get(f"/runs/{await small.submit('nothing')}/watch", 422, **params)


async def test_lines_end_in_lf_and_the_name_comes_before_the_data(house: House) -> None:
    run_id = await house.submit("nothing")
    async with house.client.stream("GET", f"/runs/{run_id}/watch", params={"timeout_sec": 1}) as answer:
        assert answer.headers["cache-control"] == "no-cache"
        text = (await answer.aread()).decode()
    assert "\r" not in text
    assert text.startswith("event: snapshot\ndata: {")
    assert text.endswith("}\n\n")


async def test_500_watchers_of_one_run_see_a_change_together(house: House) -> None:
    run_id = await house.submit("nothing")
    ready = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    async def watch(client: httpx2.AsyncClient) -> float:
        async with client.stream("GET", f"/runs/{run_id}/watch") as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if '"PENDING"' in line:
                    ready.release()
                if '"CANCELLED"' in line:
                    return loop.time()
        raise AssertionError("the change did not come")

    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=house.url, timeout=60, limits=limits) as client:
        watchers = [asyncio.create_task(watch(client)) for _ in range(500)]
        for _ in watchers:
            await ready.acquire()
        await house.post(f"/runs/{run_id}/cancel")
        await asyncio.gather(*watchers)
    await all_closed(house)


async def changed(house: House, run_id: str, done: int) -> Run:
    """Lets a run's row change, and reads it."""
    await house.runs.backend.log(run_id, [], b'{"done":%d}' % done)
    return await house.runs.get(run_id)


async def test_who_comes_while_a_run_changes_does_not_wake_the_others_each_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenes, "PACE", 3600.0)  # nothing but who comes brings news
    run_id = await house.submit("nothing")
    watching = house.app.state.gateway.scenes.watching
    async with watching(await house.runs.get(run_id)) as scene, AsyncExitStack() as others:
        for number in range(50):
            await others.enter_async_context(watching(await changed(house, run_id, number)))
        assert scene.watchers == 51
        assert scene.version <= 2


async def test_who_comes_after_a_change_sees_it_first(house: House) -> None:
    run_id = await house.submit("nothing")
    async with aclosing(house.events(f"/runs/{run_id}/watch")) as others:
        await anext(others)
        for number in range(5):
            row = await changed(house, run_id, number)
            async with aclosing(house.events(f"/runs/{run_id}/watch")) as events:
                assert (await anext(events)).data["snapshot"]["updated_at"] >= row.updated_at


async def test_a_snapshot_that_is_old_when_it_is_made_is_made_once_for_all_who_wait(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await small.submit("nothing")
    snapshots, row, made = small.app.state.gateway.snapshots, await small.runs.get(run_id), 0
    document = snapshots.document
    async with small.app.state.gateway.scenes.watching(row) as scene:

        async def meanwhile_changed(row: Run, **options: Any) -> dict[str, Any]:
            nonlocal made
            made += 1
            shown: dict[str, Any] = await document(row, **options)
            scene.show(await changed(small, run_id, made))
            return shown

        monkeypatch.setattr(snapshots, "document", meanwhile_changed)
        pictures = await asyncio.gather(*(scene.picture(scene.version, records=False) for _ in range(50)))
    assert made == 1
    assert {picture.version for picture in pictures} == {1}


async def test_many_who_look_at_a_long_journal_read_it_once_and_let_others_in(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_PAGE", 10)
    await house.work()
    run_id = await house.submit("many", {"count": 100})
    await house.ended(run_id)
    gateway, row = house.app.state.gateway, await house.runs.get(run_id)
    gateway.snapshots.forget(run_id)
    facts, read, turns = gateway.overview.facts, 0, 0

    async def counted(run_id: str, **options: Any) -> list[Entry]:
        nonlocal read
        entries: list[Entry] = await facts(run_id, **options)
        read += len(entries)
        return entries

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    monkeypatch.setattr(gateway.overview, "facts", counted)
    beside = asyncio.create_task(others())
    folds = await asyncio.gather(*(gateway.snapshots.fold(row) for _ in range(50)))
    beside.cancel()
    assert {fold.position for fold in folds} == {row.position}
    assert read == row.position
    assert turns >= row.position // 10


async def test_who_watches_a_run_whose_journal_is_too_long_for_one_look_sees_its_end(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 100})
    ended = await house.ended(run_id)
    monkeypatch.setattr(snapshots, "_PAGE", 10)
    monkeypatch.setattr(snapshots, "MOST_PAGES", 1)
    house.app.state.gateway.snapshots.forget(run_id)
    shown: dict[str, Any] = {}
    async with aclosing(house.events(f"/runs/{run_id}/watch", timeout_sec=30)) as events:
        async for event in events:
            shown = event.data.get("snapshot", shown)
            if shown["end_time"] is not None:
                break
    assert (shown["tasks"], shown["end_time"]) == (ended["tasks"], ended["end_time"])


async def test_a_long_journal_is_sent_with_turns_for_others(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LUMP", 1)  # a fact at a time, behind the first
    await small.work()
    run_id = await small.submit("many", {"count": 100})
    await small.ended(run_id)
    sent, turns = 0, 0

    async def taken_at_once(message: Message) -> None:
        nonlocal sent
        sent += bool(message.get("body"))

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nobody leaves")

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    answer = await watch.events(run_id, Session(small.app.state.gateway))
    await answer({"type": "http"}, never, taken_at_once)
    beside.cancel()
    assert sent > 80
    assert turns >= sent


async def test_the_journal_comes_with_ids_and_an_end(house: House) -> None:
    await house.work()
    run_id = await house.submit("fails", {"number": 3})
    events = [event async for event in house.events(f"/runs/{run_id}/events")]
    facts = [event for event in events if event.name == "fact"]
    assert [int(event.number or 0) for event in facts] == list(range(1, len(facts) + 1))
    assert [event.data["position"] for event in facts] == list(range(1, len(facts) + 1))
    kinds = [event.data["kind"] for event in facts]
    assert (kinds[0], kinds[1], kinds[-1]) == ("Submitted", "Claimed", "RunFailed")
    assert events[-1].name == "end"
    assert events[-1].data == {"run_id": run_id, "status": "FAILED", "position": len(facts)}
    late = [e async for e in house.events(f"/runs/{run_id}/events", headers={"Last-Event-ID": "2"})]
    assert [e.number for e in late if e.name == "fact"] == [e.number for e in facts[2:]]
    after = [e async for e in house.events(f"/runs/{run_id}/events", after=len(facts))]
    assert [e.name for e in after] == ["end"]
    beyond = [e async for e in house.events(f"/runs/{run_id}/events", headers={"Last-Event-ID": "99999"})]
    assert [(e.name, e.data["position"]) for e in beyond] == [("end", len(facts))]


async def test_a_silent_journal_has_a_heartbeat(house: House) -> None:
    run_id = await house.submit("nothing")
    names = []
    async with aclosing(house.events(f"/runs/{run_id}/events")) as events:
        async for event in events:
            names.append(event.name)
            if event.name == "heartbeat":
                break
    assert names == ["fact", "heartbeat"]


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "٣", "9" * 30])
async def test_a_last_event_id_that_is_no_position_is_refused(small: House, last: str) -> None:
    run_id = await small.submit("nothing")
    answer = await small.client.get(f"/runs/{run_id}/events", headers={b"Last-Event-ID": last.encode()})
    assert answer.status_code == 422


async def test_streams_beyond_the_limit_are_refused_and_places_come_back(serve: Serve) -> None:
    house = await serve(Options(max_streams=3))
    run_id = await house.submit("nothing")
    path = f"/runs/{run_id}/watch"
    async with (
        house.client.stream("GET", path),
        house.client.stream("GET", path),
        house.client.stream("GET", f"/runs/{run_id}/events"),
    ):
        answer = await house.client.get(path)
        assert answer.status_code == 503
        assert answer.json()["error_id"] == "ERR-TSUZUKI-0122"
        assert answer.headers["retry-after"]
        assert (await house.get("/health"))["status"] == "ok"
    await all_closed(house)
    assert [event.name async for event in house.events(path, timeout_sec=1)] == ["snapshot"]
