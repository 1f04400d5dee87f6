"""What a run did: its items, its log."""

from typing import Any

import pytest

from tests.gateway.conftest import House
from tsuzuki import current, flow, task


async def all_items(house: House, run_id: str, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await house.get(f"/runs/{run_id}/items", cursor=cursor, **params)
        found += page["items"]
        cursor = page["next_cursor"]
    return found


async def test_items_are_filtered_by_status_error_and_step(house: House) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 10})
    await house.ended(run_id)
    found = await all_items(house, run_id, limit=3)
    assert sorted(item["key"] for item in found) == [str(number) for number in range(10)]
    assert {item["task"] for item in found} == {"picky"}
    failed = await all_items(house, run_id, status="FAILED", limit=1)
    assert sorted(item["key"] for item in failed) == ["0", "3", "6", "9"]
    assert failed[0]["error"].startswith("ValueError: three divides ")
    assert [item["key"] for item in await all_items(house, run_id, error="DIVIDES 6")] == ["6"]
    assert len(await all_items(house, run_id, step="picky")) == 10
    assert await all_items(house, run_id, step="other") == []
    assert len(await all_items(house, run_id, status="done")) == 6


async def test_what_was_tried_again_is_no_failure_any_more(house: House) -> None:
    await house.work()
    run_id = await house.submit("many", {"count": 4})
    await house.ended(run_id)
    await house.post(f"/runs/{run_id}/resume")
    await house.ended(run_id)
    failed = await all_items(house, run_id, status="failed")
    assert sorted((item["key"], item["attempt"]) for item in failed) == [("0", 2), ("3", 2)]


@pytest.mark.parametrize("params", [{"cursor": "?"}, {"cursor": "eyJwIjotMX0"}, {"limit": 0}, {"status": "odd"}])
async def test_items_asked_for_in_a_way_that_makes_no_sense(small: House, params: dict) -> None:
    await small.get(f"/runs/{await small.submit('nothing')}/items", 422, **params)


@task
async def talks(number: int) -> int:
    current().log(f"item {number}")
    return number


@flow
async def talk() -> None:
    for number in range(5):
        await talks(number)


async def test_log_lines_come_in_order_from_where_they_are_asked_for(house: House) -> None:
    await house.work([talk])
    run_id = await house.submit("talk")
    await house.ended(run_id)
    page = await house.get(f"/runs/{run_id}/logs", limit=3)
    assert [line["text"] for line in page["items"]] == ["item 0", "item 1", "item 2"]
    rest = await house.get(f"/runs/{run_id}/logs", after=page["next_after"])
    assert [line["text"] for line in rest["items"]] == ["item 3", "item 4"]
    assert (await house.get(f"/runs/{run_id}/logs", after=rest["next_after"]))["items"] == []
