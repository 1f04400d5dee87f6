"""What is wrong with an option: which one, what was given, and what is allowed; the same words everywhere."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from string import Formatter
from typing import Any, Final, TypeVar

from tsuzuki.errors import BadTag, BadUsage

Kind = TypeVar("Kind")

_MOST_SHOWN = 80
_TAG = re.compile(r"[A-Za-z0-9_-]+")
_FAR = 2**31
"""Priorities are below this and above its opposite: a number that every store can hold."""


def wrong(option: str, allowed: str, given: object) -> BadUsage:
    """Says that an option is not what it may be."""
    try:
        shown = repr(given)
    except Exception:  # noqa: BLE001 - whatever was given, its option must be named
        shown = f"a {type(given).__name__}"
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    return BadUsage(f"{option} is {allowed}, not {shown}")


_TRIES: Final = ("retries", "max_retries", "attempts", "max_attempts", "max_tries", "tries")
HABITS: Final[Mapping[str, Mapping[str, str]]] = {
    "@task": {
        **dict.fromkeys(_TRIES, "retry=Retry(attempts=…)"),
        **dict.fromkeys(("backoff", "retry_delay_seconds", "retry_backoff"), "retry=Retry(backoff=…)"),
        **dict.fromkeys(("timeout_seconds", "time_limit", "timeout_s"), "timeout=…"),
        **dict.fromkeys(("rate_limit", "rate_limits"), 'rate="10/s"'),
    },
    "@flow": {
        **dict.fromkeys((*_TRIES, "retry"), "@task(retry=Retry(attempts=…))"),
        **dict.fromkeys(("timeout", "timeout_seconds"), "@task(timeout=…)"),
        **dict.fromkeys(("concurrency", "max_concurrency"), "map(concurrency=…)"),
        "queue": "tag=…",
    },
    "Retry": {
        **dict.fromkeys(("retries", "max_retries", "tries", "max_tries"), "attempts=…"),
        **dict.fromkeys(("max_delay", "max_backoff", "max_wait"), "most=…"),
        **dict.fromkeys(("exceptions", "retry_on"), "on=…"),
        **dict.fromkeys(("delay", "wait", "initial"), "backoff=…"),
    },
    "map": {
        **dict.fromkeys(("max_workers", "workers", "n_jobs", "parallelism"), "concurrency=…"),
        "return_exceptions": 'on_error="collect"',
    },
}
"""What people write who know another framework, and what it is called here."""
_NEAR: Final = 0.75


def _meant(name: str, known: Iterable[str], habits: Mapping[str, str], otherwise: str) -> str:
    """Say what somebody who wrote an unknown name probably meant."""
    if name in habits:
        return f"Use {habits[name]}."
    near = get_close_matches(name, known, 1, _NEAR)
    return f"Did you mean {near[0]!r}?" if near else f"It takes {otherwise}."


def known(what: str, given: Iterable[str], names: Collection[str]) -> None:
    """Refuse an option whose name is none of these."""
    for name in given:
        if name not in names:
            *most, last = names
            advice = _meant(name, names, HABITS.get(what, {}), f"{', '.join(most)} and {last}")
            raise BadUsage(f"{what} has no option {name!r}. {advice}")


class Parameters:
    """The parameters of a task's function: arguments that do not fit them are refused before anything is recorded.

    Those of a decorated function are what its decorator takes: that may pass on something else.
    """

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        try:
            self._signature = inspect.signature(function, follow_wrapped=False)
        except (TypeError, ValueError):  # some functions written in C do not tell
            self._signature = inspect.signature(_anything)
        every = self._signature.parameters.values()
        kinds = {p.kind for p in every}
        single = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self._required = [p.name for p in single if p.default is p.empty]
        self._least = len(self._required)
        places = [p for p in single if p.kind is not p.KEYWORD_ONLY]
        self._most = math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else len(places)
        self._any_name = inspect.Parameter.VAR_KEYWORD in kinds
        self._names = frozenset(p.name for p in single if p.kind is not p.POSITIONAL_ONLY)
        self._item = places[0].name if places else ""

    def check_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Refuse arguments that do not fit; the first lines are for all calls that do, and cost little."""
        places = len(args)
        if not kwargs and self._least <= places <= self._most:
            return
        if places <= self._most and places + len(kwargs) >= self._least and self._takes(kwargs):
            return
        for name in kwargs:
            if not self._takes((name,)):
                advice = _meant(name, self._names, {}, f"{self._task}{self._signature}")
                raise BadUsage(f"{self._task} has no parameter {name!r}. {advice}")
        self._bind(args, kwargs)

    def check_map(
        self, how: str, chosen: Iterable[str], names_of_options: Collection[str], shared: Mapping[str, Any]
    ) -> None:
        """Refuse what a map shares where it does not fit; `chosen` are the options of the map that were given."""
        call = f"{self._task}.{how}"
        free = [name for name in self._required if name != self._item and name not in shared]
        for name in [*chosen, *free]:
            if name in names_of_options and name in self._names and name != self._item:
                told = f"{name!r} is both an option of {how} and a parameter of {self._task}"
                raise BadUsage(f"{call}: {told}. Rename the parameter, or make its value a part of each item.")
        for name in shared:
            if not self._takes((name,)):
                known = [*names_of_options, *self._names]
                advice = _meant(name, known, HABITS["map"], f"{self._task}{self._signature}")
                raise BadUsage(
                    f"{call}: {name!r} is neither an option of {how} nor a parameter of {self._task}. {advice}"
                )
            if name == self._item and name in self._names:
                raise BadUsage(f"{call}: the parameter {name!r} of {self._task} is the item. Do not pass it by name.")
        if free:
            told = f"the parameter {free[0]!r} of {self._task} is missing"
            raise BadUsage(f"{call}: {told}. Pass it to {how} by name, for all items.")
        self._bind((None,), shared)

    def _takes(self, names: Iterable[str]) -> bool:
        return self._any_name or self._names.issuperset(names)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadUsage(f"{self._task}{self._signature} cannot be called so: {error}.") from None


