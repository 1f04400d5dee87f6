"""What one can do with runs: submit, get, list, follow, wait, cancel, resume, read, export, purge.

The command line, the gateway and the SDK call only these.
"""

import asyncio
import hashlib
import logging
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tsuzuki import facts as f
from tsuzuki import options, settings
from tsuzuki.backends import Backend, Check, Entry, Line, Query
from tsuzuki.backends.address import open_backend
from tsuzuki.clock import Clock
from tsuzuki.codec import params_digest, plain_params
from tsuzuki.errors import BadUsage, KeyHeld, MoveRefused, RunHeld, RunNotFound
from tsuzuki.flow import Flow
from tsuzuki.holders import Holders
from tsuzuki.inputs import given_to
from tsuzuki.lifecycle import ACTIVE, TERMINAL, Run, RunUpdateResult, is_waiting, moment, stamp
from tsuzuki.outages import for_moments, patiently

logger: Final = logging.getLogger("tsuzuki.runs")

_PAGE: Final = 2000
_ID_LENGTH: Final = 36
_PAUSE_GROWS, _LONGEST_PAUSE = 0.001, 0.02
"""By how much the pause grows with each look at a run that has not ended, and how long it gets (seconds)."""


class Runs:
    """The runs of one store."""

    def __init__(self, backend: Backend, *, clock: Clock | None = None) -> None:
        self.backend = backend
        self._clock = clock or backend.clock
        self.holders = Holders(backend)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str | None = None,
        *,
        data_dir: str | None = None,
        clock: Clock | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator["Runs"]:
        """Opens a store by its address, or the default one, and closes it at the end; `timeout` is for its server."""
        options.text("the address of Runs.open(…)", url, optional=True)
        options.folder("Runs.open(data_dir=…)", data_dir)
        backend = await open_backend(settings.backend_url(url, data_dir), clock=clock, timeout=timeout)
        try:
            yield cls(backend, clock=clock)
        finally:
            await backend.close()

    def now(self) -> float:
        """Gives the time by the clock of these runs."""
        return self._clock.now()

    # Starting

    async def submit(
        self,
        flow: Flow[..., Any] | str,
        params: Mapping[str, Any] | None = None,
        *,
        tag: str | None = None,
        tags: Sequence[str] = (),
        priority: int = 0,
        key: str | None = None,
        idempotency_key: str | None = None,
        continues: str | None = None,
        not_before: datetime | None = None,
        private: bool = False,
        source: str = "",
        tenant: str = "",
        api_key: str = "",
        workflow: str = "",
        claimed_by: str = "",
    ) -> Run:
        """Accepts a run; once this returns, it will be executed. The params are checked where the flow is known.

        A `workflow` is the YAML text of a flow that the run brings with it. Of all submissions with one
        `idempotency_key` the first wins: the others give its run, and warn where their flow or params are not its own.
        A `priority` lies between -2**31 and 2**31. `claimed_by` names the worker that has it from the first moment.
        """
        if not isinstance(flow, str | Flow):
            raise options.wrong("what submit(…) starts", "a flow (a function under @flow) or the name of one", flow)
        options.submission(tag, tags, priority, key, idempotency_key)
        name = flow if isinstance(flow, str) else flow.name
        options.spoken("the flow name of a run", name)
        data, tag, key = _said_by(flow, params or {}, tag, key)
        now = self._clock.now()
        row = Run(
            id=str(uuid.uuid4()),
            flow=name,
            created_at=stamp(now),
            params=msgspec.Raw(data),
            digest=params_digest(data),
            tag=tag,
            tags=tuple(tags),
            priority=int(priority),
            key=key,
            idempotency_key=idempotency_key,
            tenant=tenant,
            private=private,
            source=source,
            continues=None if continues is None else await self._continued(continues, name),
            not_before=0.0 if not_before is None else moment(not_before, "not_before"),
            workflow=hashlib.sha256(workflow.encode()).hexdigest() if workflow else "",
            workflow_bytes=len(workflow.encode()),
            api_key=api_key,
        )
        fact = f.Submitted(at=now, flow=name, params=msgspec.Raw(data), tag=tag, workflow=workflow)
        return await self._accepted(row, fact, _claimed(flow, claimed_by, now))

    async def _continued(self, reference: str, flow: str) -> str:
        """Return the id of the run to continue; one of another flow is refused, since its items are other items."""
        row = await self.get(reference)
        if row.flow != flow:
            told = f"run {row.number} is a run of {row.flow}, which a run of {flow} cannot continue"
            raise BadUsage(f"{told}. Name a run of {flow}.")
        return row.id

    async def _accepted(self, row: Run, fact: f.Submitted, claimed: f.Claimed | None) -> Run:
        try:
            accepted = await self.backend.submit(row, fact, claimed=claimed)
        except KeyHeld as held:
            raise await self.holders.explained(held) from None
        if (accepted.flow, accepted.digest) != (row.flow, row.digest):
            text = "idempotency key %r: run %s of %s has it, with another flow or params; no new run is made"
            logger.warning(text, row.idempotency_key, accepted.number, accepted.flow)
        return accepted

    # Looking

    async def get(self, reference: str | int) -> Run:
        """Finds a run by its number, its id, or the beginning of its id."""
        text = str(reference).strip()
        row = await self._find(text)
        if row is None:
            raise RunNotFound(f"run not found: {text!r}; `tsuzuki list` shows the runs of {self.backend.url}")
        return row

    async def _find(self, text: str) -> Run | None:
        if text.isascii() and text.isdigit():
            found = await self.backend.search(Query(number=int(text), limit=1))
            if found:
                return found[0]
        if len(text) == _ID_LENGTH:
            return await self.backend.get(text)
        if not re.fullmatch(r"[0-9a-f-]{4,35}", text):
            return None
        found = await self.backend.search(Query(id_prefix=text, limit=2))
        if len(found) > 1:
            raise BadUsage(f"several runs begin with {text!r}: give more of the id, or the number")
        return found[0] if found else None

    async def list(self, query: Query | None = None) -> list[Run]:
        """Lists runs, the one that changed last first."""
        return await self.backend.search(query or Query())

    async def result(self, reference: str | int) -> Any:
        """Gives the result of a run as plain JSON types."""
        return msgspec.json.decode(await self.result_data(await self.get(reference)))

    async def result_data(self, row: Run) -> bytes:
        """Gives the JSON of a run's result, wherever it is kept."""
        if row.blob:
            return await self.backend.get_blob(row.id, row.blob)
        return b"null" if row.result is None else bytes(row.result)

    # Following

    async def follow(self, reference: str | int, *, after: int = 0) -> AsyncIterator[Entry]:
        """Gives every fact after a position, in order, as it comes, until the run has ended; it bridges outages."""
        row = await patiently(self.get, reference)
        position = after
        while True:
            entries = await patiently(self.backend.read, row.id, after=position, limit=_PAGE)
            for entry in entries:
                position = entry.position
                yield entry
            if entries:
                continue
            current = await patiently(self.backend.get, row.id)
            if current is None or (current.status in TERMINAL and current.position <= position):
                return
            await patiently(self.backend.changed, row.id, position, 1.0)

    async def follow_log(self, reference: str | int, *, after: int = 0) -> AsyncIterator[Line]:
        """Gives every log line after a number, as it comes, until the run has ended; it bridges outages."""
        row = await patiently(self.get, reference)
        number = after
        while True:
            current = await patiently(self.backend.get, row.id)
            lines = await patiently(self.backend.read_log, row.id, after=number)
            for line in lines:
                number = line.number
                yield line
            if lines:
                continue
            if current is None or current.status in TERMINAL:
                return
            await patiently(self.backend.changed, row.id, current.position, 0.25)

    async def wait(self, reference: str | int) -> Run:
        """Waits until a run has ended, and bridges outages; gives its row."""
        row = await patiently(self.get, reference)
        pause = 0.0
        while row.status not in TERMINAL:
            await patiently(self.backend.changed, row.id, row.position, 1.0)
            await asyncio.sleep(pause)  # a run that changes a thousand times a second is not read as often
            pause = min(pause + _PAUSE_GROWS, _LONGEST_PAUSE)
            row = await patiently(self.get, row.id)
        return row

    # Asking

    async def cancel(self, reference: str | int, *, reason: str = "", by: str = "") -> tuple[RunUpdateResult, Run]:
        """Asks for a run to be cancelled; where nobody executes it, it is cancelled at once."""
        row = await for_moments(self.get, reference)
        ask = f.CancelAsked(at=self._clock.now(), attempt=row.attempt, by=by, reason=reason)
        answer, after = await self.backend.ask(row.id, ask, dead=await for_moments(self.holders.gone_from, row))
        return answer, after or row

    async def resume(self, reference: str | int, *, failed: bool = True, by: str = "", share: bool = False) -> Run:
        """Lets a run that failed or was cancelled go on; what failed is tried again, unless `failed` is False.

        A run that waits for a time is woken: it continues now, in the process that waits with it where there is one.
        A run that a dead process left behind is simply claimed again: there is nothing to ask. With `share`, a run that
        a script started is left to the workers, if one of them knows its flow.
        """
        row = await for_moments(self.get, reference)
        if row.status in ACTIVE:
            if await self.holders.lives(row):
                who = f"run {row.number} is {row.status}: a living worker ({row.holder}) executes it"
                raise RunHeld(f"{who}; wait for it, or cancel it")
            if share and row.private and await self.holders.waiter(row) is not None:
                share = False
            if not (share and row.private) and not is_waiting(row):
                return row
        share = share and row.private
        if share and not await self.holders.takers(row):
            ways = f"go on with it where it was started (tsuzuki resume {row.number}), or start a worker with its flow"
            raise MoveRefused(
                f"a script started run {row.number}, and no worker for {row.tag!r} knows {row.flow}: {ways}"
            )
        ask = f.ResumeAsked(at=self._clock.now(), attempt=row.attempt, by=by, failed=failed, share=share)
        try:
            _, after = await self.backend.ask(row.id, ask, dead=await for_moments(self.holders.gone_from, row))
        except KeyHeld as held:
            raise await self.holders.explained(held) from None
        return after or row

    # Reading

    async def journal(self, reference: str | int) -> AsyncIterator[Entry]:
        """Gives the facts of a run as they are now, in order."""
        row, position = await self.get(reference), 0
        while entries := await self.backend.read(row.id, after=position, limit=_PAGE):
            for entry in entries:
                yield entry
            position = entries[-1].position

    async def log(self, reference: str | int) -> AsyncIterator[Line]:
        """Gives the log lines of a run as they are now."""
        row, number = await self.get(reference), 0
        while lines := await self.backend.read_log(row.id, after=number):
            for line in lines:
                yield line
            number = lines[-1].number

    async def items(self, reference: str | int, *, failed: bool = False) -> AsyncIterator[dict[str, Any]]:
        """Gives the recorded steps and items of a run, or only those that failed and have not succeeded since."""
        row, maps = await self.get(reference), dict[str, f.StepStarted]()
        wanted = await self._failures(row.id) if failed else None
        async for entry in self.journal(row.id):
            fact = entry.fact
            if isinstance(fact, f.StepStarted) and fact.map:
                maps[fact.step] = fact
            elif isinstance(fact, f.Outcome) and (wanted is None or entry.position in wanted):
                yield _shown(entry, fact, maps.get(fact.step))

    async def _failures(self, run_id: str) -> frozenset[int]:
        """Gives the positions of the failures that no later outcome has replaced."""
        failures, position = dict[tuple[str, str], int](), 0
        while marks := await self.backend.outcomes(run_id, after=position):
            for mark in marks:
                if mark.kind in f.FAILURES:
                    failures[mark.step, mark.key] = mark.position
                else:
                    failures.pop((mark.step, mark.key), None)
            position = marks[-1].position
        return frozenset(failures.values())

    async def value(self, reference: str | int, fact: f.Fact) -> Any:
        """Gives the value of a recorded success as plain JSON types, wherever it is kept."""
        row = await self.get(reference)
        blob = getattr(fact, "blob", "")
        data = await self.backend.get_blob(row.id, blob) if blob else bytes(getattr(fact, "result", b"null"))
        return msgspec.json.decode(data)

    async def export(self, reference: str | int) -> AsyncIterator[dict[str, Any]]:
        """Gives a run as plain records: the row, then every fact, with the values of blobs put in their place."""
        row = await self.get(reference)
        yield {"record": "run", **plain(row)}
        async for entry in self.journal(row.id):
            record = {"record": "fact", "position": entry.position, **f.plain(entry.fact)}
            if record.get("blob"):
                record["result"] = msgspec.json.decode(await self.backend.get_blob(row.id, record["blob"]))
            yield record

    # Keeping house

    async def purge(self, *, older_than: datetime) -> int:
        """Removes the runs that ended before a time, with all they left."""
        limit = stamp(moment(older_than, "older_than"))
        count = 0
        query = Query(status=tuple(sorted(TERMINAL)), finished_before=limit, limit=500, params=False)
        while rows := await self.backend.search(query):
            removed = await self.backend.purge([row.id for row in rows])
            count += removed
            if not removed:  # what is listed cannot be removed, perhaps since it was resumed: older runs may be
                query = replace(query, before=(rows[-1].updated_at, rows[-1].id))
        return count

    async def rebuild(self) -> int:
        """Folds the journal of every run anew and writes its row; gives the number of rows that were wrong."""
        wrong, before = 0, None
        while rows := await self.backend.search(Query(before=before, limit=50)):
            before = (rows[-1].updated_at, rows[-1].id)
            for row in rows:
                if row.status in TERMINAL or not await self.holders.lives(row):  # who lives keeps its own row right
                    wrong += await self._rebuilt(row)
        return wrong

    async def _rebuilt(self, row: Run) -> bool:
        after = await self.backend.rebuild(row.id)
        return after is not None and replace(after, updated_at=0.0) != replace(row, updated_at=0.0)

    async def compact(self) -> Check:
        """Gives the space of what was removed back, at once and whole; others who write wait meanwhile."""
        return await self.backend.compact()

    async def examine(self) -> Sequence[Check]:
        """Examines the store."""
        return await self.backend.examine()


