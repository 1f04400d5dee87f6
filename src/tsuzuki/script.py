"""A flow run from a script: in this process, durable, and going on where the last start of it stopped."""

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, overload

from tsuzuki import options as checks
from tsuzuki.backends import Claim, Query
from tsuzuki.clock import Clock
from tsuzuki.codec import params_digest
from tsuzuki.errors import RunFailure, RunHeld, RunInterrupted, RunStopped, TsuzukiError
from tsuzuki.excepthook import show_plainly
from tsuzuki.facts import Problem
from tsuzuki.flow import Flow
from tsuzuki.holders import waits
from tsuzuki.interrupts import interruptible, run_blocking
from tsuzuki.lifecycle import ACTIVE, Run, Status, poisoned
from tsuzuki.runs import Runs
from tsuzuki.watchers import Quiet, Watcher, tell
from tsuzuki.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

_GO_ON_WITH_POISON: Final = (
    "it is not gone on with by itself: say `tsuzuki resume {}`, or start anew with fresh=True or --fresh"
)
_OPTIONS: Final = ("fresh", "backend", "data_dir", "continues", "idempotency_key", "tags")


@dataclass(frozen=True, slots=True)
class EndedRun(Generic[R]):
    """A run that was carried out here: its row, and its result as the flow's annotation says."""

    row: Run
    result: R

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.row.id

    @property
    def number(self) -> int:
        """The number of the run in its store."""
        return self.row.number

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.row.status

    @property
    def done(self) -> int:
        """The number of items that succeeded."""
        return self.row.done

    @property
    def failed(self) -> int:
        """The number of items that failed."""
        return self.row.failed

    @property
    def skipped(self) -> int:
        """The number of items taken over from the run that this one continues."""
        return self.row.skipped

    @property
    def error(self) -> Problem | None:
        """What went wrong, if something did."""
        return self.row.error


class ScriptFlow(Flow[P, R]):
    """A flow with `run`: in process, durable; started again after a crash, it goes on."""

    @overload
    def run(self, *args: P.args, **kwargs: P.kwargs) -> EndedRun[R]: ...
    @overload
    def run(self, *, fresh: bool, **params: Any) -> EndedRun[R]: ...
    @overload
    def run(self, *, continues: str, **params: Any) -> EndedRun[R]: ...
    @overload
    def run(self, *, idempotency_key: str, **params: Any) -> EndedRun[R]: ...
    @overload
    def run(self, *, tags: Iterable[str], **params: Any) -> EndedRun[R]: ...
    @overload
    def run(self, *, backend: str, **params: Any) -> EndedRun[R]: ...
    @overload
    def run(self, *, data_dir: str, **params: Any) -> EndedRun[R]: ...
    def run(self, *args: Any, **kwargs: Any) -> EndedRun[R]:
        """Runs the flow to its end and gives the ended run; raises when it failed, was cancelled or interrupted.

        Started again with the same params, it continues the last run if that was interrupted, failed or was
        cancelled. Beside the flow's params it takes `fresh=True` (start anew), `continues=RUN` (skip the items
        that RUN has done), `idempotency_key`, `tags`, `backend` and `data_dir`.

        A type checker knows the params of a call without options. No type can say "these params and also those
        options" (a ParamSpec takes no further keywords), so with options it lets any params pass; they are checked
        when the run starts. `with_options(fresh=True)(…)` is the same call, typed to the end.
        """
        own = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs and name not in self.params.names}
        return self.with_options(**own)(*args, **kwargs)

    def with_options(
        self,
        *,
        fresh: bool = False,
        backend: str | None = None,
        data_dir: str | None = None,
        continues: str | None = None,
        idempotency_key: str | None = None,
        tags: Iterable[str] = (),
    ) -> Callable[P, EndedRun[R]]:
        """Gives `run` with its options set and the flow's own params typed."""
        checks.switch("run(fresh=…)", fresh)
        checks.text("run(backend=…)", backend, optional=True)
        checks.folder("run(data_dir=…)", data_dir)
        checks.spoken("run(idempotency_key=…)", idempotency_key, optional=True)
        if not isinstance(continues, str | int | None):
            raise checks.wrong("run(continues=…)", "the id or the number of a run, for example first.id", continues)
        options = StartOptions(fresh, continues, idempotency_key, checks.texts("run(tags=…)", tags))

        def run(*args: P.args, **kwargs: P.kwargs) -> EndedRun[R]:
            params = self._named(args, kwargs)

            async def start() -> EndedRun[R]:
                async with Runs.open(backend, data_dir=data_dir) as runs:
                    return await run_here(runs, self, params, options)

            try:
                ended: EndedRun[R] = run_blocking(start)
                return checked(ended)
            except RunInterrupted as stopped:  # the interpreter knows only the class itself by its exit code, 130
                interrupt = KeyboardInterrupt(str(stopped))
                show_plainly(interrupt)
                raise interrupt from None
            except (TsuzukiError, KeyboardInterrupt) as error:
                show_plainly(error)
                raise

        return run

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Gives the arguments by name."""
        if not args:
            return dict(kwargs)
        return inspect.signature(self.function).bind_partial(*args, **kwargs).arguments


class AsyncScriptFlow(ScriptFlow[P, R]):
    """A flow whose function is async: typed so that calling it gives something to await."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, object, R]:  # type: ignore[override] # see the class
        result: Coroutine[object, object, R] = super().__call__(*args, **kwargs)  # type: ignore[assignment] # its function is async
        return result