def _anything(*args: Any, **kwargs: Any) -> None:
    """Takes what a function may take that does not tell."""


def _is_a(kind: type, given: object) -> bool:
    """Tells whether something is a number; to Python True is one too, to people it is not."""
    return isinstance(given, kind) and not isinstance(given, bool)


def whole(option: str, given: Any, least: int, *, optional: bool = False) -> None:
    """Refuses what is no whole number of at least so much."""
    if optional and given is None:
        return
    if not _is_a(Integral, given) or given < least:
        raise wrong(option, f"a whole number of at least {least}" + (" or None" if optional else ""), given)


def number(option: str, given: Any, least: float, most: float = math.inf) -> None:
    """Refuses what is no number between two others; infinity is none."""
    if _is_a(Real, given) and least <= given <= most and given < math.inf:
        return
    raise wrong(option, f"a number of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}", given)


def seconds(option: str, given: Any, none: str = "for no limit") -> None:
    """Refuses what is no time above 0; None means none, or what is said."""
    if given is None:
        return
    if not _is_a(Real, given) or not 0 < given < math.inf:
        raise wrong(option, f"a number of seconds above 0, or None {none}", given)


def word(option: str, given: Any, words: Collection[str]) -> None:
    """Refuses what is none of these words."""
    if not isinstance(given, str) or given not in words:
        raise wrong(option, " or ".join(f'"{known}"' for known in words), given)


def text(option: str, given: Any, *, optional: bool = False) -> None:
    """Refuses what is no text."""
    if not isinstance(given, str) and not (optional and given is None):
        raise wrong(option, "a text" + (" or None" if optional else ""), given)


def says(given: Any) -> bool:
    """Tells whether something is a text that says something, and that UTF-8 can say."""
    try:
        return isinstance(given, str) and bool(given.encode())
    except UnicodeEncodeError:
        return False


def spoken(option: str, given: Any, *, optional: bool = False) -> None:
    """Refuses what is no text, an empty one, and one that no store can hold: with half of a surrogate pair."""
    if not says(given) and not (optional and given is None):
        raise wrong(option, "a text of at least one character, all of UTF-8" + (", or None" if optional else ""), given)


