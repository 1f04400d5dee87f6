"""Whatever nonsense an option is given: the error names the option, what was given and what is allowed."""

from collections.abc import Callable
from typing import Any

import pytest

from tsuzuki import Retry, Runs, Status, Worker, flow, llm, task
from tsuzuki.errors import BadUsage
from tsuzuki.script import StartOptions, run_here
from tsuzuki.testing import MemoryBackend

NAN = float("nan")
INFINITE = float("inf")


@task
def plain(x: int) -> int:
    return x


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("attempts", given) for given in ("3", 0, -1, 2.5, NAN, None, True)),
        *(("backoff", given) for given in ("1", -1, NAN, INFINITE, None)),
        *(("factor", given) for given in ("2", 0.5, NAN, INFINITE, None)),
        *(("most", given) for given in ("60", -1, NAN, INFINITE, None)),
        *(("jitter", given) for given in ("0.1", -0.1, 1.1, NAN, None)),
        *(("on", given) for given in ("x", (1,), ConnectionError("an instance"), None, [ConnectionError])),
    ],
)
def test_retry_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        Retry(**{option: given})
    assert f"Retry({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("name", given) for given in (3, b"x", ["x"], "", "half \ud800")),
        *(("retry", given) for given in ("3", 0, -1, 1.5, True, {"attempts": 3}, Retry)),
        *(("timeout", given) for given in ("60", 0, -1, NAN, INFINITE, True)),
        *(("rate", given) for given in (10, "10", "0/s", "-1/s", "nan/s", "10/day", b"10/s", "9" * 400 + "/s")),
        *(("concurrency", given) for given in ("4", 0, -1, 1.5, NAN, True)),
        *(("limit", given) for given in (3, b"gitlab", "")),
    ],
)
def test_a_task_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        task(**{"rate": "10/s", option: given})(plain.function)
    assert f"task({option}=…)" in str(refused.value)
    assert repr(given)[:80] in str(refused.value)


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("name", given) for given in (3, b"x", "")),
        *(("key", given) for given in (3, plain, ["site"], "", "half \ud800")),
        *(("key", given) for given in ("{nope}", "{", "x}", "{}", "{0}", "{x!z}", "{x:{nope}}", "{nope.x}")),
        *(("tag", given) for given in (None, "", "a b", 3, "ä")),
    ],
)
def test_a_flow_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        flow(**{option: given})(plain.function)
    assert f"flow({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)


@pytest.mark.parametrize("how", ["map", "stream"])
@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("concurrency", given) for given in ("8", 0, -1, 1.5, NAN, None, True)),
        *(("key", given) for given in ("id", 3, ("id",))),
        *(("on_error", given) for given in ("ignore", None, True, ["fail"])),
        *(("duplicates", given) for given in ("keep", None, True)),
        *(("name", given) for given in (None, 3)),
    ],
)
def test_a_map_says_which_option_is_wrong(how: str, option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        getattr(plain, how)([1, 2], **{option: given})
    assert f"map({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)


@pytest.mark.parametrize("given", ["no", None, 2])
def test_a_map_wants_to_know_whether_to_keep_its_results(given: Any) -> None:
    with pytest.raises(BadUsage, match=r"map\(keep_results=…\) is True or False"):
        plain.map([1], keep_results=given)


def test_a_key_that_is_no_function_is_told_what_to_pass() -> None:
    with pytest.raises(BadUsage, match=r"is a function, for example key=lambda item: item\.id, not 'id'"):
        plain.map([1], key="id")  # type: ignore[call-overload] # nonsense on purpose


@pytest.mark.parametrize("decorate", [task, flow])
@pytest.mark.parametrize("given", ["crawl", 3, ["x"]])
def test_only_functions_are_decorated(decorate: Any, given: Any) -> None:
    with pytest.raises(BadUsage, match=r"what @(task|flow) decorates is a function"):
        decorate(given)


@pytest.mark.parametrize("key", [None, 3, b"k"])
def test_an_explicit_key_is_a_text(key: Any) -> None:
    with pytest.raises(BadUsage, match=r"the key of plain\.keyed"):
        plain.keyed(key)


def test_what_cannot_even_be_shown_is_refused_by_the_name_of_its_option() -> None:
    with pytest.raises(BadUsage, match=r"Retry\(attempts=…\) is a whole number of at least 1, not a Unspeakable"):
        Retry(attempts=Unspeakable())  # type: ignore[arg-type] # nonsense on purpose


def test_a_wait_beyond_all_numbers_is_the_longest_one() -> None:
    assert Retry(attempts=10_000, backoff=1.0, factor=10.0, most=5.0, jitter=0.0).delay(9_999) == 5.0


@flow
def counting(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("fresh", given) for given in ("yes", None, 1)),
        *(("tags", given) for given in ("nightly", 3, None, [3])),
        *(("idempotency_key", given) for given in (3, b"x", "", "half \ud800")),
        ("backend", 3),
        *(("data_dir", given) for given in (3, ["x"])),
    ],
)
def test_a_start_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        counting.run(**{"x": 1, option: given})
    assert f"run({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)


