"""The works of the application: local git, many targets behind a slow API, and statistics over many commits."""

import asyncio
import hashlib
import random
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bench.process import Figures
from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tsuzuki import Runs, Worker, settings
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.commits.gathering import gathering
from tsuzuki.apps.commits.ledger import Ledger
from tsuzuki.apps.commits.projects import Projects
from tsuzuki.apps.commits.records import Commit, FoundProject, Target
from tsuzuki.apps.commits.statistics import Asked, statistics

API_SECONDS: Final = 0.05
AUTHORS: Final = 200
PROJECTS: Final = 10


def local_git(folder: Path, count: int) -> Figures:
    """The first collection of a local branch, with figures, until it is recorded; git alone beside it."""
    repository = Repository(folder / "repository")
    repository.many(count)
    began = perf_counter()
    repository.git("log", "--numstat", "-z", "-M", "--format=%H", "main")
    alone = perf_counter() - began
    seconds = asyncio.run(_collected(folder / "files", repository))
    return {"rate": count / seconds, "git_alone": count / alone}


async def _collected(folder: Path, repository: Repository) -> float:
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with Runs.open(data_dir=str(folder)) as runs, Worker(runs.backend, flows.flows()) as worker:
            working = asyncio.create_task(worker.run())
            desk = Desk(runs, runs.submit, folder=folder)
            project = (await desk.sync(desk.connect("git", str(repository.path))))[0]
            began = perf_counter()
            run = await desk.collect(await desk.collection(project, ["main"], every=False))
            await runs.wait(run.id)
            seconds = perf_counter() - began
            worker.stop()
            await working
    return seconds


def targets(folder: Path, count: int, pause_ms: int, concurrency: int) -> Figures:
    """A bulk run over so many branches with one new commit each, behind an API that takes 50 ms."""
    repository = Repository(folder / "repository")
    repository.many(2)
    for number in range(count):
        repository.git("branch", f"branch/{number:03d}", "main")
    with GitLabDouble(delay=API_SECONDS) as gitlab:
        gitlab.host(repository.path)
        seconds = asyncio.run(_bulk(folder / "files", repository, gitlab, count, (pause_ms / 1000, concurrency)))
        return {"seconds": seconds, "requests": len(gitlab.requests)}


async def _bulk(
    folder: Path, repository: Repository, gitlab: GitLabDouble, count: int, how: tuple[float, int]
) -> float:
    with settings.flagged(TSUZUKI_DATA_DIR=str(folder)):
        async with Runs.open(data_dir=str(folder)) as runs, Worker(runs.backend, flows.flows()) as worker:
            working = asyncio.create_task(worker.run())
            desk = Desk(runs, runs.submit, folder=folder)
            project = (await desk.sync(desk.connect("gitlab", gitlab.url, TOKEN)))[0]
            first = repository.head("main~1")
            for number in range(count):
                target = Target(project.project_id, f"branch/{number:03d}")
                with gathering(desk.ledger, target, "", bulk=False) as gathered:
                    gathered.add([Commit(first, "Ada", "", "2020-09-13T12:26:40+00:00", 2, 0, 0, 1)])
                    gathered.settle(first)
            began = perf_counter()
            started = await desk.start(pause=how[0], concurrency=how[1])
            await runs.wait(started.run_id)
            seconds = perf_counter() - began
            assert desk.bulk_runs.summary(started.run_id).success_count == count
            worker.stop()
            await working
    return seconds


def monthly(folder: Path, count: int) -> Figures:
    """Statistics by month and author over so many commits of ten projects and 200 authors."""
    ledger, chance = Ledger(folder / "commits.db"), random.Random(1)
    projects = Projects(ledger)
    found = [FoundProject(str(number), f"project {number}", "main") for number in range(PROJECTS)]
    known = projects.sync(projects.connect("gitlab", "http://gitlab", "none"), found)
    began = perf_counter()
    for project in known:
        with gathering(ledger, Target(project.project_id, "main"), "", bulk=False) as gathered:
            gathered.add([_commit(chance) for _ in range(count // PROJECTS)])
            gathered.settle("head")
    stored = perf_counter() - began
    took = [_timed(ledger, asked) for asked in (Asked(), Asked(1), Asked(merges=False, authors=("Author 7",)))]
    return {"seconds": max(took), "stored": count / stored, "mb": ledger.file.stat().st_size / 1e6}


def _timed(ledger: Ledger, asked: Asked) -> float:
    began = perf_counter()
    assert statistics(ledger, asked).rows
    return perf_counter() - began


def _commit(chance: random.Random) -> Commit:
    number: Any = chance.randrange(AUTHORS)
    sha = hashlib.sha1(chance.randbytes(16), usedforsecurity=False).hexdigest()
    date = f"{chance.randrange(2012, 2027)}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}T00:00:00+00:00"
    lines = chance.randrange(100), chance.randrange(50)
    return Commit(sha, f"Author {number}", f"author{number}@example.com", date, *lines, int(number % 9 == 0), 1)