def texts(option: str, given: Any) -> tuple[str, ...]:
    """Gives texts; refuses what is no list of them: a lone text would be taken for its letters."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(one == "" or says(one) for one in found):
        raise wrong(option, 'a list of texts, for example ["nightly"]', given)
    return found


def tag(option: str, given: Any) -> None:
    """Refuses what can be no tag."""
    if not isinstance(given, str) or not _TAG.fullmatch(given):
        raise BadTag(str(wrong(option, "a text of letters, digits, _ and -", given)))


def folder(option: str, given: Any) -> None:
    """Refuses what is no path; None means the default."""
    if given is not None and not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise wrong(option, "a path or None", given)


def template(option: str, given: str | None, names: Collection[str] | None) -> None:
    """Refuses a text whose {places} cannot be read, or name something else than these names; None means any name."""
    if given is None:
        return
    try:
        unknown = [place for place in _places(given) if not place.isidentifier() or place not in (names or (place,))]
    except ValueError as error:
        raise wrong(option, f'a text with params in braces, for example "crawl:{{site}}" ({error})', given) from None
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in sorted(names or ())) or "a param by its name"
        raise wrong(option, f"a text that may name {known} (and not {{{unknown[0]}}})", given)


def _places(pattern: str) -> Iterable[str]:
    """Gives what a template names, without the attributes and indexes that follow."""
    for _, place, spec, conversion in Formatter().parse(pattern):
        if place is not None:
            yield re.split(r"[.\[]", place, maxsplit=1)[0]
        if conversion not in (None, "r", "s", "a"):
            raise ValueError(f"there is no conversion !{conversion}")
        yield from _places(spec or "")


def instances(option: str, given: Any, kind: type[Kind], allowed: str) -> tuple[Kind, ...]:
    """Gives things of one kind; refuses anything that is not a list of such."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise wrong(option, f"a list of {allowed}", given)
    found = tuple(given)
    for one in found:
        if not isinstance(one, kind):
            raise wrong(option, f"a list of {allowed}", one)
    return found


def worker(tags: Any, concurrency: Any, name: Any, lease: Any, grace: Any) -> None:
    """Refuses options that no worker can work with."""
    for one in texts("Worker(tags=…)", () if tags is None else tags):
        tag("a tag of Worker(tags=…)", one)
    whole("Worker(concurrency=…)", concurrency, 1)
    spoken("Worker(name=…)", name, optional=True)
    seconds("Worker(lease=…)", lease, "for the default")
    seconds("Worker(grace=…)", grace, "for the default")


def connected(tags: Any) -> Any:
    """Gives the tags of a worker that takes one run after another; refuses none at all: it would wait for ever."""
    if tags is not None and not texts("Worker.connect(tags=…)", tags):
        raise BadTag(str(wrong("Worker.connect(tags=…)", 'a list of tags, for example ["nightly"], or None', tags)))
    return tags


def submission(tag_of_run: Any, tags: Any, priority: Any, key: Any, idempotency_key: Any) -> None:
    """Refuses options that not every store could keep of a run."""
    if tag_of_run is not None and tag_of_run != "":
        tag("submit(tag=…)", tag_of_run)
    texts("submit(tags=…)", tags)
    if not _is_a(Integral, priority) or not -_FAR < priority < _FAR:
        raise wrong("submit(priority=…)", f"a whole number from {1 - _FAR} to {_FAR - 1}", priority)
    spoken("submit(key=…)", key, optional=True)
    spoken("submit(idempotency_key=…)", idempotency_key, optional=True)


def matching(option: str, given: Any, pattern: re.Pattern[str], allowed: str) -> re.Match[str]:
    """Gives how a text fits a pattern; refuses what does not."""
    found = pattern.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise wrong(option, allowed, given)
    return found


def exceptions(option: str, given: Any) -> None:
    """Refuses what is no exception class, nor a tuple of such."""
    kinds = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise wrong(option, "exception classes, for example on=(ConnectionError,)", given)


def switch(option: str, given: Any) -> None:
    """Refuses what is neither True nor False."""
    if not isinstance(given, bool):
        raise wrong(option, "True or False", given)


def function(option: str, given: Any, example: str) -> Callable[..., Any]:
    """Gives a function; refuses what cannot be called."""
    if not callable(given):
        raise wrong(option, f"a function, for example {example}", given)
    return given  # type: ignore[no-any-return] # it can be called: that is all that is promised
