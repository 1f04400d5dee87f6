"""Pydantic models as people write them, each with an answer that fits: providers have to take their schemas."""

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, HttpUrl


class Kind(Enum):
    """A kind of animal."""

    CAT = "cat"
    DOG = "dog"


class Town(BaseModel):
    """A town."""

    name: str
    people: int = Field(ge=0)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Score(BaseModel):
    score: int = Field(ge=1, le=5, description="How well it fits.")


class Share(BaseModel):
    share: float = Field(ge=0.0, le=1.0)


class Short(BaseModel):
    text: str = Field(min_length=1, max_length=80)


class Tags(BaseModel):
    tags: list[str] = Field(min_length=2, max_length=5)


class Link(BaseModel):
    url: HttpUrl


class Pet(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Counts(BaseModel):
    counts: dict[str, int]


class Point(BaseModel):
    at: tuple[float, float]
    named: tuple[int, str]


class Nested(BaseModel):
    town: Town = Field(description="Where it was signed.")
    other: Town | None = Field(default=None, description="Where it was sent.")


class Described(BaseModel):
    kind: Kind = Field(description="Which animal.")


class Tree(BaseModel):
    label: str
    children: list["Tree"] = []


class Family(BaseModel):
    name: str
    parent: "Family | None" = Field(default=None, description="The parent.")


class Optionals(BaseModel):
    title: str | None = None
    year: int = 2000
    tags: list[str] = Field(default_factory=list)


class Dates(BaseModel):
    day: date
    at: datetime
    id: UUID


class Mail(BaseModel):
    to: Annotated[str, Field(pattern=r"^[a-z]+@[a-z]+$")]
    code: Annotated[str, Field(pattern=r"^(?:A|B)\d+$")]


class Money(BaseModel):
    amount: Decimal


class Mixed(BaseModel):
    value: Literal["a", 1, True] | None
    either: int | str


class Loose(BaseModel):
    data: dict[str, Any]
    extra: Any = None


class Unique(BaseModel):
    names: set[str]
    by_kind: dict[Kind, int]


class Wide(BaseModel):
    """More optional fields than Anthropic takes."""

    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    e: str | None = None
    f: str | None = None
    g: str | None = None
    h: str | None = None
    i: str | None = None
    j: str | None = None
    k: str | None = None
    l: str | None = None  # noqa: E741 - a letter like the others
    m: str | None = None
    n: str | None = None
    o: str | None = None
    p: str | None = None
    q: str | None = None


TOWN = {"name": "Ota", "people": 3}
EVERYDAY: dict[type[BaseModel], Any] = {
    Score: {"score": 3},
    Share: {"share": 0.5},
    Short: {"text": "so"},
    Tags: {"tags": ["a", "b"]},
    Link: {"url": "https://example.com/"},
    Pet: {"pet": {"kind": "dog", "tricks": ["sit"]}},
    Counts: {"counts": {"a": 1}},
    Point: {"at": [0.5, 1.0], "named": [1, "x"]},
    Nested: {"town": TOWN, "other": None},
    Described: {"kind": "cat"},
    Tree: {"label": "a", "children": [{"label": "b", "children": []}]},
    Family: {"name": "a", "parent": {"name": "b", "parent": None}},
    Optionals: {"title": None, "year": 1999, "tags": []},
    Dates: {"day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "id": "12345678-1234-5678-1234-567812345678"},
    Mail: {"to": "a@b", "code": "A1"},
    Money: {"amount": "1.50"},
    Mixed: {"value": 1, "either": "x"},
    Loose: {"data": {"x": [1]}, "extra": None},
    Unique: {"names": ["a"], "by_kind": {"cat": 1}},
    Wide: {"a": "x"},
}
