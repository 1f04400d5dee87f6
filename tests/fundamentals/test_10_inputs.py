"""What a step or an item was given can be looked at afterwards, in few bytes and without secrets."""

import json
from typing import Any

import pytest

from tests.fundamentals.conftest import RunFlow
from tsuzuki import Runs, flow, task
from tsuzuki.script import StartOptions

SECRET = "hunter2-planted"  # noqa: S105 - it is looked for afterwards


@task
async def add(left: int, right: int = 0, *more: int) -> int:
    return left + right + sum(more)


@task
async def login(user: str, password: str, note: str = "") -> int:
    return await add(len(user), right=len(password))


@task
async def visit(page: str) -> int:
    return await add(len(page))


@task
async def read(document: dict[str, Any], lang: str, broken: bool = False) -> int:
    document["text"] = "changed by the task"
    if broken:
        raise ValueError("it cannot be read")
    return 1


@flow
async def all_kinds(broken: bool = False) -> int:
    await add(1, 2, 3, 4)
    await login("anna", SECRET, note=f"Authorization: Bearer {SECRET}")
    await visit.map(["top", "7"])
    await visit.keyed("explicit")("long " * 1000)
    documents = [{"id": 1, "text": "short"}, {"id": 2, "text": "long " * 1000}]
    found = await read.map(documents, key=lambda one: one["id"], lang="ja", broken=broken, on_error="collect")
    return len(found.succeeded)


async def seen(runs: Runs, run_id: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    async for item in runs.items(run_id):
        found.setdefault((item["task"], item["key"]), []).append(item)
    return found


async def test_what_a_call_was_given_is_kept_by_the_names_of_its_parameters(runs: Runs, run: RunFlow) -> None:
    ended = await run(all_kinds, broken=True)
    found = await seen(runs, ended.id)
    sums = [item["inputs"] for item in found["add", ""]]
    assert {"left": 1, "right": 2, "more": [3, 4]} in sums
    assert {"left": 4, "right": len(SECRET)} in sums  # a step of a step
    assert {"left": 3} in sums  # and of an item
    assert [item["inputs"] for item in found["visit", "top"] + found["visit", "7"]] == [{"page": "top"}, {"page": "7"}]
    [short], [long] = found["read", "1"], found["read", "2"]
    assert short["inputs"] == {"document": {"id": 1, "text": "short"}, "lang": "ja", "broken": True}
    assert short["error"] == "ValueError: it cannot be read"
    [explicit] = found["visit", "explicit"]
    for cut, text in (long, long["inputs"]["document"]["text"]), (explicit, explicit["inputs"]["page"]):
        assert cut["inputs_truncated"]
        assert text.startswith("long long")
        assert text.endswith("…")
        assert len(json.dumps(cut["inputs"])) < 600


async def test_a_secret_among_the_inputs_is_nowhere_in_the_journal(runs: Runs, run: RunFlow) -> None:
    ended = await run(all_kinds)
    [login] = (await seen(runs, ended.id))["login", ""]
    assert login["inputs"] == {"user": "anna", "password": "***", "note": "Authorization: Bearer ***"}
    exported = [json.dumps(record) async for record in runs.export(ended.id)]
    assert sum('"inputs"' in record for record in exported) >= 6
    assert not any(SECRET in record for record in exported)


async def test_a_run_that_continues_another_one_takes_the_inputs_with_the_results(runs: Runs, run: RunFlow) -> None:
    first = await run(all_kinds)
    second = await run(all_kinds, options=StartOptions(continues=first.id))
    before, after = await seen(runs, first.id), await seen(runs, second.id)
    for name in (("read", "1"), ("read", "2"), ("visit", "top")):
        assert after[name][0]["kind"] == "ItemSkipped"
        assert after[name][0]["inputs"] == before[name][0]["inputs"] is not None


async def test_nothing_is_kept_where_that_is_set(runs: Runs, run: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_INPUTS_KEPT", "0")
    ended = await run(all_kinds)
    assert {item["inputs"] is None for items in (await seen(runs, ended.id)).values() for item in items} == {True}
