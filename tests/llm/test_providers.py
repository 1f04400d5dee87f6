"""Every provider answers through one interface; refusals are tried again, cancellation is quick, keys stay hidden."""

import asyncio
import time
from typing import Any

import pytest
from pydantic import BaseModel

from tests.llm.double import KEY, Double
from tests.llm.double_answers import Limiter
from tsuzuki import llm
from tsuzuki.errors import BadUsage, NoRule, ProviderRefused, ProviderUnavailable
from tsuzuki.llm import providers
from tsuzuki.llm.capability import is_local
from tsuzuki.llm.pacing import Limit, ModelPace, Pace
from tsuzuki.llm.providers import Address, offline
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.questions import CutOff, Question, Usage
from tsuzuki.llm.refusals import retry_after
from tsuzuki.llm.wire import Patience
from tsuzuki.testing import FakeClock
from tsuzuki.testing.stopwatch import Stopwatch

PATHS = {"openai": "/v1", "vllm": "/v1", "anthropic": "", "gemini": "/v1beta", "ollama": ""}
QUICK = Patience(attempts=4, first=0.01)


def at(double: Double, name: str) -> Provider:
    return providers.opened(Address(name, double.url + PATHS[name], "m-1"), patience=QUICK)


async def streamed(provider: Provider) -> str:
    return "".join([piece async for piece in provider.stream(Question("why?"))])


@pytest.mark.parametrize("name", PATHS)
async def test_a_question_is_answered_by(double: Double, name: str) -> None:
    provider = at(double, name)
    reply = await provider.complete(Question("why?", system="be brief", temperature=0.5, max_tokens=9))
    assert reply.text == "answer to why?"
    assert reply.finish == "stop"
    assert reply.usage != Usage()
    pieces = [piece async for piece in provider.stream(Question("a b c"))]
    assert "".join(pieces).replace(" ", "") == "answertoabc"
    assert "m-1" in await provider.models()
    assert "models" in await provider.health()
    await provider.close()


@pytest.mark.parametrize("name", PATHS)
async def test_a_cut_off_answer_says_so_from(double: Double, name: str) -> None:
    double.finish = "length"
    provider = at(double, name)
    assert (await provider.complete(Question("why?"))).finish == "length"
    with pytest.raises(CutOff, match="max_tokens"):
        await streamed(provider)
    await provider.close()


@pytest.mark.parametrize("name", PATHS)
async def test_a_stream_that_breaks_off_is_no_answer_from(double: Double, name: str) -> None:
    double.breaks = True
    provider = at(double, name)
    with pytest.raises(ProviderUnavailable, match=f"{name} broke off"):
        await streamed(provider)
    await provider.close()


async def test_a_stream_may_end_without_a_reason(double: Double) -> None:
    double.finish = ""
    provider = at(double, "openai")
    assert await streamed(provider) == "answer to why?"
    await provider.close()


async def test_passing_refusals_are_tried_again_and_lasting_ones_are_not(double: Double) -> None:
    provider = at(double, "openai")
    double.refusals = [(429, {"retry-after": "0.3"}), (503, {}), (500, {})]
    started = time.monotonic()
    assert (await provider.complete(Question("why?"))).text == "answer to why?"
    assert time.monotonic() - started >= 0.3
    assert len(double.seen) == 4
    double.refusals = [(400, {})]
    with pytest.raises(ProviderRefused, match="HTTP 400"):
        await provider.complete(Question("why?"))
    assert len(double.seen) == 5
    double.refusals = [(503, {})] * 9
    with pytest.raises(ProviderUnavailable):
        await provider.complete(Question("why?"))
    assert len(double.refusals) == 5
    await provider.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_how_long_a_provider_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, FakeClock(10.0)) == seconds


