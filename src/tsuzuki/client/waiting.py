"""The client for programs that wait: every call returns when it is done.

Made of awaiting.py by `python -m tests.house.references`; a test compares them.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from typing_extensions import Unpack

from tsuzuki import settings
from tsuzuki.client import calls, shapes, wheels
from tsuzuki.client.calls import ITEMS, PAGE, Call, RunFilters, Words
from tsuzuki.client.failures import HTTPStatusError, failure, unreachable
from tsuzuki.client.streams import LARGEST_EVENT, SILENCE, Following, Notice, Stream, Taken, Watching
from tsuzuki.client.trust import trusted

Answer = TypeVar("Answer")


class Client:
    """Speaks to a gateway; `with` it, or `close` it.

    The address and the API key are those of TSUZUKI_SERVER and TSUZUKI_API_KEY, unless given.
    """

    def __init__(
        self,
        server: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        api_key_header: str = "X-API-Key",
        notice: Notice | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.server = settings.server(server)
        self._patience = patience
        self.notice = notice
        """Is told when a stream has lost the gateway, and when it is connected again; None: it is logged."""
        key = settings.api_key(api_key, server)
        headers = {api_key_header: key} if key else {}
        self._http = httpx2.Client(
            base_url=self.server,
            headers=headers,
            timeout=timeout,
            transport=transport,
            verify=trusted(self.server),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        try:
            response = self._http.request(
                call.method,
                call.path,
                params=call.query,
                json=call.json,
                files=call.files,
                data=call.form,
                headers=call.headers,
                timeout=httpx2.USE_CLIENT_DEFAULT if call.timeout is None else call.timeout,
            )
        except httpx2.TransportError as error:
            raise unreachable(self.server, error) from error
        if not response.is_success:
            raise failure(response)
        return call.read(response.content)

    def _stream(self, stream: Stream[Taken]) -> Iterator[Taken]:
        """Gives what a stream brings, over as many connections as it takes."""
        stream.notice = self.notice or stream.notice
        while (call := stream.next()) is not None:
            try:
                with self._http.sse(
                    call.path, params=call.query, headers=call.headers, timeout=SILENCE, max_event_size=LARGEST_EVENT
                ) as source:
                    if not source.response.is_success:
                        source.response.read()
                        raise failure(source.response)
                    for event in source:
                        if (taken := stream.take(event)) is not None:
                            yield taken
                        if stream.over:
                            return
            except (httpx2.TransportError, HTTPStatusError) as error:
                time.sleep(stream.lost(error))

    # Runs

    def submit_run(
        self,
        flow_name: str,
        params: Mapping[str, Any] | None = None,
        tag: str | None = None,
        tags: Sequence[str] | None = None,
        *,
        key: str | None = None,
        priority: int | None = None,
        continues: str | None = None,
        not_before: str | None = None,
        idempotency_key: str | None = None,
    ) -> shapes.Accepted:
        """Starts a run; with an idempotency key a repeated call gives the same run."""
        return self._send(
            calls.submit_run(
                flow_name,
                params,
                tag,
                tags,
                key=key,
                priority=priority,
                continues=continues,
                not_before=not_before,
                idempotency_key=idempotency_key,
            )
        )

    def submit_runs(
        self, runs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> shapes.BatchAnswer:
        """Starts up to 1,000 runs; each is accepted or refused on its own."""
        return self._send(calls.submit_runs(runs, idempotency_key=idempotency_key))

    def submit_run_yaml(
        self, workflow_yaml: str | bytes, flow_name: str, tag: str | None = None, *, idempotency_key: str | None = None
    ) -> shapes.Accepted:
        """Starts a run of a flow written as YAML, under a name."""
        return self._send(calls.submit_run_yaml(workflow_yaml, flow_name, tag, idempotency_key=idempotency_key))

    def get_run(self, run_id: str | int, *, include: Words = None) -> shapes.RunSnapshot:
        """Gives a run as it is now; `include` adds "records" of its tasks, and all "params", however large."""
        return self._send(calls.get_run(run_id, include))

    def get_tasks(self, run_id: str | int) -> shapes.RunTasks:
        """Gives the tasks of a run with what is recorded of them."""
        return self._send(calls.get_tasks(run_id))

    def get_result(self, run_id: str | int) -> Any:
        """Gives what the flow returned; None while there is nothing."""
        return self._send(calls.get_result(run_id))

    def list_runs(self, *, limit: int | None = None, **filters: Unpack[RunFilters]) -> Iterator[shapes.RunSummary]:
        """Gives runs, the one that changed last first, page by page; at most `limit` of them."""
        left, cursor = limit, ""
        while left is None or left > 0:
            page = self._send(calls.list_runs(cursor=cursor, limit=min(left or PAGE, PAGE), **filters))
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            if not (cursor := page["next_cursor"] or ""):
                return

    def list_runs_vnext(
        self, *, cursor: str | None = None, limit: int = 50, **filters: Unpack[RunFilters]
    ) -> shapes.RunPage:
        """Gives one page of runs, and the cursor of the next."""
        return self._send(calls.list_runs(cursor=cursor, limit=limit, **filters))

    def cancel_run(
        self, run_id: str | int, wait: bool = False, timeout_sec: float | None = None, *, reason: str | None = None
    ) -> shapes.RunSnapshot:
        """Asks for a run to be cancelled; `wait` waits until it has ended, or the time is over."""
        snapshot = self._send(calls.cancel_run(run_id, reason))
        if wait and snapshot["status"] not in shapes.TERMINAL:
            for snapshot in self.watch_run(run_id, timeout_sec=timeout_sec):  # noqa: B007 - the last one counts
                pass
        return snapshot

    def resume_run(self, run_id: str | int, *, failed: bool = True) -> shapes.RunSnapshot:
        """Lets a run that failed or was cancelled go on; what failed is tried again, unless `failed` is False."""
        return self._send(calls.resume_run(run_id, failed=failed))

    def delete_run(self, run_id: str | int) -> None:
        """Removes a run that has ended, with all it left."""
        self._send(calls.delete_run(run_id))

    # What a run does

    def watch_run(
        self,
        run_id: str | int,
        *,
        include: Words = None,
        since: float | None = None,
        timeout_sec: float | None = None,
    ) -> Iterator[shapes.RunSnapshot]:
        """Gives the run as it is, then each change, until it ends or the time is over; connects again by itself."""
        watching = Watching(self.server, self._patience, run_id, include=include, since=since, timeout_sec=timeout_sec)
        yield from self._stream(watching)

    def events(self, run_id: str | int, *, after: int = 0) -> Iterator[shapes.Event]:
        """Gives the facts of a run after a position, then those that come, until it ends; connects again by itself."""
        yield from self._stream(Following(self.server, self._patience, run_id, after=after))

    def list_items(
        self,
        run_id: str | int,
        *,
        status: str | None = None,
        error: str | None = None,
        step: str | None = None,
        key: str | None = None,
        limit: int | None = None,
    ) -> Iterator[shapes.Item]:
        """Gives the recorded steps and items of a run, page by page: by status, part of an error or a key, or step."""
        left, cursor = limit, None
        while left is None or left > 0:
            most = ITEMS if left is None else min(left, ITEMS)
            page = self._send(
                calls.list_items(run_id, status=status, error=error, step=step, key=key, cursor=cursor, limit=most)
            )
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            if (cursor := page["next_cursor"]) is None:
                return

    def get_item(self, run_id: str | int, position: int) -> shapes.Outcome:
        """Gives one step or item by its position, with its inputs, its value and what it failed of."""
        return self._send(calls.get_item(run_id, position))

    def get_log(self, run_id: str | int, *, after: int = 0, limit: int = 500) -> shapes.LogPage:
        """Gives log lines of a run after a number."""
        return self._send(calls.get_log(run_id, after=after, limit=limit))

    # The system

    def list_workers(
        self,
        *,
        scope: str | None = None,
        state: str | None = None,
        include_hidden: bool = False,
        limit: int | None = None,
    ) -> list[shapes.Worker]:
        """Gives the workers that live, or all of them (`scope="all"`), the last seen first."""
        return self._send(calls.list_workers(scope=scope, state=state, include_hidden=include_hidden, limit=limit))

    def hide_worker(self, worker_id: str, *, hidden: bool = True) -> None:
        """Hides a worker from lists, or shows it again."""
        self._send(calls.hide_worker(worker_id, hidden=hidden))

    def list_flows(self) -> list[shapes.FlowView]:
        """Gives the flows that live workers know, with the schemas of their parameters."""
        return self._send(calls.list_flows())

    def get_metrics(self) -> str:
        """Gives the metrics, in the text format of Prometheus."""
        return self._send(calls.get_metrics())

    def health(self) -> dict[str, Any]:
        """Says whether the gateway lives."""
        return self._send(calls.health())

    def list_letters(self, *, limit: int | None = None) -> Iterator[shapes.Letter]:
        """Gives the dead letters, the newest first, page by page."""
        left, cursor = limit, None
        while left is None or left > 0:
            page = self._send(calls.list_letters(cursor=cursor, limit=min(left or PAGE, PAGE)))
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            if (cursor := page["next_cursor"]) is None:
                return

    def get_letter(self, letter_id: str) -> shapes.Letter:
        """Gives a dead letter."""
        return self._send(calls.get_letter(letter_id))

    def replay_letter(self, letter_id: str) -> shapes.Accepted:
        """Resumes the run of a dead letter, and drops the letter."""
        return self._send(calls.replay_letter(letter_id))

    def drop_letter(self, letter_id: str) -> None:
        """Drops a dead letter; its run stays."""
        self._send(calls.drop_letter(letter_id))

    # Wheels

    def list_wheels(self) -> list[shapes.WheelView]:
        """Gives the wheels that workers install, by name."""
        return self._send(wheels.list_wheels())

    def list_wheel_history(
        self, limit: int | None = None, wheel_name: str | None = None, action: str | None = None
    ) -> list[shapes.WheelEvent]:
        """Gives which wheels came and went, the newest first; of one wheel, or `upload` or `delete` alone."""
        return self._send(wheels.list_wheel_history(limit, wheel_name, action))

    def upload_wheel(
        self, filename: str, data: wheels.Content, replace: bool = True, tags: Sequence[str] | None = None
    ) -> shapes.WheelView:
        """Uploads a wheel, for workers with one of the tags or for all; a path or an open file is sent in pieces."""
        with wheels.opened(data) as content:
            return self._send(wheels.upload_wheel(filename, content, replace, tags))

    def download_wheel(self, wheel_name: str, target: str | PathLike[str]) -> None:
        """Downloads a wheel into a file, which is there once all of it has come and its digest is right."""
        try:
            with self._http.stream("GET", wheels.path_of(wheel_name)) as response:
                if not response.is_success:
                    response.read()
                    raise failure(response)
                with wheels.Saving(Path(target), response.headers.get(wheels.DIGEST, "")) as file:
                    for piece in response.iter_bytes():
                        file.write(piece)
        except httpx2.TransportError as error:
            raise unreachable(self.server, error) from error

    def delete_wheel(self, wheel_name: str) -> shapes.DeletedWheel:
        """Deletes a wheel; workers forget it before their next run."""
        return self._send(wheels.delete_wheel(wheel_name))
