"""The store that breaks where a test says, and is otherwise the store behind it."""

from pathlib import Path

import pytest

from tsuzuki.backends import Backend, Query
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreUnavailable
from tsuzuki.testing import BackendContract, Crash, FaultyBackend
from tsuzuki.testing import builders as b


class TestFaultyBackendThatNeverFails(BackendContract):
    async def open_backend(self, clock: Clock, folder: Path) -> Backend:
        return FaultyBackend(MemoryBackend(clock), fail="append", at=1_000_000)


async def test_the_chosen_call_fails_and_does_not_happen() -> None:
    backend = FaultyBackend(MemoryBackend(), fail="append", at=2)
    claim = await b.claimed(backend)
    assert await backend.append(claim, [b.item("a")]) == 3
    with pytest.raises(StoreUnavailable):
        await backend.append(claim, [b.item("b")])
    assert await backend.append(claim, [b.item("c")]) == 4
    assert [mark.key for mark in await backend.outcomes(claim.run.id)] == ["a", "c"]
    assert backend.calls["append"] == 3


async def test_it_fails_as_often_as_it_was_told() -> None:
    backend = FaultyBackend(MemoryBackend(), fail="search", at=2, times=2)
    await backend.search(Query())
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="search"):
            await backend.search(Query())
    assert await backend.search(Query()) == []


async def test_after_a_lost_acknowledgement_the_write_is_there() -> None:
    backend = FaultyBackend(MemoryBackend(), fail="append", after=True, error=StoreUnavailable("the cable"))
    claim = await b.claimed(backend)
    with pytest.raises(StoreUnavailable, match="the cable"):
        await backend.append(claim, [b.item("a")])
    assert [mark.key for mark in await backend.outcomes(claim.run.id)] == ["a"]


@pytest.mark.parametrize(("after", "kept"), [(False, []), (True, ["a"])])
async def test_after_a_crash_nothing_more_is_written(after: bool, kept: list[str]) -> None:
    inner = MemoryBackend()
    backend = FaultyBackend(inner, fail="append", crash=True, after=after)
    claim = await b.claimed(backend)
    with pytest.raises(Crash):
        await backend.append(claim, [b.item("a")])
    assert backend.crashed
    with pytest.raises(Crash):
        await backend.append(claim, [b.item("b")])
    with pytest.raises(Crash):
        await backend.get(claim.run.id)
    assert [mark.key for mark in await inner.outcomes(claim.run.id)] == kept
    again = await b.claim_of(inner, claim.run.id, dead="worker")
    assert again.attempt == 2


def test_a_crash_is_not_an_exception_that_anybody_handles() -> None:
    assert not issubclass(Crash, Exception)


@pytest.mark.parametrize("name", ["apend", "_call", "url", "inner"])
def test_a_method_that_no_backend_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        FaultyBackend(MemoryBackend(), fail=name)
