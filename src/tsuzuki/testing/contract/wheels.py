"""What a store promises about wheels: kept whole or not at all, given in pieces, told of, and never two at once."""
# ruff: noqa: S101, PLR2004 - a test asserts, and the numbers of an example are its content

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Sequence

import pytest

from tsuzuki.backends import Backend
from tsuzuki.backends.shelf import DELETE, UPLOAD, Wheel, WheelEvent
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.wheelerrors import WheelConflict, WheelNotFound

CONTENT = bytes(range(256)) * 1200


def a_wheel(version: str = "1", package: str = "demo", content: bytes = CONTENT, tags: Sequence[str] = ()) -> Wheel:
    """Gives a wheel that could be kept."""
    digest = hashlib.sha256(content).hexdigest()
    name = f"{package}-{version}-py3-none-any.whl"
    return Wheel(name=name, package=package, version=version, size=len(content), sha256=digest, tags=tuple(tags))


def an_event(action: str = UPLOAD) -> WheelEvent:
    """Gives an event that is about nothing yet."""
    return WheelEvent(id=uuid.uuid4().hex, action=action, wheel="", tenant="lab", source={"host": "h"})


async def pieces(content: bytes = CONTENT, size: int = 100_000) -> AsyncIterator[bytes]:
    """Gives bytes in pieces."""
    for at in range(0, len(content), size):
        yield content[at : at + size]


def anything(kept: Sequence[Wheel]) -> None:
    """Admits every wheel."""


def only_alone(kept: Sequence[Wheel]) -> None:
    """Admits a wheel where there is none."""
    if kept:
        raise WheelConflict


async def put(backend: Backend, wheel: Wheel, content: bytes = CONTENT) -> Wheel:
    """Keeps a wheel."""
    return await backend.wheels.put(wheel, pieces(content), anything, an_event())


async def content_of(backend: Backend, wheel: Wheel) -> bytes:
    """Reads a wheel whole."""
    return b"".join([piece async for piece in backend.wheels.read(wheel)])


class WheelsContract:
    """Wheels come, are listed and read, and go."""

    async def test_a_wheel_is_given_as_it_was_put(self, backend: Backend) -> None:
        kept = await put(backend, a_wheel(tags=["a", "b"]))
        assert (kept.name, kept.tags, kept.size) == ("demo-1-py3-none-any.whl", ("a", "b"), len(CONTENT))
        assert kept.nuid
        assert await backend.wheels.get(kept.name) == kept
        assert await content_of(backend, kept) == CONTENT
        assert abs(kept.modified - backend.clock.now()) < 60

    async def test_wheels_are_listed_by_name(self, backend: Backend) -> None:
        assert await backend.wheels.all() == []
        for package in ("b", "a", "c"):
            await put(backend, a_wheel(package=package, content=b""), b"")
        assert [wheel.package for wheel in await backend.wheels.all()] == ["a", "b", "c"]
        assert await backend.wheels.get("d-1-py3-none-any.whl") is None

    async def test_a_wheel_that_is_not_admitted_leaves_nothing(self, backend: Backend) -> None:
        kept = await put(backend, a_wheel())
        with pytest.raises(WheelConflict):
            await backend.wheels.put(a_wheel("2"), pieces(), only_alone, an_event())
        assert await backend.wheels.all() == [kept]
        assert len(await backend.wheels.events(since=0, limit=10)) == 1

    async def test_of_wheels_that_come_at_once_the_rule_admits_one(self, backend: Backend) -> None:
        coming = [backend.wheels.put(a_wheel(str(n)), pieces(), only_alone, an_event()) for n in range(5)]
        ended = await asyncio.gather(*coming, return_exceptions=True)
        assert len([wheel for wheel in ended if isinstance(wheel, Wheel)]) == 1
        assert len(await backend.wheels.all()) == 1

    async def test_an_upload_that_breaks_leaves_nothing(self, backend: Backend) -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield CONTENT
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await backend.wheels.put(a_wheel(), broken(), anything, an_event())
        assert await backend.wheels.all() == []

    async def test_a_wheel_of_the_same_name_takes_the_place(self, backend: Backend) -> None:
        first = await put(backend, a_wheel())
        second = await put(backend, a_wheel(content=b"new"), b"new")
        assert (await backend.wheels.all(), second.nuid == first.nuid) == ([second], False)
        assert await content_of(backend, second) == b"new"
        with pytest.raises(WheelNotFound):
            await content_of(backend, first)

    async def test_a_removed_wheel_is_gone_and_may_come_again(self, backend: Backend) -> None:
        kept = await put(backend, a_wheel())
        assert await backend.wheels.remove(kept.name, an_event(DELETE)) == kept
        assert await backend.wheels.remove(kept.name, an_event(DELETE)) is None
        assert (await backend.wheels.all(), await backend.wheels.get(kept.name)) == ([], None)
        with pytest.raises(WheelNotFound):
            await content_of(backend, kept)
        again = await put(backend, a_wheel())
        assert await backend.wheels.all() == [again]

    async def test_what_happened_is_told_newest_first_until_it_is_forgotten(
        self, backend: Backend, clock: ShiftedClock
    ) -> None:
        kept = await put(backend, a_wheel(tags=["a"]))
        clock.jump(100)
        await put(backend, a_wheel(package="other"))
        clock.jump(100)
        await backend.wheels.remove(kept.name, an_event(DELETE))
        told = await backend.wheels.events(since=0, limit=10)
        assert [(event.action, event.wheel) for event in told] == [
            (DELETE, kept.name),
            (UPLOAD, "other-1-py3-none-any.whl"),
            (UPLOAD, kept.name),
        ]
        gone = told[0]
        assert (gone.tags, gone.size, gone.sha256) == (("a",), kept.size, kept.sha256)
        assert (gone.tenant, gone.source) == ("lab", {"host": "h"})
        recent = await backend.wheels.events(since=clock.now() - 150, limit=10)
        assert [event.action for event in recent] == [DELETE, UPLOAD]
        assert [e.wheel for e in await backend.wheels.events(since=0, limit=1, action=UPLOAD)] == [told[1].wheel]
        assert await backend.wheels.events(since=0, limit=10, wheel=kept.name) == [told[0], told[2]]
        await backend.wheels.forget_events(clock.now() - 150)

    async def test_news_differs_after_every_wheel_that_came_or_went(self, backend: Backend) -> None:
        marks = [await backend.wheels.news()]
        assert await backend.wheels.news() == marks[0]
        for change in ("put", "remove", "put"):
            if change == "put":
                await put(backend, a_wheel(content=b"x"), b"x")
            else:
                await backend.wheels.remove(a_wheel().name, an_event(DELETE))
            async with asyncio.timeout(5):
                while await backend.wheels.news() == marks[-1]:  # noqa: ASYNC110 - it is heard of a moment later
                    await asyncio.sleep(0.001)
            marks.append(await backend.wheels.news())
