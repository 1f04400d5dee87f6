"""Whatever nonsense an option is given: the error names the option, what was given and what is allowed."""

from typing import Any

import pytest

from tsuzuki import Retry, flow, task
from tsuzuki.errors import BadUsage

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
        *(("name", given) for given in (3, b"x", ["x"])),
        *(("retry", given) for given in ("3", 0, -1, 1.5, True, {"attempts": 3}, Retry)),
        *(("timeout", given) for given in ("60", 0, -1, NAN, INFINITE, True)),
        *(("rate", given) for given in (10, "10", "0/s", "-1/s", "nan/s", "10/day", b"10/s", "9" * 400 + "/s")),
        *(("concurrency", given) for given in ("4", 0, -1, 1.5, NAN, True)),
        *(("limit", given) for given in (3, b"gitlab")),
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
        *(("name", given) for given in (3, b"x")),
        *(("key", given) for given in (3, plain, ["site"])),
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
        *(("idempotency_key", given) for given in (3, b"x")),
        ("backend", 3),
    ],
)
def test_a_start_says_which_option_is_wrong(option: str, given: Any) -> None:
    with pytest.raises(BadUsage) as refused:
        counting.run(**{"x": 1, option: given})
    assert f"run({option}=…) is " in str(refused.value)
    assert repr(given) in str(refused.value)