async def test_who_asks_for_an_hour_is_not_waited_for(double: Double) -> None:
    provider = at(double, "openai")
    double.refusals = [(429, {"retry-after": "3600"})]
    with pytest.raises(ProviderUnavailable, match="to be left alone for 3,600 s"):
        await provider.complete(Question("why?"))
    assert len(double.seen) == 1
    await provider.close()


async def test_a_server_that_is_not_there_is_told_of_by_its_address() -> None:
    provider = providers.opened(Address("openai", "http://127.0.0.1:9/v1"), patience=Patience(2, 0.01))
    with pytest.raises(ProviderUnavailable, match=r"http://127\.0\.0\.1:9/v1 cannot be reached"):
        await provider.complete(Question("why?"))
    await provider.close()


async def test_no_error_tells_the_key(double: Double) -> None:
    provider = at(double, "openai")
    double.refusals = [(401, {})]
    with pytest.raises(ProviderRefused) as caught:
        await provider.complete(Question("why?"))
    assert KEY not in str(caught.value)
    assert "***" in str(caught.value)
    assert double.headers[0]["authorization"] == f"Bearer {KEY}"
    await provider.close()


async def test_a_cancelled_call_ends_within_a_second(double: Double) -> None:
    double.delay = 30
    provider = at(double, "openai")
    call = asyncio.create_task(provider.complete(Question("why?")))
    while not double.at_once:
        await asyncio.sleep(0.01)
    with Stopwatch() as since:
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await provider.close()
        assert since.fair < 1


async def test_a_minute_holds_so_many_requests_and_tokens_evenly_spread() -> None:
    clock = FakeClock()
    pace = Pace(requests=60)
    started, sent = clock.monotonic(), list[float]()

    async def ask() -> None:
        await pace.turn(clock, 1)
        sent.append(clock.monotonic() - started)

    asking = asyncio.gather(*(ask() for _ in range(5)))
    while not asking.done():
        await asyncio.sleep(0)
        clock.advance(0.5)
    assert sent == [0, 1, 2, 3, 4]
    by_tokens = Pace(tokens=100)
    assert by_tokens.reserve(0.0, 80) == 0
    assert by_tokens.reserve(1.0, 30) == pytest.approx(48.0)
    by_tokens.used(-60)
    assert by_tokens.reserve(1.0, 30) == pytest.approx(48.0 + 18.0 - 36.0)


async def test_a_limit_that_is_set_holds_back_a_burst(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_REQUESTS_PER_MINUTE", "1200")
    double.limit = Limiter(20)
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(30)], concurrency=30, **where(double))
    assert [answer.error for answer in answers] == [None] * 30
    assert len(double.seen) == 30, "nothing was refused"


@pytest.mark.parametrize("announced", [True, False], ids=["with its headers", "without a word"])
async def test_who_asks_too_fast_pauses_with_all_others_and_every_question_is_answered(
    double: Double, announced: bool
) -> None:
    double.limit = Limiter(40, announced=announced)
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(100)], concurrency=64, **where(double))
    assert [answer.error for answer in answers] == [None] * 100
    assert len(double.seen) < (110 if announced else 200)


async def test_a_pause_for_all_ends_at_once_when_it_is_cancelled(double: Double) -> None:
    double.refusals = [(429, {"retry-after": "200"})]
    asking = asyncio.ensure_future(llm.ask_all([llm.Request("a")], **where(double)))
    while not double.seen:
        await asyncio.sleep(0.01)
    with Stopwatch() as since:
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert since.fair < 2


def where(double: Double) -> Any:
    return {"provider": "openai", "base_url": f"{double.url}/v1", "model": "m-1"}


@pytest.mark.parametrize(
    ("headers", "limit"),
    [
        (
            {
                "x-ratelimit-limit-requests": "600",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-requests": "1m2s",
            },
            Limit(600, 5, 62.0),
        ),
        (
            {
                "x-ratelimit-limit-requests": "600",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "120ms",
            },
            Limit(600, 0, 0.12),
        ),
        (
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "49",
                "anthropic-ratelimit-requests-reset": "1970-01-01T00:00:12Z",
            },
            Limit(50, 49, 2.0),
        ),
        ({"x-ratelimit-limit-requests": "many"}, None),
        ({}, None),
    ],
)
def test_limits_are_read_as_providers_announce_them(headers: dict[str, str], limit: Limit | None) -> None:
    assert Limit.read(headers, "requests", FakeClock(10.0)) == limit


