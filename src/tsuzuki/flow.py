"""What people write: a task, and a flow that calls it. Definitions only; frames do the calling."""

import inspect
import math
import re
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from copy import copy
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast, overload

from tsuzuki import options
from tsuzuki.codec import Codec, Params, result_codec
from tsuzuki.context import FRAME, Duplicates, MapOptions, OnError
from tsuzuki.errors import BadUsage
from tsuzuki.identity import fingerprint
from tsuzuki.inputs import Given
from tsuzuki.results import Collected, Counts, Failure
from tsuzuki.retry import ONCE, Retry

P = ParamSpec("P")
R = TypeVar("R")
Items: TypeAlias = Iterable[Any] | AsyncIterable[Any]
Key: TypeAlias = Callable[[Any], object] | None

if TYPE_CHECKING:
    # A sync task gives its results in a sync flow, and something to await in an async one. No type knows which flow is
    # around a call, so these are both. Nothing is ever made of them.

    class MapList(list[R]):
        """The results of a map, or what is awaited for them."""

        def __await__(self) -> Generator[Any, Any, list[R]]: ...

    class MapCollected(Collected[R]):
        """The outcomes of a map, or what is awaited for them."""

        def __await__(self) -> Generator[Any, Any, Collected[R]]: ...

    class MapCounts(Counts, frozen=True):
        """The counts of a map, or what is awaited for them."""

        def __await__(self) -> Generator[Any, Any, Counts]: ...

    class Stream(Iterator[R], AsyncIterator[R]):
        """The results of a stream, for `for` or for `async for`."""


