"""A worker of your own program: it takes a run when you ask it to, by name, from whatever you resolve names with."""

from uuid import uuid4

import msgspec
import pytest

from tsuzuki import Runs, Status, Worker, flow
from tsuzuki.backends import WorkerState


@flow
async def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def find(name: str) -> object:
    if name == "broken":
        raise OSError("the catalogue is gone")
    return {"double": double, "odd": "not a flow"}[name]


async def connected(runs: Runs, **more: object) -> Worker:
    return await Worker.connect(runs.backend, worker_id=f"w-{uuid4()}", **more)  # type: ignore[arg-type] # as a user would


async def test_it_executes_one_run_and_says_which(runs: Runs) -> None:
    worker = await connected(runs, flow_resolver=find)
    try:
        assert await worker.run_once(timeout=0.01) is None
        run = await runs.submit("double", {"number": 4})
        assert await worker.run_once(timeout=5) == run.id
        assert await runs.result(run.id) == 8
        assert await worker.run_once(timeout=0) is None
    finally:
        await worker.close()
    (record,) = await runs.backend.workers()
    assert record.state == WorkerState.STOPPED_GRACEFUL


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("unknown", "flow_not_found", "flow_not_found: "),
        ("broken", "execution_error", "the catalogue is gone"),
        ("odd", "execution_error", "is not a flow"),
    ],
)
async def test_a_name_that_does_not_resolve_fails_its_run(runs: Runs, name: str, reason: str, words: str) -> None:
    worker = await connected(runs, flow_resolver=find)
    run = await runs.submit(name, {})
    assert await worker.run_once(timeout=5) == run.id
    await worker.close()
    row = await runs.get(run.id)
    assert row.status is Status.FAILED
    assert row.error is not None
    assert words in row.error.message
    (letter,) = await runs.backend.dead_letters()
    assert letter.reason == reason


async def test_it_takes_runs_of_any_of_its_tags_and_of_no_other(runs: Runs) -> None:
    worker = await connected(runs, flows=[double], tags=["gpu", "eu"])
    other = await runs.submit(double, {"number": 1})
    first = await runs.submit(double, {"number": 1}, tag="eu")
    second = await runs.submit(double, {"number": 1}, tag="gpu")
    taken = {await worker.run_once(timeout=5), await worker.run_once(timeout=5)}
    assert taken == {first.id, second.id}
    assert await worker.run_once(timeout=0) is None
    await worker.close()
    assert (await runs.get(other.id)).status is Status.PENDING


@pytest.mark.parametrize("tag", ["a.b", "", "é", "a b"])
async def test_a_tag_that_is_none_is_a_value_error(runs: Runs, tag: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        await connected(runs, flows=[double], tags=[tag])


async def test_its_flows_are_published_with_their_schemas(runs: Runs) -> None:
    worker = await connected(runs, flows=[double])
    await worker.close()
    ((name, body),) = await runs.backend.records("flow")
    told = msgspec.json.decode(body)
    assert (name, told["name"], told["doc"], told["tag"]) == ("double", "double", "Doubles a number.", "default")
    assert told["params"]["properties"]["number"]["type"] == "integer"
    assert told["params"]["required"] == ["number"]


async def test_it_opens_a_store_by_its_address_and_closes_it(tmp_path: object) -> None:
    url = f"sqlite:{tmp_path}/own.db"
    worker = await Worker.connect(url, flows=[double])
    async with Runs.open(url) as runs:
        run = await runs.submit(double, {"number": 2})
        assert await worker.run_once(timeout=5) == run.id
    await worker.close()
