"""The rules by which the offline provider answers this application: kinds of terms, definitions, reviews.

They read the same prompts that a model reads. Importing this module registers them.
"""

import re
from typing import Final

from tsuzuki import llm
from tsuzuki.apps.glossary.answers import (
    GlossaryDefinition,
    GlossaryRefinement,
    GlossaryReview,
    GlossaryTermClasses,
    ReviewedIssue,
    TermClass,
)
from tsuzuki.apps.glossary.extractive import NOTHING, found_definition
from tsuzuki.apps.glossary.japanese import tokenized
from tsuzuki.apps.glossary.plaintext import HAS_CJK
from tsuzuki.apps.glossary.prompts import parts, text_in, texts
from tsuzuki.apps.glossary.records import Category, IssueType
from tsuzuki.apps.glossary.words import COMMON_ENGLISH, COMMON_JAPANESE

_ORGANIZATION: Final = re.compile(
    r"株式会社.+|.+株式会社|.+(?:大学|研究所|委員会|協会|財団|学会|銀行|省|庁|機構|連盟|組合)"
    r"|.+ (?:Inc|Corp|Ltd|LLC|GmbH|Corporation|Foundation|University|Institute|Committee|Association)\.?"
)
_TITLE: Final = re.compile(
    r".*(?:社長|部長|課長|教授|委員長|理事長|大臣|長官|博士|議長|監督)"
    r"|(?:.+ )?(?:Director|President|Professor|Minister|Chairman|Officer)"
)
_PERSON: Final = re.compile(r".+(?:氏|さん|様|先生)|(?:Mr|Mrs|Ms|Dr|Prof)\.? .+")
_PLACE: Final = re.compile(
    r".+(?:都|道|府|県|市|区|町|村|駅|川|島|半島|湾|海峡)|.+ (?:City|River|Island|County|Province)"
)
_WEAK: Final = 0.35
_SHORT: Final = 8


@llm.offline.register(GlossaryTermClasses)
def classify(question: llm.Question) -> GlossaryTermClasses:
    """Says of what kind candidates are."""
    found = [text_in(candidate, "term") for candidate in parts(question.prompt, "candidate")]
    return GlossaryTermClasses(terms=[TermClass(term=term, category=category_of(term)) for term in found])


def category_of(term: str) -> Category:
    """Says of what kind a term is, by its spelling and its parts."""
    if term in COMMON_JAPANESE or (" " not in term and term in COMMON_ENGLISH):
        return Category.COMMON_NOUN
    for pattern, category in (
        (_ORGANIZATION, Category.ORGANIZATION),
        (_TITLE, Category.TITLE),
        (_PERSON, Category.PERSON_NAME),
    ):
        if pattern.fullmatch(term):
            return category
    if HAS_CJK.search(term):
        return _japanese_category(term)
    return Category.PLACE_NAME if _PLACE.fullmatch(term) else Category.TECHNICAL_TERM


def _japanese_category(term: str) -> Category:
    tokens = tokenized(term)
    names = [token.name for token in tokens if token.detail == "固有名詞"]
    if names and len(names) == len(tokens):
        return {"人名": Category.PERSON_NAME, "地名": Category.PLACE_NAME}.get(names[-1], Category.TECHNICAL_TERM)
    if "地名" in names and _PLACE.fullmatch(term):
        return Category.PLACE_NAME
    if all(token.text in COMMON_JAPANESE for token in tokens) and len(tokens) == 1:
        return Category.COMMON_NOUN
    return Category.TECHNICAL_TERM


@llm.offline.register(GlossaryDefinition)
def define(question: llm.Question) -> GlossaryDefinition:
    """Defines a term by the sentence of its contexts that says best what it is."""
    prompt = question.prompt
    names = [text_in(prompt, "term"), *texts(prompt, "synonym")]
    definition, confidence = found_definition(names, texts(prompt, "context"))
    notes = text_in(prompt, "user_notes")
    if definition == NOTHING and notes:
        return GlossaryDefinition(definition=notes, confidence=0.6)
    return GlossaryDefinition(definition=definition, confidence=confidence)


@llm.offline.register(GlossaryReview)
def review(question: llm.Question) -> GlossaryReview:
    """Finds entries that say nothing, say the same, contradict themselves or need no entry."""
    issues: list[ReviewedIssue] = []
    seen: dict[str, str] = {}
    for entry in parts(question.prompt, "entry"):
        term, definition = text_in(entry, "term"), text_in(entry, "definition")
        issues += _issues(term, definition, float(text_in(entry, "confidence") or 0))
        twin = seen.setdefault(definition, term)
        if twin != term and definition != NOTHING:
            issues.append(
                _issue(
                    term,
                    IssueType.MISSING_RELATION,
                    f"「{twin}」と定義が同じです",
                    f"has the same definition as {twin!r}",
                )
            )
    return GlossaryReview(issues=issues)


def _issues(term: str, definition: str, confidence: float) -> list[ReviewedIssue]:
    if category_of(term) is Category.COMMON_NOUN:
        return [
            _issue(term, IssueType.UNNECESSARY, "一般的な語です", "is an everyday word", exclude=True),
        ]
    if definition == NOTHING:
        told = ("文書に説明が見つかりません", "is explained nowhere in the documents")
        return [_issue(term, IssueType.UNCLEAR, *told, exclude=True)]
    if len(definition) < _SHORT or definition.strip(" 。.").lower() == term.lower():
        return [_issue(term, IssueType.UNCLEAR, "定義が短すぎます", "has a definition that says too little")]
    if _contradicts(term, definition):
        return [_issue(term, IssueType.CONTRADICTION, "定義に矛盾があります", "is said to be and not to be the same")]
    if confidence < _WEAK:
        told = ("言及されるだけで、説明されていません", "is mentioned in the documents, but not explained")
        return [_issue(term, IssueType.UNCLEAR, *told, exclude=True)]
    return []


def _contradicts(term: str, definition: str) -> bool:
    name = re.escape(term)
    denied = re.search(rf"{name}は[^。]{{0,400}}ではない|\b{name} (?:is|are) not\b", definition, re.IGNORECASE)
    said = re.search(
        rf"{name}(?:とは|は)[^。]{{0,400}}(?:である|です)。|\b{name} (?:is|are) (?:a|an|the)\b",
        definition,
        re.IGNORECASE,
    )
    return bool(denied and said)


def _issue(term: str, kind: IssueType, japanese: str, english: str, *, exclude: bool = False) -> ReviewedIssue:
    text = japanese if HAS_CJK.search(term) else f"{term} {english}"
    return ReviewedIssue(
        term_name=term,
        issue_type=kind,
        description=text,
        should_exclude=exclude,
        exclusion_reason=text if exclude else None,
    )


@llm.offline.register(GlossaryRefinement)
def refine(question: llm.Question) -> GlossaryRefinement:
    """Defines a term anew from all its contexts, with what a person noted; never worse than before."""
    prompt = question.prompt
    names = [text_in(prompt, "term"), *texts(prompt, "synonym")]
    before, notes = text_in(prompt, "definition"), text_in(prompt, "user_notes")
    definition, confidence = found_definition(names, texts(prompt, "context"))
    if definition == NOTHING or len(definition) < len(before):
        definition = before
    if notes and notes not in definition:
        definition = notes if definition == NOTHING else f"{definition} {notes}"
        confidence = max(confidence, 0.6)
    return GlossaryRefinement(definition=definition, confidence=round(min(confidence, 1.0), 2))
