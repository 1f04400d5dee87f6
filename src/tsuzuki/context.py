"""Where code runs: the frame of the flow, step or item around it, and what `current()` shows of it.

A frame answers the durable calls that the code inside it makes. Outside a run the frame is `Loose`: it calls
the functions themselves, so that unit tests need nothing of ours.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Protocol, TypeAlias, cast
from weakref import WeakSet

from tsuzuki import options
from tsuzuki.errors import BadUsage
from tsuzuki.facts import Spent
from tsuzuki.forks import keep_from_children
from tsuzuki.results import Collected, Counts, Failure

OnError: TypeAlias = Literal["fail", "collect"]
_LONG_KEY: Final = 120
Duplicates: TypeAlias = Literal["error", "skip"]
Given: TypeAlias = Iterable[Any] | AsyncIterator[Any]
AsyncFunction: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Prepare: TypeAlias = Callable[[Callable[[str], int]], Awaitable[int]]


class Callee(Protocol):
    """What a frame needs to know of a task to call it."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def is_async(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class MapOptions:
    """How a map is to be run."""

    concurrency: int = 8
    key: Callable[[Any], object] | None = None
    on_error: OnError = "fail"
    keep_results: bool = True
    duplicates: Duplicates = "error"
    name: str = ""
    ordered: bool = True
    prepare: Prepare | None = None
    """Awaited before the first item, with where the outcome of an item stands; returns how many are made at once.

    A position of 0 means that the item is still to be made, and 1 that another run has made it.
    """

    @property
    def chosen(self) -> list[str]:
        """The names of the options that are not the default."""
        return [one.name for one in fields(self) if getattr(self, one.name) != one.default]

    def __post_init__(self) -> None:
        options.whole("map(concurrency=…)", self.concurrency, 1)
        if self.key is not None:
            options.function("map(key=…)", self.key, "key=lambda item: item.id")
        options.word("map(on_error=…)", self.on_error, ("fail", "collect"))
        options.switch("map(keep_results=…)", self.keep_results)
        options.word("map(duplicates=…)", self.duplicates, ("error", "skip"))
        options.text("map(name=…)", self.name)
        options.switch("stream(ordered=…)", self.ordered)


class Log(Protocol):
    """Writes lines into the log of the run, called as a standard logger is; calling it itself writes an info line.

    `how` is what standard logging takes: `exc_info`, `stack_info`, `stacklevel` and `extra`.
    """

    def __call__(self, text: object, *args: object, **how: Any) -> None: ...
    def debug(self, text: object, *args: object, **how: Any) -> None: ...
    def info(self, text: object, *args: object, **how: Any) -> None: ...
    def warning(self, text: object, *args: object, **how: Any) -> None: ...
    def error(self, text: object, *args: object, **how: Any) -> None: ...
    def critical(self, text: object, *args: object, **how: Any) -> None: ...
    def exception(self, text: object, *args: object, **how: Any) -> None: ...
    def log(self, level: int | str, text: object, *args: object, **how: Any) -> None: ...
    def isEnabledFor(self, level: int) -> bool: ...  # noqa: N802 - the name that standard logging gave it


class Artifacts(Protocol):
    """Keeps named files beside the result of a step; in an async function `save` is awaited."""

    def save(self, name: str, content: bytes | str) -> Any: ...


class Context(Protocol):
    """What code in a run may know and say about it."""

    @property
    def run_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def tenant(self) -> str: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def for_good(self) -> bool: ...
    @property
    def resumed(self) -> bool: ...
    @property
    def log(self) -> Log: ...
    @property
    def artifacts(self) -> Artifacts: ...
    def progress(self, done: int, total: int | None = None, text: str = "") -> None: ...