def test_a_key_names_params_and_what_they_hold() -> None:
    for key in ("fixed", "{x}", "{x.real}", "{x[0]}", "{x!r:>10}", "{{literally}}"):
        assert flow(key=key)(plain.function).key == key

    @flow(key="{anything}")
    def open_ended(**params: int) -> int:
        return len(params)

    assert open_ended.key_for({"anything": 3}) == "3"


def test_a_wrong_name_in_a_key_is_told_beside_those_it_may_have() -> None:
    with pytest.raises(BadUsage, match=r"may name \{x\} \(and not \{site\}\), not 'crawl:\{site\}'"):
        flow(key="crawl:{site}")(plain.function)


def test_a_key_that_the_params_leave_empty_is_refused() -> None:
    @flow(key="{site}")
    def crawl(site: str) -> str:
        return site

    with pytest.raises(BadUsage, match=r"key '\{site\}' of flow crawl is a text of at least one character"):
        crawl.key_for({"site": ""})


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("concurrency", given) for given in ("2", 0, -1, 1.5, NAN, True, None)),
        *(("tags", given) for given in ("default", 5, [5], [None], ["half \ud800"])),
        *(("lease", given) for given in ("6", 0, -1, NAN, INFINITE, True)),
        *(("grace", given) for given in ("30", 0, -1, NAN, INFINITE, True)),
        *(("name", given) for given in (5, "")),
        *(("flows", given) for given in (counting, plain, "counting")),
    ],
)
def test_a_worker_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        Worker(MemoryBackend(), **{option: given})
    assert f"Worker({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)


async def test_a_worker_that_asks_for_one_run_after_another_has_a_tag_to_ask_for() -> None:
    with pytest.raises(ValueError, match=r"Worker\.connect\(tags=…\) is a list of tags"):
        await Worker.connect(MemoryBackend(), tags=[])


@pytest.mark.parametrize("given", ["", "a b", "a.b", "ä"])
def test_a_worker_takes_only_tags_that_a_run_can_have(given: str) -> None:
    with pytest.raises(BadUsage, match=r"a tag of Worker\(tags=…\) is a text of letters, digits, _ and -"):
        Worker(MemoryBackend(), tags=["good", given])


@pytest.mark.parametrize("given", [plain, plain.function, "counting", None])
def test_a_worker_takes_nothing_but_flows(given: Any) -> None:
    with pytest.raises(BadUsage, match=r"Worker\(flows=…\) is a list of flows, functions under @flow, not ") as refused:
        Worker(MemoryBackend(), [counting, given])
    assert repr(given) in str(refused.value)


@pytest.mark.parametrize("given", [plain, plain.function, 3, None])
async def test_only_a_flow_or_its_name_is_submitted(given: Any) -> None:
    with pytest.raises(BadUsage, match=r"what submit\(…\) starts is a flow"):
        await Runs(MemoryBackend()).submit(given)


