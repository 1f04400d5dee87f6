"""How long it took until somebody went on with a run whose worker was killed, frozen or cut off."""

from collections import defaultdict
from typing import Any

from tests.chaos.reading import Story


def takeovers(stories: dict[str, Story], calls: list[dict[str, Any]]) -> list[float]:
    """Gives the silence of each run between the last sign of a lost claim and the first call of the next (seconds)."""
    seen: dict[tuple[str, int], list[float]] = defaultdict(list)
    for call in calls:
        seen[call["run"], call["attempt"]].append(call["at"])
    found = []
    for story in stories.values():
        for before, after in _taken_over(story):
            if (story.run_id, before) in seen and (story.run_id, after) in seen:
                last = [at for at in seen[story.run_id, before] if at < min(seen[story.run_id, after])]
                found.append(min(seen[story.run_id, after]) - max(last, default=min(seen[story.run_id, after])))
    return sorted(found)


def _taken_over(story: Story) -> list[tuple[int, int]]:
    """Gives the attempts that were claimed from somebody who had not let go."""
    found, holding = [], 0
    for _, fact in story.facts:
        kind, attempt = fact["kind"], int(fact.get("attempt", 1))
        if kind == "Claimed":
            if holding and attempt > holding:
                found.append((holding, attempt))
            holding = attempt
        elif kind in ("Released", "RunCompleted", "RunFailed", "RunCancelled"):
            holding = 0
    return found


def percentiles(values: list[float]) -> dict[str, float]:
    """Sums sorted values up."""
    if not values:
        return {"count": 0}
    at = {f"p{share}": round(values[min(len(values) * share // 100, len(values) - 1)], 2) for share in (50, 90)}
    return {"count": len(values), **at, "max": round(values[-1], 2)}
