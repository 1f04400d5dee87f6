"""The cache: off unless asked for, keyed by everything, without errors, bounded in age and size."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.llm.double import Double
from tsuzuki import llm
from tsuzuki.errors import LLMError
from tsuzuki.llm import cached
from tsuzuki.llm.cached import Cache, key_of
from tsuzuki.llm.prices import with_cost
from tsuzuki.llm.questions import Question, Reply, Usage
from tsuzuki.testing import FakeClock


@pytest.fixture
def where(double: Double) -> Any:
    return {"provider": "openai", "base_url": f"{double.url}/v1"}


async def test_it_is_off_unless_asked_for(double: Double, where: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        await llm.ask(str, "q", **where)
    assert double.prompts["q"] == 2
    monkeypatch.setenv("TSUZUKI_LLM_CACHE", "1")
    for _ in range(3):
        assert await llm.ask(str, "q", **where) == "answer to q"
    assert double.prompts["q"] == 3
    await llm.ask(str, "q", temperature=1.0, **where)
    await llm.ask(str, "q", model="m-2", provider="openai", base_url=where["base_url"])
    assert double.prompts["q"] == 5


async def test_errors_are_not_kept(double: Double, where: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_CACHE", "1")
    double.refusals = [(400, {})]
    with pytest.raises(LLMError):
        await llm.ask(str, "q", **where)
    assert await llm.ask(str, "q", **where) == "answer to q"


async def test_answers_grow_old_and_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setenv("TSUZUKI_LLM_CACHE_TTL_SEC", "100")
    monkeypatch.setenv("TSUZUKI_LLM_CACHE_MAX_BYTES", "3000")
    async with Cache(tmp_path / "cache.db", clock=clock) as cache:
        await cache.put("a", Reply("x", cost=0.5))
        found = await cache.get("a")
        assert found is not None
        assert (found.text, found.cached, found.cost) == ("x", True, 0.0)
        clock.advance(101)
        assert await cache.get("a") is None
        for number in range(40):
            clock.advance(0.1)
            await cache.put(f"k{number}", Reply("y" * 200))
        stats = await cache.stats()
        assert stats.bytes <= 3000
        assert await cache.get("k39") is not None
        assert await cache.get("k0") is None
        assert await cache.clear() == stats.answers
        assert (await cache.stats()).answers == 0


def test_the_key_is_who_where_which_model_and_the_whole_question() -> None:
    one, other = (llm.opened(llm.Address("ollama", url, "m")) for url in ("http://a", "http://b"))
    keys = {
        key_of(one, Question("q")),
        key_of(other, Question("q")),
        key_of(one, Question("q", model="n")),
        key_of(one, Question("q", system="s")),
    }
    assert len(keys) == 4
    assert key_of(one, Question("q", model="m")) != key_of(one, Question("q", model="n"))


def test_prices_come_from_the_list_and_are_never_guessed() -> None:
    reply = Reply(usage=Usage(1_000_000, 100_000), model="gpt-4o-mini")
    whole = with_cost("openai", reply).cost
    assert whole == pytest.approx(0.21)
    assert with_cost("openai", reply, batch=True).cost == pytest.approx(0.105)
    assert with_cost("openai", Reply(usage=Usage(5, 5), model="nobody-knows")).cost is None
    assert with_cost("ollama", reply).cost == 0


async def test_how_much_is_kept_is_known_without_adding_it_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cache.db"
    before = {1: (Path(cached.__file__).parent / "migrations/0001_answers.sql").read_text()}
    with monkeypatch.context() as patched:
        patched.setattr("tsuzuki.llm.database.steps", lambda folder: before)
        async with Cache(file):
            pass
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as older:
        older.execute("INSERT INTO answers VALUES ('old', x'00', 7, 9e9, 9e9, 0)")
    monkeypatch.setenv("TSUZUKI_LLM_CACHE_MAX_BYTES", "2000")
    async with Cache(file) as cache:
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as looked:
            for number in (1, 2, 1, 3, 4, 5, 5):  # some again; the old ones make room
                await cache.put(f"k{number}", Reply("x" * 100 * number))
                assert looked.execute(cached.SQL["size"]).fetchone() == ((await cache.stats()).bytes,)
            assert await cache.clear() > 0
            assert looked.execute(cached.SQL["size"]).fetchone() == (0,)