@pytest.mark.parametrize(("option", "given"), [("data_dir", 5), ("url", 5)])
async def test_a_store_is_opened_by_texts(option: str, given: Any) -> None:
    with pytest.raises(BadUsage, match=r"Runs\.open\(.*, not 5"):
        async with Runs.open(**{option: given}):
            pass


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("retries", "Use retry=Retry(attempts=…)."),
        ("max_retries", "Use retry=Retry(attempts=…)."),
        ("attempts", "Use retry=Retry(attempts=…)."),
        ("backoff", "Use retry=Retry(backoff=…)."),
        ("timeout_seconds", "Use timeout=…."),
        ("max_concurrency", "Did you mean 'concurrency'?"),
        ("tiemout", "Did you mean 'timeout'?"),
        ("xyz", "It takes name, retry, timeout, rate, concurrency and limit."),
    ],
)
def test_a_task_refuses_an_option_that_it_does_not_have(option: str, advice: str) -> None:
    decorate: Any = task
    with pytest.raises(BadUsage) as refused:
        decorate(**{option: 3})(plain.function)
    assert str(refused.value) == f"@task has no option {option!r}. {advice}"


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("max_attempts", "Did you mean 'attempts'?"),
        ("retries", "Use attempts=…."),
        ("max_delay", "Use most=…."),
        ("exceptions", "Use on=…."),
    ],
)
def test_retry_refuses_an_option_that_it_does_not_have(option: str, advice: str) -> None:
    with pytest.raises(BadUsage) as refused:
        Retry(**{option: 3})  # type: ignore[arg-type] # that is the mistake
    assert str(refused.value) == f"Retry has no option {option!r}. {advice}"


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("tags", "Did you mean 'tag'?"),
        ("retries", "Use @task(retry=Retry(attempts=…))."),
        ("timeout", "Use @task(timeout=…)."),
        ("xyz", "It takes name, key and tag."),
    ],
)
def test_a_flow_refuses_an_option_that_it_does_not_have(option: str, advice: str) -> None:
    decorate: Any = flow
    with pytest.raises(BadUsage) as refused:
        decorate(**{option: 3})(plain.function)
    assert str(refused.value) == f"@flow has no option {option!r}. {advice}"


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("modle", "Did you mean 'model'?"),
        ("temprature", "Did you mean 'temperature'?"),
        ("seed", "It takes system, provider, base_url, model, temperature, max_tokens and cache."),
    ],
)
def test_a_question_refuses_an_option_that_it_does_not_have(option: str, advice: str) -> None:
    with pytest.raises(BadUsage) as refused:
        llm.ask(str, "Who?", **{option: 3})  # type: ignore[call-overload] # that is the mistake
    assert str(refused.value) == f"llm.ask has no option {option!r}. {advice}"


@pytest.mark.parametrize("name", ["submit", "delay", "apply_async", "remote"])
def test_the_habits_of_other_frameworks_are_answered(name: str) -> None:
    with pytest.raises(AttributeError, match=r"plain\(…\) calls it.*plain\.map\(…\)"):
        getattr(plain, name)
    with pytest.raises(AttributeError, match=r"going\.run\(…\) runs it here.*`tsuzuki submit going`"):
        getattr(going, name)
    assert not hasattr(plain, name)


@flow
async def going() -> None:
    """Is never run."""


called: list[str] = []


@task(retry=3)
async def load(url: str, language: str, *, depth: int = 1) -> str:
    called.append(url)
    return url


@task
async def anything(url: str, **more: Any) -> str:
    return f"{url} {more}"


@task
async def named(item: str, name: str = "", key: str = "") -> str:
    return f"{item} {name} {key}"


@task
async def needs_a_name(item: str, name: str) -> str:
    return f"{item} {name}"


