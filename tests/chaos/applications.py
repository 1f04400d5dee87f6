"""The load of the three applications over HTTP, at the same time: collections, glossaries and notes."""

import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.apps.commits.gitlab_double import TOKEN
from tests.apps.commits.repositories import Repository
from tests.apps.notes.exports import claude, written
from tests.chaos.load import BUSY, Http

WORDS = ("worker", "journal", "claim", "lease", "backend", "gateway", "replay", "cursor")
CONVERSATIONS = 12
NO_MORE = ("completed", "failed", "cancelled")


def letters(number: int) -> str:
    """Writes a number in letters, so that terms of one project are in no other."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}")


def text_of(number: int) -> str:
    names = [f"{word}{letters(number)}" for word in WORDS]
    return "\n\n".join(
        f"A {name} is a thing with number {at} in the engine. Each {name} has a place." for at, name in enumerate(names)
    )


@dataclass
class Asked:
    """What was asked of the applications."""

    projects: dict[int, int] = field(default_factory=dict)
    """Glossary projects: their number here, and in the product."""
    runs: dict[int, int] = field(default_factory=dict)
    """The run of each project that was answered with success."""
    sessions: dict[int, str] = field(default_factory=dict)
    """Sessions of notes by their number here."""
    bulk: list[str] = field(default_factory=list)
    """Bulk runs that were answered with success."""
    commits: int = 0
    """How many commits were made meanwhile."""


class World:
    """Real repositories and exports: what applications collect from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repositories = [Repository(folder / f"repository{number}") for number in range(2)]
        for repository in self.repositories:
            repository.commit("2026-01-10T10:00:00+00:00", {"a.txt": "1\n2\n3\n"})
            for branch in range(4):
                repository.git("branch", f"branch/{branch}")

    def export(self, number: int) -> Path:
        conversations = [claude(number * 1000 + each) for each in range(CONVERSATIONS)]
        return written(self.folder / f"export{number}" / "conversations.json", conversations)

    def commit(self, number: int) -> None:
        repository = self.repositories[number % 2]
        repository.git("checkout", "-q", f"branch/{number % 4}")
        at = f"2026-03-01T{number // 60 % 24:02d}:{number % 60:02d}:00+00:00"
        repository.commit(at, {f"{number}.txt": f"{number}\n"})


class Applications:
    """Uses all three at once, until it is told to stop."""

    def __init__(self, http: Http, world: World, vault: Path, seed: int) -> None:
        self.http, self.world, self.vault = http, world, vault
        self.asked = Asked()
        self._chance = random.Random(f"applications {seed}")
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def connect(self, gitlab: str) -> None:
        """Registers the sources: one repository as a folder, the other behind a GitLab; collects all branches once."""
        first, second = self.world.repositories
        for body in ({"path": str(first.path)}, {"base_url": gitlab, "token": TOKEN}):
            made = (await self.http.insist("POST", "/api/commits/connections", json=body)).json()
            path = f"/api/commits/connections/{made['connection_id']}/sync"
            for project in (await self.http.insist("POST", path)).json():
                if project["name"].endswith(first.path.name) == ("path" in body):
                    run = await self.http.insist(
                        "POST", "/api/commits/collect", json={"project_id": project["project_id"], "all": True}
                    )
                    await self.ended(run.json()["run_id"])
        assert second.path.exists()

    async def ended(self, run_id: str, within: float = 120.0) -> dict[str, Any]:
        until = time.monotonic() + within
        while True:
            row: dict[str, Any] = (await self.http.insist("GET", f"/runs/{run_id}")).json()
            if row["status"] in ("COMPLETED", "FAILED", "CANCELLED"):
                return row
            assert time.monotonic() < until, row
            await asyncio.sleep(0.2)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in (self._collect, self._define, self._write):
                group.create_task(each())

    async def _rest(self, least: float, most: float) -> None:
        try:
            async with asyncio.timeout(self._chance.uniform(least, most)):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _collect(self) -> None:
        while not self._stopping.is_set():
            await asyncio.to_thread(self.world.commit, self.asked.commits)
            self.asked.commits += 1
            answer = await self.http.ask("POST", "/api/commits/bulk", json={"pause": 0.02, "concurrency": 2})
            if answer is not None and answer.status_code < 300:
                self.asked.bulk.append(answer.json()["run_id"])
            await self._rest(1, 4)

    async def _define(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            await self.define(number)
            await self._rest(0.5, 2)

    async def define(self, number: int) -> None:
        """Makes a project with a document and lets its glossary be made; waits for its end unless told to stop."""
        project = await self._project(number)
        if project is None:
            return
        self.asked.projects[number] = project
        document = {"files": [{"file_name": "a.md", "content": text_of(number)}]}
        await self.http.insist("POST", f"/api/projects/{project}/files/bulk?extract=false", json=document)
        if await self._made(project, "extract") and (run := await self._made(project, "full")):
            self.asked.runs[number] = run

    async def _made(self, project: int, scope: str) -> int:
        """Starts a run of a scope and waits for its end; gives its number, or 0 when told to stop before.

        One whose submission was unclear is there for a moment, and is taken back: then it is started again.
        """
        run = 0
        while not run and not self._stopping.is_set():
            answer = await self.http.ask("POST", f"/api/projects/{project}/runs", json={"scope": scope})
            if answer is not None and answer.status_code == 201:
                run = answer.json()["id"]
            elif answer is not None and answer.status_code == BUSY:  # an earlier try that was not answered has won
                run = await self._active(project, scope)
            if not run:
                await self._rest(0.2, 0.4)
        while not self._stopping.is_set() and (await self.current(project))["status"] not in NO_MORE:
            await self._rest(0.2, 0.4)
        return run

    async def _active(self, project: int, scope: str) -> int:
        """Waits until somebody has begun with the active run, or it has ended; gives its number, if it is the one."""
        while not self._stopping.is_set():
            active = await self.current(project)
            if active["status"] != "pending":
                return int(active["id"]) if active["scope"] == scope and active["status"] != "cancelled" else 0
            await self._rest(0.2, 0.4)
        return 0

    async def current(self, project: int) -> dict[str, Any]:
        found: dict[str, Any] = (await self.http.insist("GET", f"/api/projects/{project}/runs/current")).json()
        return found

    async def _project(self, number: int) -> int | None:
        name = f"project {number}"
        while not self._stopping.is_set():
            listed = await self.http.ask("GET", "/api/projects")
            if listed is not None and listed.status_code == 200:
                known = {each["name"]: each["id"] for each in listed.json()}
                if name in known:
                    return int(known[name])
                await self.http.ask("POST", "/api/projects", json={"name": name})
            await self._rest(0.1, 0.3)
        return None

    async def _write(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            await self.write(number)
            await self._rest(0.5, 2)

    async def write(self, number: int) -> None:
        """Lets notes be made of an export, and waits for them unless told to stop."""
        export = await asyncio.to_thread(self.world.export, number)
        body = {"export": str(export), "vault": str(self.vault / f"{number}"), "llm": "openai", "model": "m-1"}
        answer = await self.http.ask("POST", "/api/notes/sessions", json={**body, "concurrency": 2})
        if answer is None or answer.status_code >= 300:
            return
        self.asked.sessions[number] = session = answer.json()["session_id"]
        while not self._stopping.is_set():
            stands = (await self.http.insist("GET", f"/api/notes/sessions/{session}")).json()
            if stands["status"] not in ("PENDING", "IN_PROGRESS"):
                return
            await self._rest(0.3, 0.6)

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(json.dumps(asdict(self.asked)))
        return told
