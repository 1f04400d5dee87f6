"""GitLab over REST: pages, limits and failures, and an independent client as a witness."""

import asyncio
import contextlib
import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import gitlab as python_gitlab
import pytest

from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository, eventful
from tsuzuki.apps.commits.records import Commit, Span
from tsuzuki.apps.commits.refusals import HeadGone, SourceFailure
from tsuzuki.apps.commits.sources.asking import Patience
from tsuzuki.apps.commits.sources.gitlab import GitLabSource
from tsuzuki.apps.commits.times import utc
from tsuzuki.clock import SystemClock


class Hurried(SystemClock):
    """A clock whose waits are noted and not waited for: they pass at once."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._passed = 0.0

    def now(self) -> float:
        return 1_800_000_000 + self._passed

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 2))
        self._passed += seconds


@pytest.fixture
def clock() -> Hurried:
    return Hurried()


def source_of(gitlab: GitLabDouble, clock: Hurried, **patience: Any) -> GitLabSource:
    return GitLabSource(gitlab.url, TOKEN, Patience(clock=clock, **patience))


async def read(source: GitLabSource, span: Span, project: str = "100") -> list[Commit]:
    try:
        return [commit async for page in source.commits(project, span) for commit in page]
    finally:
        await source.close()


async def test_an_independent_client_sees_the_same_commits(
    tmp_path: Path, gitlab: GitLabDouble, clock: Hurried
) -> None:
    made = eventful(tmp_path / "eventful")
    made.many(150, branch="long")
    hosted = gitlab.host(made.path)
    witness = python_gitlab.Gitlab(gitlab.url, private_token=TOKEN).projects.get(hosted.path)
    names = [branch.name for branch in witness.branches.list(iterator=True)]
    source = source_of(gitlab, clock)
    assert [branch.name for branch in await source.branches("100")] == names
    for name in names:
        seen = witness.commits.list(iterator=True, ref_name=name, with_stats=True)
        expected = {
            (c.id, c.author_name, c.author_email, utc(c.committed_date), c.stats["additions"], c.stats["deletions"])
            for c in seen
        }
        ours = source_of(gitlab, clock)
        found = await read(ours, Span(await ours.head("100", name)))
        assert {commit[:6] for commit in found} == expected
        assert len(found) == len(expected)
    await source.close()


async def test_but_for_merges_both_sources_give_the_same_records(
    tmp_path: Path, gitlab: GitLabDouble, clock: Hurried
) -> None:
    made = eventful(tmp_path / "eventful")
    gitlab.host(made.path)
    found = await read(source_of(gitlab, clock), Span(made.head()))
    logged = made.logged()
    assert {c.sha: (c.additions, c.deletions) for c in found if not c.is_merge}.items() <= logged.items()
    assert len(found) == len(logged)


@pytest.mark.parametrize("paging", ["both", "link", "none"])
@pytest.mark.parametrize("number", [100, 250])
async def test_all_pages_are_read_without_totals(
    tmp_path: Path, gitlab: GitLabDouble, clock: Hurried, paging: str, number: int
) -> None:
    made = Repository(tmp_path / "many")
    made.many(number, branch="long")
    gitlab.host(made.path)
    gitlab.paging = paging
    found = await read(source_of(gitlab, clock), Span(made.head("long")))
    assert len(found) == number


LIMITS: dict[str, tuple[dict[str, str], float]] = {
    "seconds": ({"Retry-After": "7"}, 7),
    "a date": ({"Retry-After": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30),
    "the time of the reset": ({"RateLimit-Reset": "1800000012", "RateLimit-Remaining": "0"}, 12),
    "the reset as a date": ({"RateLimit-ResetTime": "Fri, 15 Jan 2027 08:00:05 GMT"}, 5),
    "nothing": ({}, 1),
}


@pytest.mark.parametrize(("headers", "wait"), LIMITS.values(), ids=LIMITS)
async def test_a_limit_is_waited_for_as_the_server_says(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried, headers: dict[str, str], wait: float
) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", 429, times=1, headers=headers)
    assert len(await read(source_of(gitlab, clock), Span(repository.head()))) == 2
    assert clock.waits == [wait]


async def test_the_last_request_of_a_quota_is_followed_by_a_pause(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried
) -> None:
    gitlab.host(repository.path)
    spent = {"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000009"}
    gitlab.fail("/branches", 200, times=1, headers=spent, body="[]")
    source = source_of(gitlab, clock)
    await source.branches("100")
    await source.branches("100")
    await source.close()
    assert clock.waits == [9]


async def test_waits_without_a_word_grow_and_end(repository: Repository, gitlab: GitLabDouble, clock: Hurried) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", 503)
    with pytest.raises(SourceFailure, match="5xx"):
        await read(source_of(gitlab, clock, tries=4), Span(repository.head()))
    assert clock.waits == [1, 2, 4]


async def test_too_long_a_limit_is_not_waited_for(repository: Repository, gitlab: GitLabDouble, clock: Hurried) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", 429, headers={"Retry-After": "3600"})
    with pytest.raises(SourceFailure, match=r"429.*3600 s"):
        await read(source_of(gitlab, clock), Span(repository.head()))
    assert clock.waits == []


FAILURES = [
    (401, "unauthorized"),
    (403, "forbidden"),
    (404, "not_found"),
    (429, "rate_limited"),
    (500, "server"),
    (502, "server"),
    (503, "server"),
    (302, "answer"),
    (418, "answer"),
]


@pytest.mark.parametrize(("status", "cause"), FAILURES)
async def test_every_failure_has_its_cause_and_tells_nothing_of_the_server(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried, status: int, cause: str
) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", status, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    with pytest.raises(SourceFailure) as told:
        await read(source_of(gitlab, clock, tries=2), Span(repository.head()))
    assert told.value.cause == cause
    assert "private@example.com" not in str(told.value)
    assert TOKEN not in str(told.value)


async def test_a_lost_connection_is_tried_again(repository: Repository, gitlab: GitLabDouble, clock: Hurried) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", times=2, drop=True)
    assert len(await read(source_of(gitlab, clock), Span(repository.head()))) == 2


@pytest.mark.parametrize("body", ["<html>", "{}", '[{"id": 1}]', '"text"', '[{"id": "a", "committed_date": "soon"}]'])
async def test_an_answer_that_is_not_gitlabs_is_told(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried, body: str
) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/commits", 200, body=body)
    with pytest.raises(SourceFailure) as told:
        await read(source_of(gitlab, clock), Span(repository.head()))
    assert told.value.cause == "answer"


async def test_the_address_of_a_page_is_not_that_of_a_server(gitlab: GitLabDouble, clock: Hurried) -> None:
    source = GitLabSource(f"{gitlab.url}/team/app", TOKEN, Patience(clock=clock))
    with pytest.raises(SourceFailure, match=r"check the address of the connection.*404"):
        await source.projects()
    await source.close()


@pytest.mark.parametrize("page", ["[]", json.dumps([{"id": "1", "created_at": "2026-01-01"}])])
@pytest.mark.parametrize("headers", [{"Link": '<x?page=2>; rel="next"'}, {"X-Next-Page": "2"}, {"X-Next-Page": "x"}])
async def test_a_server_that_always_names_one_more_page_is_not_asked_for_ever(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried, page: str, headers: dict[str, str]
) -> None:
    gitlab.host(repository.path)
    gitlab.fail("/repository/commits", 200, body=page, headers=headers)
    with pytest.raises(SourceFailure, match="理解できません"):
        await read(source_of(gitlab, clock), Span(repository.head()))
    assert len(gitlab.asked("/repository/commits")) <= 3


class Streaming:
    """A server that sends pieces of a body to everybody who asks, until the asker leaves; it counts what it sent."""

    def __init__(self, headers: str, pieces: Iterator[bytes]) -> None:
        self._headers, self._pieces, self.sent, self.asked = headers, pieces, 0, b""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n{self._headers}Connection: close\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)
                await asyncio.sleep(0)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_an_answer_without_end_is_read_up_to_a_bound(clock: Hurried) -> None:
    async with Streaming("", itertools.repeat(b"[" + b" " * (1 << 20))) as server:
        source = GitLabSource(server.url, TOKEN, Patience(clock=clock))
        with pytest.raises(SourceFailure, match="more than 16 MB"):
            await source.projects()
        await source.close()
    assert server.sent < 64 << 20


async def test_a_packed_answer_is_not_unpacked(clock: Hurried) -> None:
    async with Streaming("Content-Encoding: gzip\r\n", iter([gzip.compress(b" " * (64 << 20))])) as server:
        source = GitLabSource(server.url, TOKEN, Patience(clock=clock))
        with pytest.raises(SourceFailure, match="it is packed"):
            await source.projects()
        await source.close()
    assert b"accept-encoding: identity" in server.asked.lower()


async def test_pages_without_end_are_followed_up_to_a_bound(gitlab: GitLabDouble, clock: Hurried) -> None:
    numbers = itertools.count(1)
    gitlab.endless = lambda: json.dumps([{"id": next(numbers), "name": "x"}])
    source = source_of(gitlab, clock, pages=3)
    with pytest.raises(SourceFailure, match="more than 3 pages"):
        await source.projects()
    assert len(gitlab.asked("/projects")) == 3
    await source.close()
    hurried = source_of(gitlab, clock, total=0.3)
    gitlab.delay = 0.1
    with pytest.raises(SourceFailure, match=r"longer than 0.3 s"):
        await hurried.projects()
    await hurried.close()


async def test_a_server_that_is_not_there_is_told(clock: Hurried) -> None:
    source = GitLabSource("http://127.0.0.1:9", TOKEN, Patience(clock=clock, tries=3))
    for _ in range(3):
        with pytest.raises(SourceFailure, match="接続できません"):
            await source.branches("1")
    assert clock.waits == [1.0, 2.0], "once all patience was in vain, nobody waits for it again"
    await source.close()


async def test_a_server_that_comes_back_is_waited_for_again(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried
) -> None:
    gitlab.host(repository.path)
    lost = gitlab.fail("/branches", drop=True, times=2)
    source = source_of(gitlab, clock, tries=2)
    with pytest.raises(SourceFailure, match="接続できません"):
        await source.branches("100")
    assert await source.branches("100")
    lost.times = 1
    assert await source.branches("100")
    await source.close()


async def test_an_unknown_head_is_gone(repository: Repository, gitlab: GitLabDouble, clock: Hurried) -> None:
    gitlab.host(repository.path)
    with pytest.raises(HeadGone):
        await read(source_of(gitlab, clock), Span(repository.head(), "1" * 40))


async def test_missing_figures_addresses_and_parents_are_told_apart_from_zeros(
    repository: Repository, gitlab: GitLabDouble, clock: Hurried
) -> None:
    gitlab.host(repository.path)
    lacking = {"stats": None, "author_email": None, "parent_ids": None, "author_name": "half \ud800"}
    gitlab.twist = lambda commit: {**commit, **lacking}
    found = await read(source_of(gitlab, clock), Span(repository.head()))
    assert {commit.author_name for commit in found} == {"half ?"}
    assert {(c.author_email, c.additions, c.deletions, c.is_merge, c.has_stats) for c in found} == {("", 0, 0, 0, 0)}


async def test_odd_branch_names_are_asked_for_as_one_part_of_the_path(
    tmp_path: Path, gitlab: GitLabDouble, clock: Hurried
) -> None:
    made = eventful(tmp_path / "eventful")
    gitlab.host(made.path)
    source = source_of(gitlab, clock)
    for name in ("feature/寿司", "release/1.0#hot"):
        assert await source.head("100", name) == made.head(f"refs/heads/{name}")
    assert all(unquote(path).startswith("/api/v4/projects/100/") for path in gitlab.requests)
    await source.close()