class FlowDecorator:
    """Makes flows with options."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        checks.known("@flow", options, ("name", "key", "tag"))
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> AsyncScriptFlow[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> ScriptFlow[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        cls = AsyncScriptFlow if inspect.iscoroutinefunction(function) else ScriptFlow
        return cls(function, **self._options)


@overload
def flow(function: Callable[P, Awaitable[R]], /) -> AsyncScriptFlow[P, R]: ...
@overload
def flow(function: Callable[P, R], /) -> ScriptFlow[P, R]: ...
@overload
def flow(*, name: str | None = ..., key: str | None = ..., tag: str = ...) -> FlowDecorator: ...
def flow(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a flow: `@flow` or `@flow(key="crawl:{site}")`."""
    decorate = FlowDecorator(options)
    return decorate if function is None else decorate(function)


@dataclass(frozen=True, slots=True)
class StartOptions:
    """How to start a run here."""

    fresh: bool = False
    continues: str | None = None
    idempotency_key: str | None = None
    tags: tuple[str, ...] = ()


class _TakenFirst(RunHeld):
    """Another process was quicker to go on with a run."""


async def run_here(
    runs: Runs,
    flow: Flow[..., Any],
    params: Mapping[str, Any],
    options: StartOptions | None = None,
    *,
    watcher: Watcher | None = None,
    clock: Clock | None = None,
    signals: bool = True,
) -> EndedRun[Any]:
    """Starts a run that belongs to this process, or goes on with the last one like it, and carries it out."""
    options, watcher = options or StartOptions(), watcher or Quiet()
    while True:
        async with Worker(runs.backend, [flow], clock=clock, tags=()) as worker:
            row, continued = await _begin(runs, worker.id, flow, params, options)
            watcher.began(row, continued=continued)
            left = await _worked_on(worker, flow, row, watcher, signals=signals)
        try:
            return await _ended(runs, flow, left)
        except _TakenFirst as taken:
            if not continued:
                raise
            tell(f"{taken}: starting anew")


async def carry_on(
    runs: Runs, flow: Flow[..., Any], row: Run, *, watcher: Watcher | None = None, clock: Clock | None = None
) -> EndedRun[Any]:
    """Goes on with a run in this process; gives it as it ended, or as it was left."""

    async def begin(worker: str) -> tuple[Run, bool]:
        del worker
        return row, True

    return await begun_here(runs, flow, begin, watcher=watcher, clock=clock)


async def begun_here(
    runs: Runs,
    flow: Flow[..., Any],
    begin: Callable[[str], Awaitable[tuple[Run, bool]]],
    *,
    watcher: Watcher | None = None,
    clock: Clock | None = None,
) -> EndedRun[Any]:
    """Carries out a run here that `begin` gives, and whether it goes on; it is told the worker that may claim it."""
    watcher = watcher or Quiet()
    async with Worker(runs.backend, [flow], clock=clock, tags=()) as worker:
        row, continued = await begin(worker.id)
        watcher.began(row, continued=continued)
        left = await _worked_on(worker, flow, row, watcher)
    return await _ended(runs, flow, left)


class _Left(NamedTuple):
    """A run as its worker left it, the attempt that was to be made, and whether that was interrupted."""

    row: Run
    attempt: int
    interrupted: bool


