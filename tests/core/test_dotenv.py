"""What a `.env` file says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki import dotenv


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  export A = 1  ", "1"),
        ("A=", ""),
        ("A=one two # and a comment", "one two"),
        ("A=http://host/#part", "http://host/#part"),
        ("A=#nothing", ""),
        ('A="two words" # comment', "two words"),
        ('A="a \\"quoted\\" \\n line \\\\"', 'a "quoted" \n line \\'),
        ("A='as $it \\n is'", "as $it \\n is"),
        ("A=$HOME", "$HOME"),
        ('A="never closed', '"never closed'),
        ("A=続き", "続き"),
    ],
)
def test_a_line_names_a_value(line: str, value: str) -> None:
    assert dotenv.parse(line) == ({"A": value}, [])


def test_the_later_of_two_lines_wins_and_strange_ones_are_told_by_number() -> None:
    text = "\ufeff# a comment\r\nA=1\r\n\r\nnonsense\r\nA=2\r\n2B=3\r\n"
    assert dotenv.parse(text) == ({"A": "2"}, [4, 6])


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="'")))
def test_what_stands_in_single_quotes_is_taken_as_it_is(text: str) -> None:
    assert dotenv.parse(f"A='{text}'") == ({"A": text}, [])


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    dotenv.parse(text)
