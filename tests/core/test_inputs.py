"""What a call was given is kept in few bytes, by the names of the parameters, and without secrets."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki import execution
from tsuzuki import facts as f
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.identity import plainly
from tsuzuki.inputs import Given, given_to, shortened
from tsuzuki.suspicion import suspicious
from tsuzuki.testing import builders

SECRETS = {
    "sk-abcdefghijklmnopqrstuv": "abcdef",
    "ghp_abcdefghijklmnopqrst": "abcdef",
    "AKIAABCDEFGHIJKLMNOP": "ABCDEF",
    "xoxb-1234567890-abcdef": "123456",
    "glpat-abcdefghijklmnop": "abcdef",
    "Bearer abcdefghijklmnop": "abcdef",
    "https://anna:hunter2@host.example/x": "hunter",
    "nats://hunter2@host.example": "hunter",
    "password=hunter2": "hunter",
    "https://host.example/?token=hunter2": "hunter",
    "passphrase=hunter2": "hunter",
    "tsz_0123456789ab_hunter2hunter2": "hunter",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmVk": "bGci",
}
"""Secrets, and a part of each that must not be seen."""
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner, max_size=6),
    max_leaves=12,
)


def task(document: Any, lang: Any = "ja", *more: Any, key: Any = None, **rest: Any) -> None: ...


def kept(most: int, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
    raw, cut = Given(task).call(plainly(args, kwargs), args, kwargs, most)
    shown = json.loads(bytes(raw))
    assert shown == json.loads(bytes(Given(task).call(None, args, kwargs, most)[0]))
    return shown, cut


@pytest.mark.parametrize(
    ("args", "kwargs", "shown"),
    [
        ((), {}, {}),
        ((1,), {}, {"document": 1}),
        (("a", "b", 3, 4), {"key": None}, {"document": "a", "lang": "b", "more": [3, 4], "key": None}),
        (("a",), {"lang": "en", "own": [1]}, {"document": "a", "lang": "en", "own": [1]}),
        (("item",), {"document": "by name"}, {"lang": "item", "document": "by name"}),
        ((threading.Lock(), Path("x/y")), {}, {"document": "<lock>", "lang": "x/y"}),
        ((iter([1]),), {"key": b"12345"}, {"document": "<list_iterator>", "key": "<5 bytes>"}),
        ((float("nan"),), {"key": "\ud800"}, {"document": "nan", "key": "<str>"}),
    ],
)
def test_inputs_have_the_names_of_the_parameters(args: tuple, kwargs: dict, shown: dict) -> None:
    assert kept(500, *args, **kwargs) == (shown, False)


def test_what_is_too_long_is_cut_inside_so_that_every_parameter_is_seen() -> None:
    given, cut = kept(120, {"prompt": "続き" * 500, "model": "small"}, "en", list(range(1000)))
    assert cut
    assert given["lang"] == "en"
    assert given["document"]["model"] == "small"
    assert given["document"]["prompt"].startswith("続き続き")
    assert given["document"]["prompt"].endswith("…")
    assert given["more"][0][0] == 0
    assert Given(task).call(None, (1,), {}, 0) == (f.NOT_KEPT, False)


@pytest.mark.parametrize("given", [{"\U0004a8c6" * 30 + str(n): n for n in range(40)}, {"n" * 100_000: 1}])
def test_names_of_what_is_given_take_no_more_room_than_there_is(given: dict) -> None:
    raw, cut = Given(task).call(plainly((given,), {}), (given,), {}, 500)
    assert cut
    assert len(raw) <= 600
    assert next(iter(json.loads(bytes(raw))["document"]))[:5] == next(iter(given))[:5]


@settings(max_examples=150, deadline=None)
@given(st.lists(PLAIN, max_size=3), st.dictionaries(st.sampled_from(["key", "own"]), PLAIN), st.integers(40, 600))
def test_inputs_are_json_of_about_the_length_that_is_asked_for(args: list, kwargs: dict, most: int) -> None:
    raw, cut = Given(task).call(plainly(tuple(args), kwargs), tuple(args), kwargs, most)
    assert isinstance(json.loads(bytes(raw)), dict)
    assert len(raw) <= most + 250
    assert cut or len(raw) <= most + 20
    assert isinstance(json.loads(shortened(bytes(raw), 60)), dict)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_kept_wherever_the_cut_goes(secret: str) -> None:
    for before in range(0, 130, 3):
        text = "x" * before + " " + secret + " and more" * 20
        assert suspicious(text)
        for value in (text, {"a": [text, {"b": text}]}, [1, text]):
            for most in (120, 500):
                call, _ = Given(task).call(plainly((value,), {}), (value,), {}, most)
                item, _ = Given(task).map({"key": value}, most, keyed=True).of(value)
                assert SECRETS[secret] not in f"{bytes(call).decode()}{bytes(item).decode()}"


@pytest.mark.parametrize(
    "name", ["password", "api_key", "X-Api-Key", "client_secret", "token", "bot_token", "credentials"]
)
def test_what_a_name_says_is_a_secret_is_hidden_whole(name: str) -> None:
    shown, _ = kept(500, {name: "two words", "max_tokens": 5}, own={name: ["a", {"b": 1}]}, **{name: 12345})
    assert shown == {"document": {name: "***", "max_tokens": 5}, "own": {name: "***"}, name: "***"}

    def takes(password: Any) -> None: ...

    for item in ("two words", 12345, "7"):
        raw, _ = Given(takes).map({}, 500, keyed=True).of(item)
        assert json.loads(bytes(raw)) == {"password": "***"}


@pytest.mark.parametrize("item", ["a", "続", "7", "007", "-7", "-0", "1e5", "", 7, -7, 0])
def test_an_item_that_is_its_own_key_is_said_by_the_key(item: str | int) -> None:
    mapped = Given(task).map({}, 500, keyed=False)
    raw, cut = mapped.of(item)
    fact = f.ItemDone(at=1.0, step="s", key=str(item), inputs=raw, inputs_cut=cut)
    began = f.StepStarted(at=1.0, step="s", name="task", map=True, takes=mapped.takes)
    assert json.loads(given_to(fact, began) or b"") == {"document": item}
    assert given_to(f.ItemDone(at=1.0, step="s", key=str(item)), None) is None
    if not isinstance(item, str):
        assert raw is f.NOT_KEPT


async def test_threads_that_ask_first_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync flow makes its first call while the loop begins to keep it in mind."""

    class Slow(execution.Calls):
        def __init__(self) -> None:
            threading.Event().wait(0.05)
            super().__init__()

    backend, nothing = MemoryBackend(), cast("Any", None)
    claim = await builders.claimed(backend)
    run = execution.Execution(backend, claim, backend.clock, nothing, nothing, nothing)
    monkeypatch.setattr(execution, "Calls", Slow)
    first, second = await asyncio.gather(*(asyncio.to_thread(lambda: run.calls) for _ in range(2)))
    assert first is second