class Frame(Protocol):
    """Answers the calls that code inside it makes."""

    @property
    def context(self) -> Context: ...
    def enter(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], is_async: bool
    ) -> Any: ...
    def call(self, task: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any], key: str | None) -> Any: ...
    def map(self, task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> Any: ...
    def stream(self, task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> Any: ...
    def later(self, name: str, function: AsyncFunction, *args: Any) -> Any: ...
    def then(self, call: Awaitable[Any], change: Callable[[Any], Any]) -> Any: ...
    def wait_for(self, function: AsyncFunction, *args: Any) -> Any: ...
    def position_of(self, task: Callee, key: str) -> int: ...
    async def afresh(self) -> "Frame": ...
    def spend(self, spent: Spent) -> None: ...
    def staying(self) -> AbstractContextManager[None]: ...
    def resting(self) -> AbstractContextManager[None]: ...


class Loose:
    """The frame outside any run: calls go to the functions, in async code as something to await."""

    def __init__(self, *, blocking: bool = False) -> None:
        self._blocking = blocking

    @property
    def context(self) -> "LooseContext":
        """A context that belongs to no run."""
        return LooseContext()

    def enter(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], is_async: bool
    ) -> Any:
        """Calls the function of a flow; in a sync one the calls of tasks give their values at once."""
        if is_async:
            return function(*args, **kwargs)
        token = FRAME.set(Loose(blocking=True))
        try:
            return function(*args, **kwargs)
        finally:
            FRAME.reset(token)

    def _awaits(self) -> bool:
        return not self._blocking and in_async_code()

    def call(self, task: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any], key: str | None) -> Any:
        """Calls the function."""
        del key
        _look_around(task)
        if self._awaits():
            return later(task.function, args, kwargs)
        if self._blocking and task.is_async and not in_async_code():
            return asyncio.run(task.function(*args, **kwargs))
        return task.function(*args, **kwargs)

    def map(self, task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> Any:
        """Calls the function for each item, one after the other."""
        _look_around(task)
        if self._awaits():
            return _map_async(task, items, shared, how)
        if not isinstance(items, Iterable):
            raise BadUsage(f"{task.name}.map: an async iterable needs an async flow")
        if task.is_async:
            return asyncio.run(_map_async(task, items, shared, how))
        return _gathered([_attempt(task, item, shared, how) for item in items], how)

    def stream(self, task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> Any:
        """Calls the function for each item when its result is asked for."""
        _look_around(task)
        if self._awaits():
            return _stream_async(task, items, shared, how)
        if not isinstance(items, Iterable):
            raise BadUsage(f"{task.name}.stream: an async iterable needs an async flow")
        return (_attempt(task, item, shared, how) for item in items)

    def later(self, name: str, function: AsyncFunction, *args: Any) -> Any:
        """Return the coroutine of an async function."""
        del name
        return function(*args)

    def then(self, call: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
        """Return a coroutine that awaits a call and changes its value."""
        return changed(call, change)

    def wait_for(self, function: AsyncFunction, *args: Any) -> Any:
        """Return the result of an async function in a sync flow, else its coroutine."""
        return asyncio.run(function(*args)) if self._blocking else function(*args)

    def position_of(self, task: Callee, key: str) -> int:
        """Return 0: nothing is recorded."""
        del task, key
        return 0

    async def afresh(self) -> "Loose":
        """Return itself: it counts no calls."""
        return self

    def spend(self, spent: Spent) -> None:
        """Has nobody to tell."""

    def staying(self) -> AbstractContextManager[None]:
        """Has nobody who would wait."""
        return nullcontext()

    def resting(self) -> AbstractContextManager[None]:
        """Has nobody who would wait."""
        return nullcontext()


class LooseContext:
    """The context outside any run: lines go to the standard logger, nothing is ever cancelled."""

    run_id = ""
    attempt = 1
    tenant = ""
    cancelled = False
    for_good = False
    resumed = False

    @property
    def log(self) -> Log:
        """Writes to the logger named `tsuzuki`."""
        log: Any = LooseLog(logging.getLogger("tsuzuki"))
        return cast("Log", log)

    @property
    def artifacts(self) -> "LooseContext":
        """Takes artifacts, and keeps none."""
        return self

    def save(self, name: str, content: bytes | str) -> Any:
        """Takes an artifact, and does not keep it."""
        del name, content
        return later(lambda: None, (), {}) if in_async_code() else None

    def progress(self, done: int, total: int | None = None, text: str = "") -> None:
        """Takes progress that nobody watches."""


class LooseLog:
    """A log that is the standard logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def __call__(self, text: object, *args: object, **how: Any) -> None:
        self._logger.info(text, *args, **how)

    def __getattr__(self, level: str) -> Any:
        return getattr(self._logger, level)


class Forked(Loose):
    """The frame in a child that code in a run has forked: nobody there answers for the run, so functions are called."""

    def __init__(self, left: Frame) -> None:
        super().__init__(blocking=getattr(left, "blocking", False))
        self._left = left.context

    @property
    def context(self) -> "LooseContext":
        """A context that still knows which run this was."""
        return ForkedContext(self._left)


class ForkedContext(LooseContext):
    """What a forked child may know of the run that it came from."""

    def __init__(self, left: Context) -> None:
        self.run_id, self.attempt = left.run_id, left.attempt
        self.tenant, self.resumed = left.tenant, left.resumed


FRAME: ContextVar[Frame] = ContextVar("tsuzuki_frame", default=Loose())  # noqa: B039 - it has no state


class Executing(Protocol):
    """Who executes runs in this process."""

    @property
    def running(self) -> Mapping[str, Any]:
        """The runs under way, by id."""


EXECUTING: Final[WeakSet[Executing]] = WeakSet()
"""All who execute runs in this process."""
_OUTSIDE: Final = (
    "%s was called on a thread that belongs to no run, while a run is executed here: the call is no step of it, and is "
    "made again when the run goes on. Use %s.map(…), or take the run along: asyncio.to_thread(%s, …) in an async flow, "
    "pool.submit(contextvars.copy_context().run, %s, …) in a sync one"
)
_FORKED: Final = (
    "%s was called in a process that was forked inside a run: the call is no step of it, and is made again when the "
    "run goes on. Call %s or %s.map(…) in the process of the run, and leave to the other one what it computes"
)
_told_of: Final[set[str]] = set()


class _LeftRun:
    """That this code is in a run, which is so in this process alone."""

    def let_go(self) -> None:
        """Leaves the run in a child: the loop that would answer its calls does not run there."""
        frame = FRAME.get()
        if not isinstance(frame, Loose):
            FRAME.set(Forked(frame))


_LEFT_RUN: Final = _LeftRun()
keep_from_children(_LEFT_RUN)


def _look_around(task: Callee) -> None:
    """Warns, once for each task, of a call that somebody may take for a step: no thread knows its run by itself."""
    if task.name in _told_of:
        return
    if isinstance(FRAME.get(), Forked):
        _told_of.add(task.name)
        logging.getLogger("tsuzuki").warning(_FORKED, *[task.name] * 3)
        return
    if threading.current_thread() is threading.main_thread():
        return
    if not any(who.running for who in tuple(EXECUTING)):
        return
    _told_of.add(task.name)
    logging.getLogger("tsuzuki").warning(_OUTSIDE, *[task.name] * 4)


def current() -> Context:
    """Gives the context of the run that this code is part of; outside a run, one that does nothing."""
    return FRAME.get().context


def in_async_code() -> bool:
    """Tells whether an event loop runs in this thread."""
    return asyncio._get_running_loop() is not None  # noqa: SLF001 - the documented twin of get_running_loop that does not raise


async def later(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls a function, sync or async, when it is awaited."""
    value = function(*args, **kwargs)
    return await value if isinstance(value, Awaitable) else value


async def changed(call: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    """Await a call and change its value."""
    return change(await call)


def sayable(text: str) -> str:
    """Gives a text that UTF-8 can say; what it cannot (half of a pair, as in odd file names) is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def brief(key: str) -> str:
    """Gives a key as a message can show it: of a very long one, the beginning and the end."""
    return key if len(key) <= _LONG_KEY else f"{key[: _LONG_KEY - 40]}…{key[-39:]}"


def item_key(task: str, item: Any, key: Callable[[Any], object] | None) -> str:
    """Gives the key of an item: the value itself for str and int, `key=` otherwise."""
    value = item if key is None else key(item)
    if type(value) is str:
        return value if value.isascii() else sayable(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return sayable(str(value))
    if key is None:
        hint = f"give map a key, for example {task}.map(items, key=lambda item: item.id)"
        raise BadUsage(f"{task}.map: an item of type {type(item).__name__} is not its own key; {hint}")
    raise BadUsage(f"{task}.map: key= must give a str or an int, not {type(value).__name__}")


async def each(items: Given) -> AsyncIterator[Any]:
    """Iterates over anything iterable."""
    if isinstance(items, Iterable):
        for item in items:
            yield item
    else:
        async for item in items:
            yield item


def _attempt(task: Callee, item: Any, shared: Mapping[str, Any], how: MapOptions) -> Any:
    try:
        return task.function(item, **shared)
    except Exception as error:  # noqa: BLE001 - what the caller asked to be collected
        return _collect(task, item, how, error)


async def _attempt_async(task: Callee, item: Any, shared: Mapping[str, Any], how: MapOptions) -> Any:
    try:
        return await later(task.function, (item,), shared)
    except Exception as error:  # noqa: BLE001 - what the caller asked to be collected
        return _collect(task, item, how, error)


def _collect(task: Callee, item: Any, how: MapOptions, error: Exception) -> Failure:
    if how.on_error == "fail":
        raise error
    return Failure(item_key(task.name, item, how.key), str(error), type(error).__name__, 1)


async def _map_async(task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> Any:
    return _gathered([outcome async for outcome in _stream_async(task, items, shared, how)], how)


async def _stream_async(task: Callee, items: Given, shared: Mapping[str, Any], how: MapOptions) -> AsyncIterator[Any]:
    async for item in each(items):
        yield await _attempt_async(task, item, shared, how)


def _gathered(outcomes: list[Any], how: MapOptions) -> list[Any] | Collected[Any] | Counts:
    if not how.keep_results:
        failed = sum(isinstance(outcome, Failure) for outcome in outcomes)
        return Counts(len(outcomes) - failed, failed)
    return Collected(outcomes) if how.on_error == "collect" else outcomes
