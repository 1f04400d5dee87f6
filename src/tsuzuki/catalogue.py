"""The flows that living workers have published, and whether params fit one of them.

A run is refused here only where that is certain: every living worker of its tag that would take it has published the
same of the flow, and none finds flows by a resolver. A flow that nobody has published is accepted; workers come and go.
Its tag and its key are another matter: they hold as they were published last, also while workers disagree or none
lives, or else a restart of the workers would let two runs of one key in.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

import msgspec
import pydantic

from tsuzuki.backends import WorkerRecord
from tsuzuki.codec import plain_params
from tsuzuki.errors import BadParams
from tsuzuki.flowset import mark_of
from tsuzuki.overview import Overview
from tsuzuki.schemas import LOOSE, Checker

FRESH: Final = 1.0
"""For how long what was read of workers and their flows is good enough to accept a run by it (seconds)."""
MOST_CHECKERS: Final = 1000


@dataclass(frozen=True, slots=True)
class PublishedFlow:
    """A flow as a worker has published it, and the living workers that know it."""

    name: str
    record: Mapping[str, Any]
    mark: str
    workers: tuple[WorkerRecord, ...]

    @property
    def tag(self) -> str | None:
        """The tag that the flow names for its runs, where it names one."""
        tag = self.record.get("tag", "default")
        return None if tag == "default" else tag

    def told_alike(self, tag: str) -> bool:
        """Tells whether there are workers of a tag that know the flow, and all have published the same of it."""
        marks = {worker.mark(self.name) for worker in self.workers if tag in worker.tags}
        return marks == {self.mark}

    def key(self, params: Any) -> str | None:
        """Fills the key of the flow, where its params are plain texts and numbers; None: it has none."""
        template, schema = self.record.get("key"), self.record.get("params")
        if not template or not schema or not isinstance(params, dict):
            return None
        shown: Mapping[str, Any] = schema.get("properties", {})
        filled = {name: part["default"] for name, part in shown.items() if "default" in part} | params
        names = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
        if not all(name in filled and _plain(shown.get(name, {})) for name in names):
            return None
        return str(template.format(**filled))


def _plain(schema: Mapping[str, Any]) -> bool:
    """Tells whether a value in JSON is written as it would be in a key."""
    more = {LOOSE, "format", "enum", "const"} & schema.keys()
    return schema.get("type") in ("string", "integer") and not more


class Catalogue:
    """What is known of flows, read at most once in a while."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._reading = asyncio.Lock()
        self._read_at: float | None = None
        self._flows: dict[str, PublishedFlow] = {}
        self._left: dict[str, PublishedFlow] = {}
        """Those that nobody knows who lives."""
        self._resolving: frozenset[str] = frozenset()
        self._tasks: frozenset[str] = frozenset()
        self._checkers: dict[str, Checker] = {}

    async def flows(self) -> dict[str, PublishedFlow]:
        """Gives the flows that living workers have published, by name, as they are now."""
        await self._read()
        return self._flows

    async def tasks(self) -> frozenset[str]:
        """Return the names of the tasks that living workers have registered for YAML flows, as they are now."""
        await self._read()
        return self._tasks

    async def find(self, name: str) -> PublishedFlow | None:
        """Gives a flow that was published, by a living worker or by one that has left."""
        await self._freshen()
        return self._flows.get(name) or self._left.get(name)

    async def checked(self, name: str, tag: str, params: Mapping[str, Any]) -> Any:
        """Gives the params as a worker will see them; None where nobody can say. What does not fit is refused."""
        try:
            return self._checked(name, tag, params)
        except BadParams:
            await self._read()  # who refuses must be certain
            return self._checked(name, tag, params)

    def _checked(self, name: str, tag: str, params: Mapping[str, Any]) -> Any:
        flow = self._flows.get(name)
        if flow is None or tag in self._resolving or not flow.told_alike(tag) or not flow.record.get("params"):
            return None
        try:
            return self._checker(flow).check(plain_params(params))
        except pydantic.ValidationError as error:
            raise _refusal(name, error) from None

    def key(self, flow: PublishedFlow, params: Mapping[str, Any]) -> str | None:
        """Fills the key of a flow, as it was published last; None where it has none, or the params do not fit."""
        if not flow.record.get("key") or not flow.record.get("params"):
            return None
        try:
            return flow.key(self._checker(flow).check(plain_params(params)))
        except pydantic.ValidationError:
            return None

    def _checker(self, flow: PublishedFlow) -> Checker:
        if flow.mark not in self._checkers:
            if len(self._checkers) >= MOST_CHECKERS:
                self._checkers.clear()
            self._checkers[flow.mark] = Checker(flow.record["params"])
        return self._checkers[flow.mark]

    async def _freshen(self) -> None:
        if self._is_fresh():
            return
        async with self._reading:
            if not self._is_fresh():
                await self._read()

    def _is_fresh(self) -> bool:
        return self._read_at is not None and self._overview.monotonic() - self._read_at < FRESH

    async def _read(self) -> None:
        alive = [worker for worker in await self._overview.alive() if worker.tags]
        published = await self._overview.published_flows()
        flows: dict[str, PublishedFlow] = {}
        for name in sorted({name for worker in alive for name in worker.flows}):
            body = published.get(name)
            record = {} if body is None else msgspec.json.decode(body)
            knowing = tuple(worker for worker in alive if name in worker.flows)
            flows[name] = PublishedFlow(name, record, "" if body is None else mark_of(body), knowing)
        self._left = {
            name: PublishedFlow(name, msgspec.json.decode(body), mark_of(body), ())
            for name, body in published.items()
            if name not in flows
        }
        self._resolving = frozenset(tag for worker in alive if worker.resolves for tag in worker.tags)
        self._tasks = frozenset(name for worker in alive for name in worker.tasks)
        self._flows, self._read_at = flows, self._overview.monotonic()


def _refusal(name: str, error: pydantic.ValidationError) -> BadParams:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    problems: tuple[dict[str, object], ...] = tuple(
        {"type": one["type"], "loc": list(one["loc"]), "msg": one["msg"]} for one in found
    )
    said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:5])
    return BadParams(f"invalid request: the params do not fit flow {name}: {said}", problems)
