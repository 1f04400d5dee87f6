"""The frames inside a run: they fix who a call is at the moment it is made, and answer it durably."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from tsuzuki import facts as f
from tsuzuki.blocking import Bridge, Pumped
from tsuzuki.cautions import warn_of_unsaid
from tsuzuki.content import digest
from tsuzuki.context import FRAME, AsyncFunction, Callee, MapOptions, changed, in_async_code, sayable
from tsuzuki.errors import BadUsage
from tsuzuki.execution import PASSING, Execution
from tsuzuki.flow import Task
from tsuzuki.identity import Unsaid, arguments, in_few_bytes, plainly, spelled_out, step_id, unchangeable
from tsuzuki.invoking import Call, Named, Unawaited, refuse_when_stopping
from tsuzuki.maps import Map, MapCall, run_map, stream_map
from tsuzuki.runcontext import RunContext, trace_of
from tsuzuki.runlog import filled
from tsuzuki.steps import call
from tsuzuki.streams import Sink, Source
from tsuzuki.winding import entrust, held_back, relieve

_AT_HAND: Final = (list, tuple, range, dict, set, frozenset)
"""Inputs that can be read at any time, by anybody."""
_DEEP: Final = 25
"""After so many steps inside steps the next one begins a new stack: Python's has room for about 150."""


_ALIKE: Final = (
    "several branches of this flow begin with {0}.map over a stream, and can only be told apart by their order. "
    "When the run goes on after a crash, that order may be another one, and one may get the results of another: "
    "give each of them a name, {0}.map(…, name=…)"
)


