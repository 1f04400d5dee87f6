"""One performance: the product is started, used, harmed, left to settle, stopped, and checked."""

import asyncio
import json
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tests.chaos import application_checks as apps
from tests.chaos.applications import Applications, World
from tests.chaos.checks import Evidence, offences
from tests.chaos.faults import Wrecker, sequence
from tests.chaos.figures import percentiles, takeovers
from tests.chaos.load import Http, Load
from tests.chaos.reading import from_nats, from_sqlite
from tests.chaos.stage import Stage
from tests.chaos.witness import append, lines

PATIENCE = 240.0
"""How long everything may take to settle (seconds)."""
LISTED = 40
"""So many runs have their tables of items compared."""


def perform(store: str, seed: int, seconds: float, folder: Path, *, pace: float = 3.0) -> dict[str, Any]:
    """Performs once; gives the report."""
    world = World(folder / "world")
    stage = Stage(store, folder, [repository.path for repository in world.repositories])
    try:
        return asyncio.run(Performance(stage, world, seed, seconds, pace).whole())
    finally:
        stage.leave()


class Performance:
    """What belongs to one performance."""

    def __init__(self, stage: Stage, world: World, seed: int, seconds: float, pace: float) -> None:
        self._stage, self._world, self._seed, self._seconds = stage, world, seed, seconds
        self._http = Http(stage.url)
        self._load = Load(self._http, seed, pace=pace)
        self._apps = Applications(self._http, world, stage.files / "vault", seed)
        self._events = stage.witness / "events.jsonl"
        self._report: dict[str, Any] = {"store": stage.store, "seed": seed, "seconds": seconds}
        self._reference: dict[str, str] = {}

    async def whole(self) -> dict[str, Any]:
        self._stage.start()
        ending = asyncio.Event()
        keeper = asyncio.create_task(self._stage.keep(ending))
        try:
            await self._begin()
            await self._disturb()
            await self._settle()
            evidence = await self._look()
        finally:
            ending.set()
            await keeper
        self._stage.stop()
        return await self._check(evidence)

    async def _begin(self) -> None:
        """Waits until everybody is there, connects sources, and makes one glossary that nobody disturbs."""
        await self._until(self._ready, "the product is ready")
        await self._apps.connect(self._stage.outside["gitlab"])
        await self._apps.define(0)
        file = self._stage.files / "glossary" / f"project-{self._apps.asked.projects[0]}.db"
        self._reference = apps.glossary_of(file, 0)
        assert len(self._reference) > 3, self._reference
        append(self._events, at=time.monotonic(), what="ready")

    async def _ready(self) -> bool:
        answer = await self._http.ask("GET", "/flows")
        workers = await self._http.ask("GET", "/workers")
        if answer is None or workers is None or answer.status_code != 200 or workers.status_code != 200:
            return False
        names = {each["name"] for each in _items(answer.json())}
        return "maps" in names and len(_items(workers.json())) >= 3

    async def _until(self, condition: Any, what: str, within: float = 120.0) -> float:
        began = time.monotonic()
        while not await condition():
            assert time.monotonic() - began < within, f"waited in vain until {what}"
            await asyncio.sleep(0.2)
        return time.monotonic() - began

    async def _disturb(self) -> None:
        using = [asyncio.create_task(self._load.run()), asyncio.create_task(self._apps.run())]
        victims = self._stage.victims()
        wrecker = Wrecker(victims, self._events)
        await wrecker.run(sequence(self._seed, victims.kinds()), self._seconds)
        append(self._events, at=time.monotonic(), what="no more faults")
        for part in self._stage.parts.values():
            part.send(signal.SIGCONT)
        self._report["faults"] = dict(Counter(fault.kind for fault in wrecker.done).most_common())
        self._calm = time.monotonic()
        self._load.stop()
        self._apps.stop()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*using)

    async def _settle(self) -> None:
        """Waits until nothing is active any more; what is left after that is found by the checks."""

        async def quiet() -> bool:
            answer = await self._http.ask("GET", "/overview")
            if answer is None or answer.status_code != 200:
                return False
            runs = answer.json()["runs"]
            return not any(runs.get(status, 0) for status in ("PENDING", "RUNNING", "CANCELLING"))

        try:
            await self._until(quiet, "everything has ended", PATIENCE)
        except AssertionError as error:
            self._report["settling"] = str(error)
        self._report["settled after"] = round(time.monotonic() - self._calm, 1)
        answer = await self._http.insist("POST", "/api/commits/bulk", json={"pause": 0, "fresh": True})
        if answer.status_code < 300:
            await self._apps.ended(answer.json()["run_id"])
        await self._load.catch_up()

    async def _look(self) -> Evidence:
        """Asks the gateway for what it shows now."""
        evidence = Evidence({}, **{name: told for name, told in self._load.told().items() if name != "rows"})
        evidence.rows = self._load.rows
        cursor: str | None = ""
        while cursor is not None:
            page = (await self._http.insist("GET", "/runs", params={"cursor": cursor, "limit": "200"})).json()
            evidence.listed |= {row["run_id"]: row for row in page["items"]}
            cursor = page["next_cursor"]
        evidence.counts = (await self._http.insist("GET", "/overview")).json()["runs"]
        for each in evidence.submissions:
            if each["run_id"]:
                answer = await self._http.insist("GET", f"/runs/{each['run_id']}/result")
                evidence.results[each["run_id"]] = answer.json() if answer.status_code == 200 else None
        for each in evidence.submissions[-LISTED:]:
            if each["run_id"]:
                evidence.items[each["run_id"]] = await self._items(each["run_id"])
        return evidence

    async def _items(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            asked = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
            page = (await self._http.insist("GET", f"/runs/{run_id}/items", params=asked)).json()
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    async def _check(self, evidence: Evidence) -> dict[str, Any]:
        witness, files = self._stage.witness, self._stage.files
        if self._stage.store == "sqlite":
            evidence.stories = from_sqlite(files / "tsuzuki.db")
        else:
            evidence.stories = await from_nats(self._stage.backend)
        evidence.calls, evidence.ledger = lines(witness / "calls.jsonl"), lines(witness / "ledger.jsonl")
        evidence.events = lines(self._events)
        journals = {run_id: [story.row, story.facts] for run_id, story in evidence.stories.items()}
        (self._stage.folder / "journals.json").write_text(json.dumps(journals))
        (self._stage.folder / "told.json").write_text(json.dumps(self._load.told() | self._apps.told()))
        found = offences(evidence)
        found["applications"] = list(self._applications(evidence.figures))
        shutil.copytree(files, self._stage.folder / "files-kept", ignore=shutil.ignore_patterns("*.sock"))
        statuses = Counter(story.row["status"] for story in evidence.stories.values())
        took = sorted(each["took"] for each in evidence.submissions if each["run_id"])
        self._report |= {
            "runs": dict(statuses),
            "submissions": _submitted(evidence.submissions),
            "accepted after": percentiles(took),
            "taken over after": percentiles(takeovers(evidence.stories, evidence.calls)),
            "applications": {name: len(told) for name, told in self._apps.told().items() if name != "commits"},
            "figures": dict(sorted(evidence.figures.items())),
            "starts": self._stage.figures()["starts"],
            "offences": {name: told[:20] for name, told in found.items()},
        }
        (self._stage.folder / "report.json").write_text(json.dumps(self._report, indent=2))
        return self._report

    def _applications(self, figures: Counter[str]) -> Iterator[str]:
        asked, files = self._apps.told(), self._stage.files
        try:
            yield from chain(
                apps.commits_are_those_of_the_repositories(files / "commits.db", self._world),
                apps.glossaries_are_those_of_an_undisturbed_run(files / "glossary", asked, self._reference),
                apps.notes_are_there_once(files / "notes", files / "vault", asked, figures),
            )
        except sqlite3.Error as error:
            yield f"a file of an application cannot be read: {error}"


def _items(told: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told["items"] if isinstance(told, dict) else told
    return found


def _submitted(submissions: list[dict[str, Any]]) -> dict[str, int]:
    accepted = sum(bool(each["run_id"]) for each in submissions)
    refused = sum(bool(each["refused"]) for each in submissions)
    return {"accepted": accepted, "refused": refused, "never answered": len(submissions) - accepted - refused}
