"""An answer fits its model, whatever stands around it; what does not fit is asked for again, three times in all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.llm.double import Double
from tests.llm.test_providers import at, streamed
from tsuzuki.errors import BadAnswer
from tsuzuki.llm.checking import flaws_of, validated
from tsuzuki.llm.providers.openai import OpenAI, strictly
from tsuzuki.llm.questions import MODELS, Question, Reply, Request, Withheld, digest, schema_of
from tsuzuki.llm.structured import asked, candidates, fitting, whole


class Place(BaseModel):
    """A town."""

    name: str
    people: int = Field(ge=0)
    twin: "Place | None" = None


GOOD = {"name": "Ota", "people": 3}
SAID = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        SAID,
        f"Sure! Here it is:\n```json\n{SAID}\n```\nAnything else?",
        f"```\n{SAID}```",
        f"I thought of {{braces}} and then: {SAID} (done)",
        f'{{"result": {SAID}}}',
        f'{{"answer": {{"place": {SAID}}}, "confidence": 1}}',
        f"[{SAID}]",
        f'First {{"name": 4}} but rather {SAID}',
        f"\ufeff  {SAID}\n\n",
        f'<think>\n{{"name": "Otsu", "people": 9}}? No.\n</think>\n\n{SAID}',
        f'Perhaps {{"name": "Otsu", "people": 9}}? No.\n</think>{SAID}',
        '{"name": "Ota", "people": 3,}',
        "Here: {'name': 'Ota', 'people': 3, 'twin': None} as asked",
        json.dumps(SAID),
    ],
)
def test_the_answer_is_found_in(text: str) -> None:
    schema, _ = schema_of(Place)
    assert fitting(Reply(text), schema) == GOOD | {"twin": None}


def test_a_tag_inside_an_answer_is_no_thought() -> None:
    schema, _ = schema_of(Place)
    assert fitting(Reply('{"name": "a</think>b", "people": 1}'), schema)["name"] == "a</think>b"


def test_a_model_of_optional_fields_is_not_satisfied_by_a_wrapper() -> None:
    class Loose(BaseModel):
        title: str = ""
        size: int = 0

    schema, _ = schema_of(Loose)
    assert fitting(Reply('{"result": {"title": "x", "size": 2}}'), schema) == {"title": "x", "size": 2}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_in_a_fence_is_found(value: Any) -> None:
    assert value in list(candidates(f"so:\n```json\n{json.dumps(value)}\n```"))


@given(st.text(alphabet='{}[]"\\,:a1 \n`'))
def test_no_text_breaks_the_search(text: str) -> None:
    list(candidates(text))


async def test_what_is_wrong_goes_into_the_next_question(double: Double) -> None:
    answers = iter(['{"name": "Ota"}', "no idea", SAID])
    double.answer = lambda _: next(answers)
    provider = at(double, "openai")
    reply = await asked(provider, Request("where?", schema=Place).question())
    assert reply.value["people"] == 3
    assert reply.tries == 3
    assert reply.usage.input == 30
    assert "people: Field required" in double.seen[1]["messages"][-1]["content"]
    assert "no JSON" in double.seen[2]["messages"][-1]["content"]
    await provider.close()


async def test_three_tries_are_all(double: Double) -> None:
    double.answer = lambda _: "no idea"
    provider = at(double, "openai")
    with pytest.raises(BadAnswer, match="3 tries: there is no JSON"):
        await asked(provider, Request("where?", schema=Place).question())
    assert len(double.seen) == 3
    await provider.close()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_a_cut_off_answer_is_a_failure_although_it_parses(double: Double, name: str) -> None:
    double.answer, double.finish = lambda _: SAID, "length"
    provider = at(double, name)
    with pytest.raises(BadAnswer, match="finish_reason length"):
        await asked(provider, Request("where?", schema=Place).question())
    assert len(double.seen) == 1
    await provider.close()


@pytest.mark.parametrize(
    ("name", "finish"),
    [("openai", "content_filter"), ("anthropic", "refusal"), ("gemini", "recitation"), ("gemini", "blocked")],
)
async def test_an_answer_that_is_held_back_is_a_failure_and_not_asked_for_again(
    double: Double, name: str, finish: str
) -> None:
    double.answer, double.finish = lambda _: SAID, finish
    provider = at(double, name)
    for schema in (Place, None):
        with pytest.raises(Withheld, match="holds the answer back") as caught:
            await asked(provider, Request("where?", schema=schema).question())
        assert isinstance(caught.value.reply, Reply)
        assert caught.value.reply.usage.input  # it is paid for
    with pytest.raises(Withheld):
        await streamed(provider)
    assert len(double.seen) == 3
    await provider.close()


def test_a_refusal_is_told_in_its_own_words(double: Double) -> None:
    said = {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "I would rather not."}}]}
    provider = at(double, "openai")
    assert isinstance(provider, OpenAI)
    with pytest.raises(Withheld, match=r"refusal.*I would rather not"):
        whole(provider.reply(said))


async def test_the_ladder_goes_down_where_a_server_does_not_know_a_rung(double: Double) -> None:
    provider = at(double, "vllm")
    double.answer = lambda _: SAID
    double.refusals = [(400, {"x": "response_format json_schema"}), (400, {"x": "response_format json_object"})]
    assert (await asked(provider, Request("where?", schema=Place).question())).value["name"] == "Ota"
    forms = [body.get("response_format", {}).get("type") for body in double.seen]
    assert forms == ["json_schema", "json_object", None]
    assert "JSON schema" in double.seen[2]["messages"][0]["content"]
    await provider.close()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("openai", ("response_format", "json_schema", "schema")),
        ("anthropic", ("output_config", "format", "schema")),
        ("gemini", ("generationConfig", "responseJsonSchema")),
        ("ollama", ("format",)),
    ],
)
async def test_the_schema_goes_where_the_protocol_has_it(double: Double, name: str, place: tuple[str, ...]) -> None:
    double.answer = lambda _: SAID
    provider = at(double, name)
    await asked(provider, Request("where?", schema=Place).question())
    found = double.seen[0]
    for step in place:
        found = found[step]
    assert "properties" in str(found)
    await provider.close()


def test_a_strict_schema_names_every_property_or_is_not_strict() -> None:
    class Open(BaseModel):
        any: dict[str, int]

    strict = strictly(schema_of(Place)[0])
    inner = strict["$defs"]["Place"] if "$defs" in strict else strict
    assert inner["required"] == ["name", "people", "twin"]
    assert inner["additionalProperties"] is False
    assert strictly(schema_of(Open)[0]) is None


def test_without_the_model_the_schema_itself_decides() -> None:
    schema, _ = schema_of(Place)
    MODELS.pop(digest(schema))
    assert validated(GOOD, schema) == GOOD
    wrong: list[Any] = [{"name": "x"}, {"name": "x", "people": -1}, {"name": 1, "people": 1}, {**GOOD, "twin": 3}, []]
    for bad in wrong:
        with pytest.raises(BadAnswer):
            validated(bad, schema)


@given(st.builds(Place.model_construct, name=st.text(), people=st.integers(min_value=0), twin=st.none()))
def test_whatever_a_model_writes_fits_its_schema(place: Place) -> None:
    schema, _ = schema_of(Place)
    assert not list(flaws_of(place.model_dump(mode="json"), schema, schema, ""))


def test_a_question_without_a_schema_is_only_cut_off_or_not() -> None:
    assert Question("x").schema is None


def test_a_pattern_of_a_schema_is_asked_in_linear_time() -> None:
    """A schema may come from elsewhere, and so does the answer: together they must not hang a worker."""
    for pattern, fits in (("(a+)+$", False), ("(a|aa)+x", False), ("^a+!", True), ("(?=a)looked ahead", True)):
        schema = {"type": "string", "pattern": pattern}
        assert (list(flaws_of("a" * 5000 + "!", schema, schema, "")) == []) is fits