def test_scarce_tokens_slow_down_and_plenty_do_not() -> None:
    clock, pace = FakeClock(), ModelPace()
    headers = {"x-ratelimit-limit-tokens": "6000", "x-ratelimit-remaining-tokens": "5000"}
    pace.heard(headers, clock, 100)
    now = clock.monotonic()
    assert [pace.reserve(now, 100) for _ in range(2)] == [now, now]
    headers |= {"x-ratelimit-remaining-tokens": "40", "x-ratelimit-reset-tokens": "59.6s"}
    pace.heard(headers, clock, 100)
    assert [pace.reserve(now, 100) - now for _ in range(2)] == pytest.approx([0.6, 1.6])


async def test_a_question_that_takes_too_long_is_sent_once_and_told_as_a_possible_charge(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_TIMEOUT_SEC", "0.3")
    double.hangs = lambda prompt: prompt == "slow"
    [slow, quick] = await llm.ask_all([llm.Request("slow"), llm.Request("quick")], **where(double))
    assert double.prompts == {"slow": 1, "quick": 1}
    assert "did not answer within 0.3 s" in str(slow.error)
    assert "may have been charged" in str(slow.error)
    assert "TSUZUKI_LLM_TIMEOUT_SEC" in str(slow.error)
    assert (slow.uncertain, slow.tries, quick.uncertain, quick.error) == (1, 1, 0, None)


async def test_an_answer_that_broke_off_is_asked_again_and_told_as_a_possible_charge(double: Double) -> None:
    double.garbled = 1
    [answer] = await llm.ask_all([llm.Request("q")], **where(double))
    assert (answer.text, answer.error) == ("answer to q", None), "a page instead of an answer passes"
    assert (answer.tries, answer.uncertain, len(double.seen)) == (2, 1, 2)


NO_QUOTA = [
    (429, {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota."}),
    (429, {"type": "credit_balance_exhausted", "message": "Add credits to go on."}),
    (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}),
    (402, {"type": "billing_error", "message": "There is an issue with your billing."}),
    (429, {"status": "RESOURCE_EXHAUSTED", "message": "Your prepayment credits are depleted."}),
    (401, {"type": "authentication_error", "message": "invalid x-api-key"}),
    (403, {"status": "PERMISSION_DENIED", "message": "The caller does not have permission."}),
]


@pytest.mark.parametrize(("status", "error"), NO_QUOTA, ids=[error["message"] for _, error in NO_QUOTA])
async def test_an_account_that_is_refused_stops_the_rest(double: Double, status: int, error: dict[str, str]) -> None:
    double.denies = (status, error)
    answers = await llm.ask_all([llm.Request(f"q{n}") for n in range(40)], concurrency=4, **where(double))
    assert len(double.seen) <= 4, "not every question asks for itself"
    assert all(error["message"] in str(answer.error) for answer in answers)
    assert {str(answer.error).partition(":")[0] for answer in answers} == {"ProviderDenied"}
    double.denies = None
    [answer] = await llm.ask_all([llm.Request("q")], **where(double))
    assert answer.ok, "whoever asks later is let in again"


async def test_a_question_that_is_flagged_or_too_large_stops_no_other(double: Double) -> None:
    provider = at(double, "openai")
    flagged = {"message": "Your input was flagged by moderation."}
    too_large = {"code": "rate_limit_exceeded", "message": "Request too large for m-1 on tokens per min (TPM)."}
    for status, error in ((403, flagged), (429, too_large)):
        double.denies = (status, error)
        with pytest.raises(ProviderRefused, match=error["message"][:9]):
            await provider.complete(Question("why?"))
        double.denies = None
        assert (await provider.complete(Question("why?"))).text == "answer to why?"
    assert len(double.seen) == 4
    await provider.close()


async def test_a_limit_a_minute_of_gemini_is_no_empty_account(double: Double) -> None:
    provider = at(double, "gemini")
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}
    text = "You exceeded your current quota, please check your plan and billing details."
    double.denials = [(429, {"status": "RESOURCE_EXHAUSTED", "message": text, "details": [info]})]
    assert (await provider.complete(Question("why?"))).text == "answer to why?"
    assert len(double.seen) == 2
    await provider.close()


def test_the_pace_is_shared_by_the_process(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_REQUESTS_PER_MINUTE", "7")
    one, other = at(double, "openai"), at(double, "openai")
    assert one.wire.pace is other.wire.pace  # type: ignore[attr-defined]
    assert one.wire.pace.requests == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "url", "local"),
    [
        ("ollama", "http://127.0.0.1:11434", True),
        ("vllm", "http://10.0.0.7:8000/v1", True),
        ("llama.cpp", "http://box:8080", True),
        ("vllm", "https://models.example.com/v1", False),
        ("openai", "http://127.0.0.1:8000/v1", False),
        ("anthropic", "https://api.anthropic.com", False),
    ],
)
def test_who_is_local(name: str, url: str, local: bool) -> None:
    assert is_local(name, url) is local