def _said_by(
    flow: Flow[..., Any] | str, params: Mapping[str, Any], tag: str | None, key: str | None
) -> tuple[bytes, str, str | None]:
    """Gives the params, the tag and the key of a run: as asked for, else as its flow says, where that is known."""
    if isinstance(flow, str):
        data, own = plain_params(params), "default"
    else:
        data, own = flow.params.encode(params), flow.tag
        key = flow.key_for(flow.params.decode(data)) if key is None else key
    return data, tag or (settings.default_tag() if own == "default" else own), key


def _claimed(flow: Flow[..., Any] | str, worker: str, at: float) -> f.Claimed | None:
    code = "" if isinstance(flow, str) else flow.fingerprint
    return f.Claimed(at=at, worker=worker, fingerprint=code) if worker else None


def plain(row: Run) -> dict[str, Any]:
    """Gives a row as plain JSON types, for people and programs."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(row))
    return data


def _shown(entry: Entry, fact: f.Outcome, mapped: f.StepStarted | None) -> dict[str, Any]:
    given = given_to(fact, mapped)
    shown: dict[str, Any] = {
        "position": entry.position,
        "kind": f.kind(fact),
        "task": fact.name or f.name_of(mapped),
        "key": fact.key,
        "attempt": fact.attempt,
        "tries": fact.tries,
        "took": round(fact.took, 6),
        "at": stamp(fact.at),
        "inputs": None if given is None else msgspec.json.decode(given),
        "inputs_truncated": fact.inputs_cut,
    }
    if isinstance(fact, f.ItemFailed | f.StepFailed):
        shown["error"] = fact.error.said
    return shown
