"""The load of ordinary runs over HTTP: who submits, cancels and resumes, who watches, and what each was told."""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx2

from tests.chaos.flows import GRAPH

BUSY = 409
SITES = 4


@dataclass
class Submission:
    """One run that was asked for, and what was answered."""

    token: str
    flow: str
    params: dict[str, Any]
    repeatable: bool
    """Whether it has an idempotency key, and is asked for until it is answered."""
    run_id: str = ""
    refused: int = 0
    """The status of the answer that refused it."""
    cancelled: bool = False
    took: float = 0.0

    @property
    def unclear(self) -> bool:
        """Whether no answer came at all."""
        return not self.run_id and not self.refused


@dataclass
class Watched:
    """What a watcher was shown of a run."""

    run_id: str
    facts: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0
    ended: bool = False


class Http:
    """Requests to the gateway, which may be away."""

    def __init__(self, url: str) -> None:
        self.url = url
        limits = httpx2.Limits(max_connections=50)
        self.client = httpx2.AsyncClient(base_url=url, timeout=httpx2.Timeout(10.0), limits=limits)

    async def ask(self, method: str, path: str, **how: Any) -> httpx2.Response | None:
        """Asks once; None where no answer came."""
        try:
            return await self.client.request(method, path, **how)
        except (httpx2.HTTPError, OSError):
            return None

    async def insist(self, method: str, path: str, *, within: float = 300.0, **how: Any) -> httpx2.Response:
        """Asks until there is an answer that is not about the store's being away."""
        until = time.monotonic() + within
        while True:
            found = await self.ask(method, path, **how)
            if found is not None and found.status_code < 500:
                return found
            told = "no answer" if found is None else f"{found.status_code} {found.text}"
            assert time.monotonic() < until, f"{method} {path}: {told}"
            await asyncio.sleep(0.25)