class RunFrame(msgspec.Struct, eq=False):
    """The frame of a flow, a step or an item in a run."""

    run: Execution
    origin: str
    """The step it was made as; where it is made again, it is recorded as another one."""
    step: str
    key: str
    name: str
    blocking: bool
    since: int = 0
    item: bool = False
    inside: int = 0
    """How many calls and maps that were made in it are under way."""
    tries: int = 1
    depth: int = 0
    """How many steps lie around it in the asyncio task that they share."""
    saved: list[f.Artifact] = msgspec.field(default_factory=list)
    spent: list[f.Spent] | None = None
    progress: str = ""
    """What its progress is called in the log of the run, where it has told any."""
    owner: asyncio.Task[Any] | None = None
    unawaited: Unawaited | None = None
    _made: dict[tuple[str | bytes, ...], int] | None = None
    _unnamed: dict[tuple[str, str], asyncio.Task[Any]] | None = None
    _branches: WeakKeyDictionary[asyncio.Task[Any], str] | None = None

    @property
    def id(self) -> str:
        """What the calls made in this frame know it by; when it is made again, it is recorded under another id."""
        return digest(self.origin, self.key) if self.item else self.origin

    @property
    def context(self) -> RunContext:
        """What `current()` gives here."""
        return RunContext(self.run, self)

    def enter(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], is_async: bool
    ) -> Any:
        """Calls the function of another flow as a part of this one."""
        if is_async:
            return self.later(getattr(function, "__name__", "flow"), partial(function, **kwargs), *args)
        return function(*args, **kwargs)

    def later(self, name: str, function: AsyncFunction, *args: Any) -> Any:
        """Return the coroutine of an async function, which is missed when it is not awaited."""
        if self.unawaited is None:
            self.unawaited = {}
        named = Named(name)
        work = self.unawaited[named] = _begun(self.unawaited, named, function, args)
        return work

    def then(self, call: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
        """Return a coroutine that awaits a call and changes its value; it is missed in the place of that call."""
        work = changed(call, change)
        unawaited = self.unawaited or {}
        for named in reversed(unawaited):  # the last one, as a rule
            if unawaited[named] is call:
                unawaited[named] = work
                break
        return work

    def wait_for(self, function: AsyncFunction, *args: Any) -> Any:
        """Return the result of an async function, in a sync one; the calls it makes count as made here."""
        if self._made is None:
            self._made = {}

        async def work() -> Any:
            FRAME.set(msgspec.structs.replace(self, blocking=False, owner=asyncio.current_task(), unawaited=None))
            return await function(*args)

        return Bridge(self.run).wait(work())

    def position_of(self, task: Callee, key: str) -> int:
        """Return where the journal has the outcome of the next call under a key that is made here; 0 if it has none."""
        content = _content_of_a_key(sayable(key))
        step = step_id(self.id, task.name, content, (self._made or {}).get((task.name, content), 0))
        _, recorded = self.run.replay.answer(step, sayable(key), self.since)
        return 0 if recorded is None else recorded.position

    async def afresh(self) -> "RunFrame":
        """Return a frame whose calls count as made here, where none was made before: they find what is recorded."""
        await self.run.catch_up()
        return RunFrame(self.run, self.origin, self.step, self.key, self.name, False, self.since, self.item)

    def spend(self, spent: f.Spent) -> None:
        """Takes note of what the call has used that is paid for: it becomes a part of its outcome."""
        if self.spent is None:
            self.spent = []
        self.spent.append(spent)

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Lets the end of a run that is being stopped wait for what is done inside, as it does for calls."""
        entered = self.run.enter(asyncio.current_task())
        try:
            yield
        finally:
            self.run.leave(entered)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Says that a call only waits for a time to come: a run that winds down does not wait for that."""
        if not self.step:
            yield
            return
        self.inside = entrust(self.run, self.inside)
        self.run.resting += 1
        try:
            yield
        finally:
            self.run.resting -= 1
            self.inside = relieve(self.run, self.inside)

    def take_record(self, record: logging.LogRecord) -> None:
        """Takes a line that was written with standard logging."""
        args = record.args if isinstance(record.args, tuple) else (record.args,)
        self.run.log.line(
            filled(record.msg, args if record.args else ()) + trace_of(record.exc_info),
            record.levelname.lower(),
            step=self.step,
            name=self.name,
            key=self.key,
            logger=record.name,
        )

    def blocks(self) -> bool:
        """Tells whether a call made here waits for its answer: in a sync function, and on a thread of an async one."""
        return self.blocking or not in_async_code()

    # Who a call is

    def _ordinal(self, *call: str | bytes) -> int:
        """Counts the equal calls made before."""
        if self._made is None:
            self._made = {}
        count = self._made.get(call, 0)
        self._made[call] = count + 1
        return count

    def _task(self, *, blocks: bool) -> "asyncio.Task[Any] | None":
        """Gives the asyncio task of a call that is not made in the frame's own one."""
        task = None if blocks else asyncio.current_task(self.run.loop)
        return None if task is self.owner else task

    def _branch(self, *, blocks: bool) -> str:
        """Names the branch a call is made in: none for the frame's own task, else its first durable call.

        Coroutines that the flow gathers run as tasks of their own, whose calls interleave in any order; within
        one of them the order is the code's own.
        """
        task = self._task(blocks=blocks)
        return "" if task is None or self._branches is None else self._branches.get(task, "")

    def _input_of_a_branch(self, items: Iterable[Any] | AsyncIterator[Any], *, blocks: bool) -> str:
        """Names a branch that begins with a map by the input of it: its order among the others means nothing.

        An input that is read on the way cannot be known yet; `name=` tells such maps apart.
        """
        if self._task(blocks=blocks) is None or not isinstance(items, _AT_HAND):
            return ""
        return digest(arguments((items if isinstance(items, set | frozenset) else list(items),), {}))

    def _tell_alike(self, name: str, mark: str, *, blocks: bool) -> None:
        """Tells of maps over streams that begin several branches: only their order tells which is which."""
        task = self._task(blocks=blocks)
        if task is None:
            return
        if self._unnamed is None:
            self._unnamed = {}
        if self._unnamed.setdefault((name, mark), task) is not task and name not in self.run.calls.told:
            self.run.calls.told.add(name)
            self.run.log.line(_ALIKE.format(name), "warning", step=self.step, name=name)

    def _opens(self, step: str, *, blocks: bool) -> None:
        """Lets a call name its branch if it is the first one there."""
        if (task := self._task(blocks=blocks)) is not None:
            if self._branches is None:
                self._branches = WeakKeyDictionary()
            self._branches.setdefault(task, step)

    def begin(self, tries: int, since: int) -> bool:
        """Begins a try: its calls are counted anew, so that they find what was recorded; tells whether there were any.

        What failed up to a position is made again.
        """
        called = self._made is not None
        self.tries, self.since = tries, since
        self._made = None
        self._branches = None
        return called

    # Calls

    def call(self, task: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any], key: str | None) -> Any:
        """Answers a call of a task: a value in a sync function, something to await in an async one."""
        known = self._known(task)
        if self.run.stopping is not None or self._too_late:
            return self._refused()
        known.parameters.check_call(args, kwargs)
        key = key if key is None else sayable(key)
        said = plainly(args, kwargs) if key is None else None
        content = self._content(known, said, args, kwargs) if key is None else _content_of_a_key(key)
        step = step_id(self.id, known.name, content, self._ordinal(known.name, content))
        blocks = self.blocks()
        self._opens(step, blocks=blocks)
        frame = RunFrame(self.run, step, step, key or "", known.name, not known.is_async, self.since)
        frame.depth = self.depth + 1
        seen = None if key is not None or unchangeable(args, kwargs) else content
        work = call(self.run, known, Call(known, frame, args, kwargs, seen, said), self)
        if frame.depth % _DEEP == 0:
            work = _apart(work)
        if blocks:
            return Bridge(self.run).wait(work)
        if self.unawaited is None:
            self.unawaited = {}
        self.unawaited[frame] = work
        return work

    def _content(
        self, task: Task[..., Any], said: bytes | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bytes:
        """Gives what tells a call from others, in few bytes; warns of arguments that do not."""
        if said is not None:
            return in_few_bytes(said)
        unsaid: Unsaid = []
        content = in_few_bytes(spelled_out(args, kwargs, unsaid))
        if unsaid:
            warn_of_unsaid(self.run, task, unsaid)
        return content

    def map(
        self, task: Callee, items: Iterable[Any] | AsyncIterator[Any], shared: Mapping[str, Any], how: MapOptions
    ) -> Any:
        """Answers a map of a task."""
        if self.run.stopping is not None or self._too_late:
            return self._refused()
        bridge = Bridge(self.run) if self.blocks() else None
        make = self._map(task, items, shared, how, bridge)
        self._look_at(task, shared)
        if bridge is None:
            return self.later(f"{task.name}.map", run_map, make, how)
        return bridge.wait(run_map(make, how))

    def stream(
        self, task: Callee, items: Iterable[Any] | AsyncIterator[Any], shared: Mapping[str, Any], how: MapOptions
    ) -> Any:
        """Answers a map of a task whose results are taken one by one."""
        if self.run.stopping is not None or self._too_late:
            return self._refused() if self.blocks() else _nothing(self.run)
        bridge = Bridge(self.run) if self.blocks() else None
        make = self._map(task, items, shared, how, bridge)
        self._look_at(task, shared)
        return stream_map(make, how) if bridge is None else bridge.each(stream_map(make, how))

    def _known(self, task: Callee) -> Task[..., Any]:
        if not isinstance(task, Task):
            raise BadUsage(f"{task!r} is not a task")
        self.run.know(task)
        return task

    def _look_at(self, task: Callee, shared: Mapping[str, Any]) -> None:
        """Warns of arguments that all items share and that cannot be told from others."""
        unsaid: Unsaid = []
        if not unchangeable((), shared):
            arguments((), shared, unsaid)
        if unsaid:
            warn_of_unsaid(self.run, self._known(task), unsaid)

    @property
    def _too_late(self) -> bool:
        """Whether a call comes too late: the run winds down, and it is the flow's own."""
        return self.run.winding_down and not self.step

    def _refused(self) -> Coroutine[Any, Any, None]:
        """Answers a call in a run that is being stopped: at once in a sync function, else what raises when awaited."""
        if self.blocks():
            if self.run.stopping is None:
                Bridge(self.run).wait(held_back(self.run))
            threading.Event().wait(PASSING)
            refuse_when_stopping(self.run)
        return _refusal(self.run)

    def _map(
        self,
        task: Callee,
        items: Iterable[Any] | AsyncIterator[Any],
        shared: Mapping[str, Any],
        how: MapOptions,
        bridge: Bridge | None,
    ) -> Callable[[Sink], Map]:
        known = self._known(task)
        mark = digest(arguments((how.name,), shared))
        blocks = bridge is not None
        branch = self._branch(blocks=blocks) or self._input_of_a_branch(items, blocks=blocks)
        if not branch and not how.name:
            self._tell_alike(known.name, mark, blocks=blocks)
        step = step_id(self.id, known.name, f"map:{mark}:{branch}", self._ordinal(known.name, mark, branch))
        self._opens(step, blocks=blocks)
        blocking = not known.is_async
        frame = partial(_item_frame, self.run, step, known.name, blocking=blocking, since=self.since)
        source: Callable[[], Source] = partial(Source, items)
        if bridge is not None and not isinstance(items, _AT_HAND):
            if not isinstance(items, Iterable):
                raise BadUsage(f"{known.name}.map: an async iterable needs an async flow")
            source = partial(Pumped, items, bridge)
        call = MapCall(self.run, known, step, self, shared, how, frame, self.since)
        return lambda sink: Map(call, source(), sink)


async def _refusal(run: Execution) -> None:
    """Refuses, and lets the loop turn: code that asks again and again must not keep the grace period from ending."""
    try:
        if run.stopping is None:
            await held_back(run)
        refuse_when_stopping(run)
    finally:
        await asyncio.sleep(PASSING)


async def _apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Awaits a call in an asyncio task of its own, on whose stack nothing else lies."""
    return await asyncio.create_task(work)


async def _begun(unawaited: Unawaited, named: Named, function: AsyncFunction, args: tuple[Any, ...]) -> Any:
    unawaited.pop(named, None)
    return await function(*args)


async def _nothing(run: Execution) -> AsyncIterator[Any]:
    await _refusal(run)
    yield


def _content_of_a_key(key: str) -> bytes:
    return in_few_bytes(b"key:" + key.encode("utf-8", "surrogatepass"))


def _item_frame(run: Execution, step: str, name: str, key: str, *, blocking: bool, since: int) -> RunFrame:
    return RunFrame(run, step, step, key, name, blocking, since, item=True)


def root_frame(run: Execution, name: str, *, blocking: bool) -> RunFrame:
    """Gives the frame of the flow itself; its id is the same in every run."""
    return RunFrame(run, "", "", "", name, blocking, owner=run.main)
