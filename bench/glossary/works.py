"""The works of the application that makes glossaries, and the goals they are held to."""

from functools import partial
from typing import Final

from bench.process import measure
from bench.report import Row
from bench.works import Bench, attempt

DOCUMENTS: Final = 1000
FEW: Final = 100
MANY: Final = 5000
GOALS: Final = {"ja": 0.6, "en": 0.5}
NAMES: Final = {"ja": "Japanese", "en": "English"}
RATE: Final = 500_000
MEMORY: Final = 300


def glossary(bench: Bench) -> list[Row]:
    """Precision at 20 offline, candidates and occurrences over a thousand documents of 10 KB, in both languages."""
    count = DOCUMENTS // bench.scale
    for which, language in enumerate(GOALS):
        bench.take(f"glossary precision {language}", partial(measure, "bench.glossary.ours:precision", which))
        for _ in range(bench.rounds):
            found = partial(measure, "bench.glossary.ours:candidates", count, which)
            bench.take(f"glossary candidates {language}", found)
        for terms in (FEW, MANY):
            placed = partial(measure, "bench.glossary.ours:occurrences", count, terms, which)
            bench.take(f"glossary occurrences {language} {terms}", placed)
    rows = []
    for language, name in NAMES.items():
        rows += [
            attempt(f"glossary, {name}: precision at 20 offline", partial(_precision, bench, language)),
            attempt(f"  {name}: candidates of 1,000 documents of 10 KB", partial(_candidates, bench, language)),
            attempt(f"  {name}: occurrences of 5,000 terms", partial(_occurrences, bench, language)),
        ]
    return rows


def _precision(bench: Bench, language: str) -> Row:
    found = bench.middle(f"glossary precision {language}", "precision")
    goal = GOALS[language]
    work = f"glossary, {NAMES[language]}: precision at 20 offline"
    return bench.judged(work, f"{found:.2f}", f"≥ {goal}", reached=found >= goal)


def _candidates(bench: Bench, language: str) -> Row:
    rate, mb = (bench.middle(f"glossary candidates {language}", what) for what in ("rate", "mb"))
    figure, goal = f"{rate:,.0f} characters/s, {mb:.0f} MB", f"≥ {RATE:,} characters/s, ≤ {MEMORY} MB"
    work = f"  {NAMES[language]}: candidates of 1,000 documents of 10 KB"
    return bench.judged(work, figure, goal, reached=rate >= RATE and mb <= MEMORY)


def _occurrences(bench: Bench, language: str) -> Row:
    few, many = (bench.middle(f"glossary occurrences {language} {terms}", "rate") for terms in (FEW, MANY))
    mb = bench.middle(f"glossary occurrences {language} {MANY}", "mb")
    figure = f"{many:,.0f} characters/s ({few / many:.1f} × the time of 100 terms), {mb:.0f} MB"
    goal = f"50 × the terms in ≤ 5 × the time, ≤ {MEMORY} MB"
    work = f"  {NAMES[language]}: occurrences of 5,000 terms"
    return bench.judged(work, figure, goal, reached=few / many <= 5 and mb <= MEMORY)
