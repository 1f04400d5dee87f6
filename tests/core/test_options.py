"""Whatever nonsense an option is given: the error names the option, what was given and what is allowed."""

from typing import Any

import pytest

from tsuzuki import Retry, Runs, Worker, flow, task
from tsuzuki.errors import BadUsage
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
