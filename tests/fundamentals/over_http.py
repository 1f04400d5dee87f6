"""The use cases of `Runs` through a client and a real gateway; what HTTP has no word for goes to the store itself.

Whatever is asked goes over the wire; the row that a test looks at is read from the store, which must agree.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tsuzuki import Runs, Worker, options
from tsuzuki.backends import Backend, Entry, Query
from tsuzuki.client import AsyncClient
from tsuzuki.client.failures import HTTPStatusError
from tsuzuki.codec import params_digest, plain_params
from tsuzuki.errors import BadRequest, KeyHeld, MoveRefused, RunHeld, RunNotFound, TsuzukiError
from tsuzuki.flow import Flow
from tsuzuki.gateway import create_app
from tsuzuki.gateway.options import Options
from tsuzuki.gateway.server import make_server
from tsuzuki.lifecycle import Run, RunUpdateResult, Status, poisoned
from tsuzuki.script import EndedRun, StartOptions, run_here

ERRORS: dict[str, type[TsuzukiError]] = {
    kind.error_id: kind for kind in (RunNotFound, MoveRefused, RunHeld, BadRequest)
}
SPOKEN = {"tag", "tags", "priority", "key", "idempotency_key", "continues", "not_before"}
"""What a submission may say over HTTP."""
HIGHEST = 1_000_000
"""The highest priority over HTTP."""
LISTED = ("flow", "tag", "label", "key", "text", "updated_after")


class RemoteRuns(Runs):
    """The runs of a store, as whoever has only the address of a gateway sees them."""

    def __init__(self, backend: Backend, client: AsyncClient) -> None:
        super().__init__(backend)
        self.client = client

    async def submit(self, flow: Flow[..., Any] | str, params: Mapping[str, Any] | None = None, **more: Any) -> Run:
        said = {name: value for name, value in more.items() if value not in (None, "", (), False)}
        if not set(said) <= SPOKEN or not speakable(flow, params, more):
            return await super().submit(flow, params, **more)
        if (moment := said.get("not_before")) is not None:
            said["not_before"] = moment.isoformat()
        if isinstance(flow, Flow):
            data = flow.params.encode(params or {})
            params = msgspec.json.decode(data)
            said.setdefault("key", flow.key_for(flow.params.decode(data)))
            said.setdefault("tag", None if flow.tag == "default" else flow.tag)
        name = flow if isinstance(flow, str) else flow.name
        with_labels = {**said, "tags": list(said.get("tags", ()))}
        try:
            accepted = await self.client.submit_run(name, params, **with_labels)
        except HTTPStatusError as error:
            if [flaw["type"] for flaw in error.errors] == ["idempotency_key_reused"]:
                return await super().submit(flow, params, **more)  # HTTP refuses it; the store gives the first run
            raise named(error) from error
        return await self._row(accepted["run_id"])

    async def get(self, reference: str | int) -> Run:
        text = str(reference)
        if not text.isdigit() and len(text) != len("6f1e0b3c-2b0f-4a55-9a43-0d5a3b1f6f3e"):
            return await super().get(reference)  # the beginning of an id
        try:
            seen = await self.client.get_run(text)
        except HTTPStatusError:
            return await super().get(reference)  # it must not be there either, and tells so in its own words
        row = await self._row(seen["run_id"])
        assert seen["number"] == row.number
        return row

    async def list(self, query: Query | None = None) -> list[Run]:
        query = query or Query()
        rows = await super().list(query)
        unspoken = msgspec.structs.replace(
            query, status=(), limit=50, **dict.fromkeys(LISTED, None), private=None, before=None
        )
        if unspoken == Query():
            filters: dict[str, Any] = {
                name: getattr(query, name) for name in LISTED if getattr(query, name) is not None
            }
            if query.status:
                filters["status"] = [status.value for status in query.status]
            listed = [run["run_id"] async for run in self.client.list_runs(limit=query.limit, **filters)]
            if query.private is None and query.before is None:
                assert listed == [row.id for row in await super().list(query)] or listed == [row.id for row in rows]
        return rows

    async def cancel(self, reference: str | int, *, reason: str = "", by: str = "") -> tuple[RunUpdateResult, Run]:
        if by:  # who asks is known by their key
            return await super().cancel(reference, reason=reason, by=by)
        before = await super().get(reference)
        try:
            after = await self.client.cancel_run(before.id, reason=reason or None)
        except HTTPStatusError as error:
            raise named(error) from error
        over = before.status.terminal or (after["status"] == "COMPLETED" and not after.get("cancel_requested_at"))
        return RunUpdateResult.ALREADY_TERMINAL if over else RunUpdateResult.UPDATED, await self._row(before.id)

    async def resume(self, reference: str | int, *, failed: bool = True, by: str = "", share: bool = False) -> Run:
        if by or (await super().get(reference)).private:  # over HTTP it would be left to the workers
            return await super().resume(reference, failed=failed, by=by, share=share)
        try:
            return await self._row((await self.client.resume_run(reference, failed=failed))["run_id"])
        except HTTPStatusError as error:
            raise named(error) from error

    async def wait(self, reference: str | int) -> Run:
        row = await super().get(reference)
        async for seen in self.client.watch_run(row.id):
            if seen["status"] in ("COMPLETED", "FAILED", "CANCELLED"):
                break
        return await self._row(row.id)

    async def result(self, reference: str | int) -> Any:
        value = await self.client.get_result(reference)
        assert value == await super().result(reference)
        return value

    async def follow(self, reference: str | int, *, after: int = 0) -> AsyncIterator[Entry]:
        row = await super().get(reference)
        async for event in self.client.events(row.id, after=after):
            [entry] = await self.backend.fetch(row.id, [event["position"]])
            yield entry

    async def _row(self, run_id: str) -> Run:
        row = await self.backend.get(run_id)
        assert row is not None
        return row

    async def carried_out(self, flow: Flow[..., Any], params: dict[str, Any], how: StartOptions) -> EndedRun[Any]:
        """Submits a run, or resumes the last one like it, and lets a worker carry it out, as a script would."""
        row = await self._begun(flow, params, how)
        if row is None:
            return await run_here(self, flow, params, how)
        async with Worker(self.backend, [flow], tags=[row.tag]) as worker:
            working = asyncio.create_task(worker.run())
            waiting = asyncio.create_task(self.wait(row.id))
            await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
            worker.stop()
            await working
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        row = await self._row(row.id)
        done = row.status is Status.COMPLETED
        value = flow.codec.decode(msgspec.json.encode(await self.client.get_result(row.id))) if done else None
        return EndedRun(row, value)

    async def _begun(self, flow: Flow[..., Any], params: dict[str, Any], how: StartOptions) -> Run | None:
        digest = params_digest(flow.params.encode(params))
        alike = await super().list(Query(flow=flow.name, digest=digest, limit=1))
        if alike and poisoned(alike[0]):
            return None  # only people may let it go on; a script says so
        if alike and alike[0].status in (Status.FAILED, Status.CANCELLED) and not how.fresh and not how.continues:
            return await self.resume(alike[0].id)
        more = {"continues": how.continues, "idempotency_key": how.idempotency_key, "tags": how.tags}
        return await self.submit(flow, params, **more)


def speakable(flow: Flow[..., Any] | str, params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> bool:
    """Tells whether a submission can be said over HTTP at all; what no way to submit takes is told by the nearest."""
    fields = {"tag": None, "tags": (), "priority": 0, "key": None, "idempotency_key": None}
    moment = more.get("not_before")
    try:
        options.submission(*(more.get(name, default) for name, default in fields.items()))
        if isinstance(flow, str):
            options.spoken("the flow name of a run", flow)
            plain_params(params or {})
    except TsuzukiError:
        return False
    return abs(more.get("priority", 0)) <= HIGHEST and (moment is None or moment.tzinfo is not None)


def named(error: HTTPStatusError) -> TsuzukiError:
    """Gives the error that an answer tells of."""
    if error.error_id == KeyHeld.error_id:
        return KeyHeld(error.detail, error.problem["run_id"])
    return ERRORS.get(error.error_id, TsuzukiError)(error.detail)


@asynccontextmanager
async def remote(address: str, backend: Backend) -> AsyncIterator[RemoteRuns]:
    """Serves a store through a gateway with its own way to it, on a free port, to a client."""
    chosen = Options()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = make_server(create_app(backend=address, options=chosen), chosen, log_level="warning")
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.002)
        async with AsyncClient(f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            yield RemoteRuns(backend, client)
        server.should_exit = True
        await serving