_ELSEWHERE: Final = frozenset({"submit", "delay", "apply_async", "remote", "send", "options"})
"""How other frameworks start a task or a flow."""
_MAP_OPTIONS: Final = ("concurrency", "key", "on_error", "keep_results", "duplicates", "name")
_STREAM_OPTIONS: Final = ("concurrency", "key", "on_error", "duplicates", "name", "ordered")
_RATE = re.compile(r"\s*(?P<count>\d+(\.\d+)?)\s*/\s*(?P<unit>s|sec|second|m|min|minute|h|hour)\s*")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def interval_of(rate: str) -> float:
    """Reads a rate such as "10/s", "90/min" or "1000/hour" as the seconds between two calls."""
    allowed = 'a count above 0 and a unit, for example "10/s", "90/min" or "1000/hour"'
    found = options.matching("task(rate=…)", rate, _RATE, allowed)
    if not 0 < float(found["count"]) < math.inf:
        raise options.wrong("task(rate=…)", allowed, rate)
    return _SECONDS[found["unit"][0]] / float(found["count"])


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class Task(Generic[P, R]):
    """A function whose calls inside a run are recorded; calling it elsewhere just calls it."""

    def __init__(
        self,
        function: Callable[P, Any],
        *,
        name: str | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        rate: str | None = None,
        concurrency: int | None = None,
        limit: str | None = None,
    ) -> None:
        self.function = options.function("what @task decorates", function, "@task above a def")
        options.spoken("task(name=…)", name, optional=True)
        if retry is not None and not isinstance(retry, Retry):
            options.whole("task(retry=…), where it is no Retry,", retry, 1)
        options.seconds("task(timeout=…)", timeout)
        options.whole("task(concurrency=…)", concurrency, 1, optional=True)
        options.spoken("task(limit=…)", limit, optional=True)
        if limit is not None and rate is None and concurrency is None:
            raise BadUsage(f"task(limit={limit!r}) names a shared limit: say rate= or concurrency= too")
        self.name: str = name or _name_of(function)
        self.retry = Retry(attempts=retry) if isinstance(retry, int) else retry or ONCE
        self.timeout = timeout
        self.interval = None if rate is None else interval_of(rate)
        self.concurrency = concurrency
        self.limit = limit
        self.limited = rate is not None or concurrency is not None
        self.limited_as = self.name
        self.is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        """Gives itself as a part of a class; a method, which would miss its object, is refused."""
        if instance is not None and next(iter(inspect.signature(self.function).parameters), "") == "self":
            hint = "make it a function that takes what it needs, or put @staticmethod above @task"
            raise BadUsage(f"task {self.name} is a method of {type(instance).__name__}, which no task can be: {hint}")
        return self

    @cached_property
    def codec(self) -> Codec:
        """Encodes and decodes the results."""
        return result_codec(self.function)

    @cached_property
    def given(self) -> Given:
        """Says what its calls are given."""
        return Given(self.function)

    @cached_property
    def parameters(self) -> options.Parameters:
        """Refuses arguments that do not fit."""
        return options.Parameters(self.name, self.function)

    if not TYPE_CHECKING:  # a type checker knows the attributes

        def __getattr__(self, name: str) -> Any:
            """Answer the habits of other frameworks."""
            told = f"a task has no {name}"
            if name in _ELSEWHERE:
                told += f": {self.name}(…) calls it as a step, and {self.name}.map(…) calls it for many items at once"
            raise AttributeError(told, name=name, obj=self)

    @property
    def place(self) -> str:
        """Where the function stands, for people."""
        code = getattr(self.function, "__code__", None)
        return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = FRAME.get().call(self, args, kwargs, None)
        return result

    def under(
        self, name: str, function: Callable[..., Any], *, retry: Retry | None = None, timeout: float | None = None
    ) -> "Task[..., R]":
        """Gives this task under another name, called through another function; its limits stay the same ones."""
        twin = copy(self)
        twin.name, twin.function = name, function
        for about_the_function in ("given", "parameters"):
            twin.__dict__.pop(about_the_function, None)
        twin.retry, twin.timeout = retry or self.retry, timeout or self.timeout
        return twin

    def step(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, object, R]:
        """The call as something to await, for typed async code; at run time the same call."""
        result: Coroutine[object, object, R] = FRAME.get().call(self, args, kwargs, None)
        return result

    def keyed(self, key: str) -> Callable[P, R]:
        """Gives the task under an explicit key, which then identifies the step instead of its arguments."""
        options.text(f"the key of {self.name}.keyed(…)", key)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            result: R = FRAME.get().call(self, args, kwargs, key)
            return result

        return call

    @overload
    def map(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: Literal["fail"] = "fail",
        keep_results: Literal[True] = True,
        duplicates: Duplicates = "error",
        name: str = "",
        **shared: Any,
    ) -> "MapList[R]": ...
    @overload
    def map(
        self, items: Items, *, on_error: Literal["collect"], keep_results: Literal[True] = True, **options: Any
    ) -> "MapCollected[R]": ...
    @overload
    def map(self, items: Items, *, keep_results: Literal[False], **options: Any) -> "MapCounts": ...
    @overload
    def map(
        self, items: Items, *, keep_results: bool, on_error: OnError = "fail", **options: Any
    ) -> "MapList[R] | MapCollected[R] | MapCounts": ...
    def map(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: OnError = "fail",
        keep_results: bool = True,
        duplicates: Duplicates = "error",
        name: str = "",
        **shared: Any,
    ) -> Any:
        """Calls the task for each item, so many at once, and records each by its key.

        Gives the results in input order as a list; with on_error="collect" a `Collected`; with
        keep_results=False only `Counts`. In an async flow it is awaited. `shared` goes to every call.
        """
        how = MapOptions(concurrency, key, on_error, keep_results, duplicates, name)
        self.parameters.check_map("map", how.chosen, _MAP_OPTIONS, shared)
        return FRAME.get().map(self, _iterable(self.name, items), shared, how)

    @overload
    def stream(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: Literal["fail"] = "fail",
        duplicates: Duplicates = "error",
        name: str = "",
        ordered: bool = True,
        **shared: Any,
    ) -> "Stream[R]": ...
    @overload
    def stream(self, items: Items, *, on_error: Literal["collect"], **options: Any) -> "Stream[R | Failure]": ...
    def stream(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: OnError = "fail",
        duplicates: Duplicates = "error",
        name: str = "",
        ordered: bool = True,
        **shared: Any,
    ) -> Any:
        """Like `map`, but gives the results one by one while the work goes on: in input order, or as they come.

        An iterator in a sync flow, an async iterator in an async one; memory stays bounded. In order, an item that
        takes long keeps back those behind it; with ordered=False it keeps back none.
        """
        how = MapOptions(concurrency, key, on_error, True, duplicates, name, ordered)
        self.parameters.check_map("stream", how.chosen, _STREAM_OPTIONS, shared)
        return FRAME.get().stream(self, _iterable(self.name, items), shared, how)


def _iterable(task: str, items: Any) -> Iterable[Any] | AsyncIterator[Any]:
    if isinstance(items, AsyncIterable):
        return aiter(items)
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise BadUsage(f"{task}.map needs a list, a generator or an async generator, not {type(items).__name__}")
    return items