_BOTH = "Rename the parameter, or make its value a part of each item."
_SIGNATURE = "load(url: str, language: str, *, depth: int = 1) -> str"
_MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "misspelt option": (
        lambda: load.map(["a"], language="en", concurency=3),
        "load.map: 'concurency' is neither an option of map nor a parameter of load. Did you mean 'concurrency'?",
    ),
    "another's option": (
        lambda: load.map(["a"], language="en", max_concurrency=3),
        "load.map: 'max_concurrency' is neither an option of map nor a parameter of load. Did you mean 'concurrency'?",
    ),
    "misspelt argument": (
        lambda: load.stream(["a"], langauge="en"),
        "load.stream: 'langauge' is neither an option of stream nor a parameter of load. Did you mean 'language'?",
    ),
    "option of the other": (
        lambda: load.map(["a"], language="en", ordered=False),
        f"load.map: 'ordered' is neither an option of map nor a parameter of load. It takes {_SIGNATURE}.",
    ),
    "missing": (
        lambda: load.map(["a"]),
        "load.map: the parameter 'language' of load is missing. Pass it to map by name, for all items.",
    ),
    "the item by name": (
        lambda: load.map(["a"], url="b", language="en"),
        "load.map: the parameter 'url' of load is the item. Do not pass it by name.",
    ),
    "both": (
        lambda: named.map(["a"], name="n"),
        f"named.map: 'name' is both an option of map and a parameter of named. {_BOTH}",
    ),
    "both, a function": (
        lambda: named.map(["a"], key=str.lower),
        f"named.map: 'key' is both an option of map and a parameter of named. {_BOTH}",
    ),
    "both, and missing": (
        lambda: needs_a_name.map(["a"]),
        f"needs_a_name.map: 'name' is both an option of map and a parameter of needs_a_name. {_BOTH}",
    ),
    "a direct call": (
        lambda: load("a", langauge="en"),  # type: ignore[call-arg] # that is the mistake
        "load has no parameter 'langauge'. Did you mean 'language'?",
    ),
    "a direct call that misses something": (
        lambda: load.keyed("k")("a"),  # type: ignore[call-arg] # that is the mistake
        f"{_SIGNATURE} cannot be called so: missing a required argument: 'language'.",
    ),
    "a direct call with too much": (
        lambda: load("a", "b", 3),  # type: ignore[call-arg] # that is the mistake
        f"{_SIGNATURE} cannot be called so: too many positional arguments.",
    ),
}


@pytest.mark.parametrize("mistake", _MISTAKES)
async def test_arguments_that_do_not_fit_the_task_are_refused_at_the_call(mistake: str) -> None:
    make, told = _MISTAKES[mistake]

    @flow
    async def mistaken() -> None:
        with pytest.raises(BadUsage) as refused:
            make()
        raise ValueError(str(refused.value))

    ended = await run_here(Runs(MemoryBackend()), mistaken, {}, signals=False)
    assert ended.status is Status.FAILED
    assert ended.error is not None
    assert ended.error.message == told
    assert called == []


async def test_arguments_that_fit_are_taken_in_every_form() -> None:
    @flow
    async def fine() -> list[str]:
        return [
            *await load.map(["a"], language="en", depth=2, key=lambda url: url, name="first"),
            *await anything.map(["b"], concurency=3),
            *await named.map(["c"], concurrency=2),
            await load("d", language="en"),
            await load(url="e", language="en", depth=2),
            await anything("f", more=1),
            await named("g", name="n"),
        ]

    ended = await run_here(Runs(MemoryBackend()), fine, {}, signals=False)
    assert ended.result == ["a", "b {'concurency': 3}", "c  ", "d", "e", "f {'more': 1}", "g n "]
    called.clear()


async def test_a_run_continues_only_a_run_of_its_own_flow() -> None:
    runs = Runs(MemoryBackend())
    other = await runs.submit(going)

    @flow
    async def mapping() -> list[str]:
        return await named.map(["a"])

    told = "run 1 is a run of going, which a run of mapping cannot continue. Name a run of mapping."
    with pytest.raises(BadUsage, match=told):
        await run_here(runs, mapping, {}, StartOptions(continues=other.id), signals=False)
    with pytest.raises(BadUsage, match=told):
        await runs.submit("mapping", {}, continues=other.id)
    assert len(await runs.list()) == 1
    first = await run_here(runs, mapping, {}, signals=False)
    assert (await run_here(runs, mapping, {}, StartOptions(continues=first.id), signals=False)).skipped == 1
