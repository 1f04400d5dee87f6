"""What language models answer; whatever is odd in it and can be read is read, the rest is left out one by one."""

from math import isfinite
from typing import Any, Final

from pydantic import BaseModel, Field, field_validator

from tsuzuki.apps.glossary.extractive import NOTHING
from tsuzuki.apps.glossary.records import Category, IssueType

_PERCENT: Final = 100


class TermClass(BaseModel):
    """A term and its kind."""

    term: str
    category: str = Field(default="", json_schema_extra={"enum": [each.value for each in Category]})
    """Any text is read: one unknown word must not cost the other terms of the answer."""


class GlossaryTermClasses(BaseModel):
    """The kinds of some candidates."""

    terms: list[TermClass]


class GlossaryDefinition(BaseModel):
    """A definition, and how well it is supported."""

    definition: str
    confidence: float = 0.5

    @field_validator("definition")
    @classmethod
    def says_something(cls, value: str) -> str:
        """Refuse a definition without a word, such as the dots of the example; not every provider takes a length."""
        text = value.strip()
        if text != NOTHING and not any(sign.isalnum() for sign in text):
            raise ValueError("the definition says nothing")
        return text

    @field_validator("confidence", mode="before")
    @classmethod
    def between_0_and_1(cls, value: Any) -> Any:
        """Read 85 and "85%" as 0.85, and refuse what is no share at all."""
        if isinstance(value, str):
            value = value.strip().removesuffix("%")
        try:
            number = float(value)
        except (TypeError, ValueError):
            return 0.5
        if not isfinite(number):  # JSON as models write it may say NaN
            return 0.5
        if number > _PERCENT:
            raise ValueError("the confidence is a number from 0 to 1")
        return max(number / _PERCENT if number > 1 else number, 0.0)


class GlossaryRefinement(GlossaryDefinition):
    """A better definition."""


class ReviewedIssue(BaseModel):
    """Something that is wrong with an entry."""

    term_name: str = ""
    issue_type: str = Field(default="", json_schema_extra={"enum": [each.value for each in IssueType]})
    description: str = ""
    should_exclude: bool = False
    exclusion_reason: str | None = None


class GlossaryReview(BaseModel):
    """What is wrong with some entries."""

    issues: list[ReviewedIssue]