class AsyncTask(Task[P, R]):
    """A task whose function is async: typed so that type checkers report a call that is not awaited.

    Not `Coroutine[Any, Any, R]`: with it mypy takes the result of `asyncio.gather` over several such calls for Any.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, object, R]:  # type: ignore[override] # see the class
        result: Coroutine[object, object, R] = FRAME.get().call(self, args, kwargs, None)
        return result

    def keyed(self, key: str) -> Callable[P, Coroutine[object, object, R]]:  # type: ignore[override] # see the class
        """Gives the task under an explicit key; see `Task.keyed`."""
        result: Any = super().keyed(key)
        return cast("Callable[P, Coroutine[object, object, R]]", result)

    @overload  # type: ignore[override] # see the class
    def map(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: Literal["fail"] = "fail",
        keep_results: Literal[True] = True,
        duplicates: Duplicates = "error",
        name: str = "",
        **shared: Any,
    ) -> Coroutine[object, object, list[R]]: ...
    @overload
    def map(
        self, items: Items, *, on_error: Literal["collect"], keep_results: Literal[True] = True, **options: Any
    ) -> Coroutine[object, object, Collected[R]]: ...
    @overload
    def map(
        self, items: Items, *, keep_results: Literal[False], **options: Any
    ) -> Coroutine[object, object, Counts]: ...
    @overload
    def map(
        self, items: Items, *, keep_results: bool, on_error: OnError = "fail", **options: Any
    ) -> (
        Coroutine[object, object, list[R]] | Coroutine[object, object, Collected[R]] | Coroutine[object, object, Counts]
    ): ...
    def map(self, items: Items, **options: Any) -> Any:
        """Calls the task for each item; see `Task.map`."""
        return super().map(items, **options)

    @overload  # type: ignore[override] # see the class
    def stream(
        self,
        items: Items,
        *,
        concurrency: int = 8,
        key: Key = None,
        on_error: Literal["fail"] = "fail",
        duplicates: Duplicates = "error",
        name: str = "",
        ordered: bool = True,
        **shared: Any,
    ) -> AsyncIterator[R]: ...
    @overload
    def stream(self, items: Items, *, on_error: Literal["collect"], **options: Any) -> AsyncIterator[R | Failure]: ...
    def stream(self, items: Items, **options: Any) -> Any:
        """Gives the results while the work goes on; see `Task.stream`."""
        return super().stream(items, **options)


@overload
def task(function: Callable[P, Awaitable[R]], /) -> AsyncTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str | None = ...,
    retry: Retry | int | None = ...,
    timeout: float | None = ...,
    rate: str | None = ...,
    concurrency: int | None = ...,
    limit: str | None = ...,
) -> "TaskDecorator": ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a task: `@task` or `@task(retry=Retry(3), timeout=60, rate="10/s")`."""
    decorate = TaskDecorator(options)
    return decorate if function is None else decorate(function)


class TaskDecorator:
    """Makes tasks with options."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        options.known("@task", given, ("name", "retry", "timeout", "rate", "concurrency", "limit"))
        self._options = given

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        cls = AsyncTask if inspect.iscoroutinefunction(function) else Task
        return cls(function, **self._options)


class Flow(Generic[P, R]):
    """A named, typed function that makes durable calls; a run is one execution of it."""

    timeout: float | None = None

    def __init__(
        self,
        function: Callable[P, Any],
        *,
        name: str | None = None,
        key: str | None = None,
        tag: str = "default",
    ) -> None:
        self.function = options.function("what @flow decorates", function, "@flow above a def")
        options.spoken("flow(name=…)", name, optional=True)
        options.spoken("flow(key=…)", key, optional=True)
        options.tag("flow(tag=…)", tag)
        self.name: str = name or _name_of(function)
        self.key = key
        self.tag = tag
        self.is_async = inspect.iscoroutinefunction(function)
        self.params = Params(self.name, function)
        options.template("flow(key=…)", key, None if self.params.any_name else self.params.names)
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<flow {self.name}>"

    if not TYPE_CHECKING:  # a type checker knows the attributes

        def __getattr__(self, name: str) -> Any:
            """Answer the habits of other frameworks."""
            told = f"a flow has no {name}"
            if name in _ELSEWHERE:
                told += f": {self.name}.run(…) runs it here, and `tsuzuki submit {self.name}` leaves it to the workers"
            raise AttributeError(told, name=name, obj=self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = FRAME.get().enter(self.function, args, kwargs, self.is_async)
        return result

    @cached_property
    def codec(self) -> Codec:
        """Encodes and decodes the result."""
        return result_codec(self.function)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the source of the flow and of the tasks that it names."""
        names = getattr(getattr(self.function, "__code__", None), "co_names", ())
        scope = getattr(self.function, "__globals__", {})
        tasks = sorted({t for n in names if isinstance(t := scope.get(n), Task)}, key=lambda t: t.name)
        return fingerprint([self.function, *(t.function for t in tasks)])

    def changed_since(self, fingerprint: str) -> str:
        """Says that the flow is not what it was under a fingerprint; nothing where it is, or none is known."""
        if not fingerprint or fingerprint == self.fingerprint:
            return ""
        change = f"{fingerprint[:8]} → {self.fingerprint[:8]}"
        return f"flow {self.name} has changed since the last attempt ({change}); going on by name and key"

    def key_for(self, params: Mapping[str, Any]) -> str | None:
        """Fills the flow's key with a run's params: "crawl:{site}" becomes "crawl:a"."""
        if self.key is None:
            return None
        try:
            key = self.key.format(**params)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise BadUsage(
                f"flow {self.name}: its key {self.key!r} cannot be filled from the params: {error}"
            ) from error
        options.spoken(f"what the params make of the key {self.key!r} of flow {self.name}", key)
        return key
