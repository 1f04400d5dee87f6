"""A store that breaks where a test says: before a call, after it, or by the death of the process."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from tsuzuki.backends import Backend, Wheels
from tsuzuki.clock import Clock
from tsuzuki.errors import StoreUnavailable
from tsuzuki.tallies import Histogram

Method = TypeVar("Method", bound=Callable[..., Any])


class Crash(BaseException):
    """The process died here; a BaseException, so that nothing which handles errors survives it."""


def _through(method: Method) -> Method:
    """Delegates a method of the port, counted, and broken when its turn has come."""
    name = method.__name__

    def call(self: "FaultyBackend", *args: Any, **kwargs: Any) -> Any:
        return self._call(name, *args, **kwargs)

    call.__name__, call.__doc__ = name, method.__doc__
    return cast("Method", call)


class FaultyBackend:
    """Passes every call on to another store, but breaks chosen ones.

    `FaultyBackend(inner, fail="append", at=3)` breaks the third append, `times` from there on. `after=True` lets
    the call happen first: a lost acknowledgement. `crash=True` raises `Crash`, and every later call too: the
    dead do not write.
    """

    def __init__(
        self,
        inner: Backend,
        *,
        fail: str,
        at: int = 1,
        times: int = 1,
        after: bool = False,
        crash: bool = False,
        error: Exception | None = None,
    ) -> None:
        if not isinstance(getattr(FaultyBackend, fail, None), Callable) or fail.startswith("_"):  # type: ignore[arg-type]
            raise ValueError(f"a backend has no method {fail!r} that could fail")
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.crashed = False
        self._fail, self._first, self._last = fail, at, at + times - 1
        self._after, self._crash = after, crash
        self._error = error or StoreUnavailable(f"{fail} was told to fail by a test")

    @property
    def url(self) -> str:
        """The address of the store behind it."""
        return self.inner.url

    @property
    def one_machine(self) -> bool:
        """What the store behind it says."""
        return self.inner.one_machine

    @property
    def clock(self) -> Clock:
        """The clock of the store behind it."""
        return self.inner.clock

    @property
    def writes(self) -> Histogram:
        """What the store behind it has written."""
        return self.inner.writes

    @property
    def wheels(self) -> Wheels:
        """The wheels of the store behind it, which never break."""
        return self.inner.wheels

    append = _through(Backend.append)
    read = _through(Backend.read)
    outcomes = _through(Backend.outcomes)
    fetch = _through(Backend.fetch)
    changed = _through(Backend.changed)
    log = _through(Backend.log)
    read_log = _through(Backend.read_log)
    submit = _through(Backend.submit)
    claim = _through(Backend.claim)
    ask = _through(Backend.ask)
    work = _through(Backend.work)
    beat = _through(Backend.beat)
    workers = _through(Backend.workers)
    hide = _through(Backend.hide)
    get = _through(Backend.get)
    search = _through(Backend.search)
    counts = _through(Backend.counts)
    waiting_since = _through(Backend.waiting_since)
    dead_letters = _through(Backend.dead_letters)
    count_letters = _through(Backend.count_letters)
    dead_letter = _through(Backend.dead_letter)
    drop_letter = _through(Backend.drop_letter)
    put_record = _through(Backend.put_record)
    record = _through(Backend.record)
    records = _through(Backend.records)
    drop_record = _through(Backend.drop_record)
    put_blob = _through(Backend.put_blob)
    get_blob = _through(Backend.get_blob)
    take = _through(Backend.take)
    enter = _through(Backend.enter)
    leave = _through(Backend.leave)
    rebuild = _through(Backend.rebuild)
    purge = _through(Backend.purge)
    compact = _through(Backend.compact)
    examine = _through(Backend.examine)

    async def close(self) -> None:
        """Closes the store behind it, also after a crash, since the test's own process lives on."""
        await self.inner.close()

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        self.calls[name] += 1
        call = getattr(self.inner, name)
        if not self.crashed and not self._due(name):
            return cast("Awaitable[Any]", call(*args, **kwargs))
        happens = self._after and not self.crashed
        broken = self._break(call(*args, **kwargs) if happens else None)
        # An append is under way as soon as it is called, whether or not somebody waits for it.
        return asyncio.ensure_future(broken) if name == "append" else broken

    def _due(self, name: str) -> bool:
        return name == self._fail and self._first <= self.calls[name] <= self._last

    async def _break(self, call: Awaitable[Any] | None) -> Any:
        if call is not None:
            await call
        if self.crashed or self._crash:
            self.crashed = True
            raise Crash
        raise self._error