def work(chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Chooses a flow and its params."""
    flow = chance.choices(
        [
            "steps",
            "maps",
            "blocking",
            "nested",
            "collecting",
            "keyed",
            "waiting",
            "large",
            "yaml",
            "asking",
            "batching",
        ],
        [10, 16, 8, 10, 8, 16, 8, 3, 8, 6, 4],
    )[0]
    count = chance.randint(3, 30)
    params: dict[str, dict[str, Any]] = {
        "steps": {"count": count // 2 + 2},
        "nested": {"books": count // 3 + 1, "pages": chance.randint(1, 5)},
        "keyed": {"site": f"s{chance.randrange(SITES)}", "count": count},
        "waiting": {"count": 1 + count // 12},
        "large": {"number": chance.randint(1, 9)},
        "asking": {"token": "", "count": count // 3 + 1},
        "batching": {"token": "", "count": count},
    }
    return flow, params.get(flow, {"count": count})


class Load:
    """Submits, cancels, resumes and watches until it is told to stop; keeps everything that it was told."""

    def __init__(self, http: Http, seed: int, *, pace: float = 3.0) -> None:
        self.http, self._chance, self._pace = http, random.Random(f"load {seed}"), pace
        self.submissions: list[Submission] = []
        self.watched: list[Watched] = []
        self.rows: dict[str, dict[str, Any]] = {}
        """What following the list by `updated_after` has shown of each run."""
        self._latest = 0.0
        self._stopping = asyncio.Event()
        self._repeats: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._submit())
            group.create_task(self._disturb())
            group.create_task(self._follow())
            for _ in range(3):
                group.create_task(self._watch())

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _submit(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            flow, params = work(self._chance)
            token = f"t{number}"
            params = {**params, "token": token} if "token" in params else params
            submission = Submission(token, flow, params, repeatable=self._chance.random() < 0.7)
            priority = self._chance.randint(-2, 2)
            self.submissions.append(submission)
            task = asyncio.create_task(self._submitted(submission, priority))
            self._repeats.add(task)
            task.add_done_callback(self._repeats.discard)
            await self._rest(self._chance.expovariate(self._pace))
        if self._repeats:
            await asyncio.wait(self._repeats, timeout=120)

    async def _submitted(self, submission: Submission, priority: int) -> None:
        began = time.monotonic()
        headers = {"Idempotency-Key": submission.token} if submission.repeatable else {}
        how = _form(submission) if submission.flow == "yaml" else _body(submission, priority)
        while True:
            answer = await self.http.ask("POST", how.pop("path"), headers=headers, **how)
            if answer is not None and answer.status_code < 300:
                submission.run_id = answer.json()["run_id"]
                submission.took = time.monotonic() - began
                return
            passing = answer is None or answer.status_code >= 500
            if not submission.repeatable or not passing:
                submission.refused = 0 if answer is None else answer.status_code
                return
            await asyncio.sleep(0.3)
            how = _form(submission) if submission.flow == "yaml" else _body(submission, priority)

    async def _disturb(self) -> None:
        """Cancels a run now and then, and lets most of these go on later."""
        while not self._stopping.is_set():
            await self._rest(self._chance.uniform(1, 4))
            chosen = [each for each in self.submissions[-20:] if each.run_id and not each.cancelled]
            if not chosen:
                continue
            submission = self._chance.choice(chosen)
            submission.cancelled = True
            await self.http.ask("POST", f"/runs/{submission.run_id}/cancel", json={"reason": "chaos"})
            if self._chance.random() < 0.6:
                await self._rest(self._chance.uniform(0.5, 3))
                await self.http.ask("POST", f"/runs/{submission.run_id}/resume")

    async def _watch(self) -> None:
        while not self._stopping.is_set():
            await self._rest(self._chance.uniform(0.1, 1))
            seen = {each.run_id for each in self.watched}
            fresh = [each.run_id for each in self.submissions if each.run_id and each.run_id not in seen]
            if fresh and not self._stopping.is_set():
                self.watched.append(watched := Watched(fresh[-1]))
                await self._look(watched)

    async def _look(self, watched: Watched) -> None:
        while not watched.ended:
            watched.connections += 1
            try:
                async with aclosing(self._events(watched)) as events:
                    async for kind, number, told in events:
                        if kind == "fact":
                            watched.facts.append((number, json.loads(told)["kind"]))
                        watched.ended = watched.ended or kind == "end"
            except (httpx2.HTTPError, OSError, TimeoutError):
                await asyncio.sleep(0.2)
            if self._stopping.is_set() and watched.connections > 200:
                return

    async def _events(self, watched: Watched) -> AsyncGenerator[tuple[str, int, str], None]:
        headers = {"Last-Event-ID": str(watched.facts[-1][0])} if watched.facts else {}
        async with self.http.client.stream("GET", f"/runs/{watched.run_id}/events", headers=headers) as answer:
            if answer.status_code != 200:
                await asyncio.sleep(0.3)
                return
            kind, number = "", 0
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    number = int(value)
                elif name == "data":
                    yield kind, number, value

    async def _follow(self) -> None:
        while not self._stopping.is_set():
            await self.catch_up()
            await self._rest(1.5)

    async def catch_up(self) -> None:
        """Asks for what has changed since it was asked for last."""
        cursor, latest = "", self._latest
        while True:
            asked = {"updated_after": repr(self._latest), "limit": "200", **({"cursor": cursor} if cursor else {})}
            answer = await self.http.ask("GET", "/runs", params=asked)
            if answer is None or answer.status_code != 200:
                return  # the next look begins where this one did
            page = answer.json()
            for row in page["items"]:
                known = self.rows.get(row["run_id"])
                if known is None or row["updated_at"] >= known["updated_at"]:
                    self.rows[row["run_id"]] = row
                latest = max(latest, row["updated_at"])
            cursor = page["next_cursor"]
            if not cursor:
                self._latest = latest
                return

    def told(self) -> dict[str, Any]:
        """Gives everything as plain values, to be kept beside the stores."""
        return {
            "submissions": [asdict(each) for each in self.submissions],
            "watched": [asdict(each) for each in self.watched],
            "rows": self.rows,
        }


def _body(submission: Submission, priority: int) -> dict[str, Any]:
    tag = {"tag": "files"} if submission.flow in {"asking", "batching"} else {}
    body = {"flow_name": submission.flow, "params": submission.params, "tags": [submission.token], "priority": priority}
    return {"path": "/runs", "json": body | tag}


def _form(submission: Submission) -> dict[str, Any]:
    text = GRAPH.format(**submission.params)
    form = {"flow_name": f"yaml-{submission.token}"}
    return {"path": "/runs/yaml", "data": form, "files": {"workflow": ("flow.yaml", text, "application/yaml")}}