async def _worked_on(
    worker: Worker, flow: Flow[..., Any], row: Run, watcher: Watcher, *, signals: bool = True
) -> _Left:
    """Lets a worker carry out a run, which it perhaps holds already; with `signals`, Ctrl-C and SIGTERM stop it."""
    ours = Claim(row, worker.id, row.attempt) if row.holder == worker.id else None
    attempt = row.attempt if ours is not None or row.holder is None else row.attempt + 1
    interrupted = False
    if not row.status.terminal and (change := flow.changed_since(row.fingerprint)):
        watcher.changed(change)

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        worker.interrupt(at_once=False)
        watcher.stopping()

    with interruptible(interrupt) if signals else contextlib.nullcontext():
        row = await worker.carry_out(row.id, ours, watcher.waiting)
    return _Left(row, attempt, interrupted)


async def _ended(runs: Runs, flow: Flow[..., Any], left: _Left) -> EndedRun[Any]:
    row = left.row
    if not row.status.terminal:
        row = await runs.get(row.id)  # somebody may have cancelled it while it waited
    if row.holder is not None:
        held = _TakenFirst if row.attempt == left.attempt and not left.interrupted else RunHeld
        raise held(f"run {row.number} is being executed by another process ({row.holder}); wait for it, or cancel it")
    value = None
    if row.status is Status.COMPLETED:
        value = flow.codec.decode(await runs.result_data(row))
    return EndedRun(row, value)


async def _begin(
    runs: Runs, worker: str, flow: Flow[..., Any], params: Mapping[str, Any], options: StartOptions
) -> tuple[Run, bool]:
    """Finds the run to go on with, or makes one that the worker has from the first moment on."""
    data = flow.params.encode(params)
    if not options.fresh and options.continues is None:
        earlier = await _earlier(runs, flow.name, params_digest(data))
        if earlier is not None and poisoned(earlier):
            raise _failed(earlier, _GO_ON_WITH_POISON.format(earlier.number))
        if earlier is not None:
            try:
                return await _taken_up(runs, earlier), True
            except RunHeld:
                if await _earlier(runs, flow.name, params_digest(data)) is not None:
                    raise  # it waits in a living process; otherwise one has taken it up since we looked
    row = await runs.submit(
        flow,
        params,
        private=True,
        source=source_of(flow),
        continues=options.continues,
        idempotency_key=options.idempotency_key,
        tags=options.tags,
        claimed_by=worker,
    )
    return row, False


async def _taken_up(runs: Runs, earlier: Run) -> Run:
    """Resume an earlier run; one that waits goes on waiting until the same moment, unless another process does."""
    if earlier.status not in ACTIVE:
        return await runs.resume(earlier.id, by="script")
    if (waiter := await runs.holders.waiter(earlier)) is not None:
        raise waits(earlier, waiter)
    return earlier


async def _earlier(runs: Runs, flow: str, digest: str) -> Run | None:
    """Finds the last run of the same flow and params, if it did not end well and nobody executes it."""
    found = await runs.list(Query(flow=flow, digest=digest, private=True, limit=50))
    newest = max(found, key=lambda row: row.number, default=None)
    if newest is None:
        return None
    if newest.holder is not None:
        if newest.holder not in await runs.holders.gone():
            return None
        newest = await runs.get(newest.id)  # whoever held it may have ended it just before leaving
    return None if newest.status is Status.COMPLETED else newest


def source_of(flow: Flow[..., Any]) -> str:
    """Says where a flow can be found again: the file and the name of its function."""
    try:
        file = inspect.getsourcefile(flow.function)
    except TypeError:
        file = None
    name = getattr(flow.function, "__name__", flow.name)
    return f"{Path(file).resolve()}:{name}" if file and Path(file).exists() else ""


def checked(ended: EndedRun[R]) -> EndedRun[R]:
    """Gives a run that completed; raises for one that did not."""
    row = ended.row
    if row.status is Status.COMPLETED:
        return ended
    again = f"start it again to go on, or `tsuzuki resume {row.number}`"
    if row.status is Status.FAILED:
        raise _failed(row, _GO_ON_WITH_POISON.format(row.number) if poisoned(row) else again)
    if row.status is Status.CANCELLED:
        raise RunStopped(f"run {row.number} of {row.flow} was cancelled ({again})", row.id)
    raise RunInterrupted(f"run {row.number} of {row.flow} was interrupted ({again})", row.id)


def _failed(row: Run, again: str) -> RunFailure:
    """Makes the error of a failed run; the traceback of the user's own code is a note of it."""
    told = "" if row.error is None else f": {row.error.said}"
    failure = RunFailure(f"run {row.number} of {row.flow} failed{told}\n({again})", row.id)
    if row.error is not None and row.error.traceback:
        failure.add_note(f"in the flow:\n{row.error.traceback.rstrip()}")
    return failure