def test_what_is_set_is_where_questions_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Address().filled().provider == "offline"
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "vllm")
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", "http://127.0.0.1:1/v1/")
    monkeypatch.setenv("TSUZUKI_LLM_MODEL", "m-9")
    assert Address().filled() == Address("vllm", "http://127.0.0.1:1/v1", "m-9")
    assert Address("anthropic").filled().base_url == "https://api.anthropic.com"
    with pytest.raises(BadUsage, match="there is no provider 'nobody'"):
        Address("nobody").filled()


def test_what_is_set_belongs_to_the_provider_that_is_set_or_else_to_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TSUZUKI_LLM_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("TSUZUKI_LLM_MODEL", "m-9")
    for name in ("openai", "local", "vllm"):
        assert Address(name).filled() == Address(name, "http://127.0.0.1:1/v1", "m-9")
    assert Address("openai", "http://127.0.0.1:2", "m-1").filled() == Address("openai", "http://127.0.0.1:2", "m-1")
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "OFFLINE")
    assert Address("openai").filled().base_url == "https://api.openai.com/v1", "offline is set, and nothing else"
    monkeypatch.setenv("TSUZUKI_LLM_PROVIDER", "openai")
    assert Address("openai").filled() == Address("openai", "http://127.0.0.1:1/v1", "m-9")
    assert Address("local").filled().base_url == "http://127.0.0.1:8080/v1"


def test_a_missing_key_is_told_by_the_name_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(BadUsage, match="OPENAI_API_KEY"):
        providers.opened(Address("openai"))


class Greeting(BaseModel):
    """A schema with a rule."""

    to: str


async def test_the_offline_provider_answers_by_rule_and_says_where_there_is_none() -> None:
    @offline.register(Greeting)
    def greet(question: Question) -> Greeting:
        return Greeting(to=question.prompt)

    provider = providers.opened(Address("offline"))
    assert (await provider.complete(Question("you", name="Greeting"))).text == '{"to":"you"}'
    offline.unregister(Greeting)
    with pytest.raises(NoRule, match=r"no rule for questions for Greeting.*TSUZUKI_LLM_PROVIDER"):
        await provider.complete(Question("you", name="Greeting"))


async def test_providers_are_shared_while_somebody_asks(double: Double) -> None:
    where = Address("openai", f"{double.url}/v1")
    async with providers.shared(where) as one, providers.shared(where) as other:
        assert one is other
    async with providers.shared(where) as again:
        assert again is not one
