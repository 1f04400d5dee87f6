"""What a run had finished when it was stopped: read out of the engine's journal, and kept where nothing was before."""

import asyncio
from typing import Any, Final

from tsuzuki import Run, Runs
from tsuzuki.apps.glossary.generating import Subjects
from tsuzuki.apps.glossary.project import ProjectFile

STEPS: Final = {"glossary_define": "provisional", "glossary_refine": "refined"}
"""The tasks whose items are entries, and what they are entries of."""


async def partial_of(runs: Runs, engine_run: str) -> list[dict[str, Any]]:
    """Gives the definitions that a run has recorded, in the order in which they came."""
    places = {
        item["position"]: STEPS[item["task"]]
        async for item in runs.items(engine_run)
        if item["task"] in STEPS and item["kind"] in ("ItemDone", "ItemSkipped")
    }
    found = []
    async for entry in runs.journal(engine_run):
        if entry.position in places:
            value = await runs.value(engine_run, entry.fact)  # type: ignore[arg-type] # an outcome, as its kind says
            found.append({"step": places[entry.position], **value})
    return found


async def keep_partial(runs: Runs, project: ProjectFile, run: Run) -> None:
    """Lets finished definitions be the provisional glossary where there was none: that takes nothing away."""
    if await asyncio.to_thread(project.provisional.list):
        return
    found = [each for each in await partial_of(runs, run.id) if each["step"] == "provisional"]
    if not found:
        return
    known = await asyncio.to_thread(Subjects.of, project)
    named = {each["term"]: known.entry(each["term"], each["definition"], each["confidence"]) for each in found}
    await asyncio.to_thread(project.provisional.become, named.values())
