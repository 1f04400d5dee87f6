"""Text without a model: sentences, words with and without a dictionary, summaries."""

import sys

import pytest

from tsuzuki import llm
from tsuzuki.llm import text


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It costs 3.14 dollars. Dr. Who pays.", ["It costs 3.14 dollars.", "Dr. Who pays."]),
        ("今日は晴れです。明日は？「雨だ。」と言った。", ["今日は晴れです。", "明日は？", "「雨だ。」と言った。"]),
        ("「はい。そう。」次。「閉じない。\n\n終わり。", ["「はい。そう。」", "次。", "「閉じない。", "終わり。"]),
        ("A title\n\nThe text goes\non here.", ["A title", "The text goes on here."]),
        ("", []),
    ],
)
def test_sentences(given: str, found: list[str]) -> None:
    assert llm.text.sentences(given) == found


def test_words_with_the_dictionary() -> None:
    assert text.words("東京タワーへ行きました。") == ["東京", "タワー", "へ", "行き", "まし", "た"]
    assert text.words("plain words, 3 of them") == ["plain", "words", "3", "of", "them"]
    assert len(text.words("長い文。" * 20_000)) > 20_000


def test_words_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sudachipy", None)
    text.japanese.cache_clear()
    try:
        assert text.words("東京タワーへ行く") == ["東京", "タワー", "へ", "行", "く"]
    finally:
        text.japanese.cache_clear()


def test_a_summary_is_made_of_the_sentences_that_say_most() -> None:
    about = (
        "Otters live in rivers. It was a sunny day. Otters eat fish in rivers. Bread is good. Fish live in rivers too."
    )
    assert llm.text.summary(about, 2) == ["Otters live in rivers.", "Otters eat fish in rivers."]
    assert llm.text.summary("Short. Text.", 3) == ["Short.", "Text."]
    assert (
        len(llm.text.summary("続きは耐久性のある実行です。今日は晴れ。実行は続きます。実行の記録は事実です。", 2)) == 2
    )
