"""docs/performance.md: each part between its marks is what a bench has measured, and says by which command."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
IMAGES: Final = PAGE.parent / "images"


def written(part: str, text: str, command: str, facts: Mapping[str, Any]) -> None:
    """Puts what was measured in its place."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    page = PAGE.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{PAGE.name} has no place for {part}: it needs the lines {begin} and {end}")
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    seen = f"`{command}` on {datetime.now(UTC):%Y-%m-%d}: {told}."
    PAGE.write_text(f"{before}{begin}\n{seen}\n\n{text.strip()}\n{end}{after}", encoding="utf-8")


def noise(rates: Sequence[float]) -> str:
    """Says how restless the machine was: how far the same yardstick went from its slowest to its fastest."""
    low, high = min(rates), max(rates)
    span = f"from {low:,.0f} to {high:,.0f} rows/s ({high / low:.1f} ×)"
    return f"The machine's noise: Y alone went {span} in {len(rates)} measurements."
