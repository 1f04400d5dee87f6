"""One step or item of a run, whole: what it was given, what it gave, or what it failed of."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from tsuzuki import facts as f
from tsuzuki.cli import render
from tsuzuki.lifecycle import Run
from tsuzuki.overview import OUTCOMES
from tsuzuki.runs import Runs

if TYPE_CHECKING:
    from tsuzuki.client import Client

_CUT: Final = "long values are cut (…); TSUZUKI_INPUTS_KEPT says how many bytes are kept"


async def show_closely(
    runs: Runs, row: Run, *, key: str | None, position: int | None, step: str | None, as_json: bool
) -> int:
    """Shows what of a run has a key, or is at a position."""
    found = [item async for item in _here(runs, row, key, position) if step in (None, item["task"])]
    return _show(found, row.number, as_json=as_json)


async def _here(runs: Runs, row: Run, key: str | None, position: int | None) -> AsyncIterator[dict[str, Any]]:
    async for item in runs.items(row.id):
        if item["key"] == key if position is None else item["position"] == position:
            [entry] = await runs.backend.fetch(row.id, [item["position"]])
            yield item | await _whole(runs, row, entry.fact)


async def _whole(runs: Runs, row: Run, fact: f.Fact | f.Unknown) -> dict[str, Any]:
    error = getattr(fact, "error", None)
    return {
        "status": OUTCOMES.get(f.kind(fact), "done"),
        "output": await runs.value(row.id, fact) if isinstance(fact, f.Fact) and error is None else None,
        "error": None if error is None else error.said,
        "traceback": None if error is None else error.traceback or None,
        "artifacts": [{"name": a.name, "size": a.size} for a in getattr(fact, "artifacts", ())],
    }


def show_closely_there(
    client: "Client", reference: str, *, key: str | None, position: int | None, step: str | None, output: str
) -> int:
    """Shows what of a run of a gateway has a key, or is at a position."""
    places = [position] if position is not None else _places(client, reference, key or "", step)
    found = [dict(client.get_item(reference, place)) for place in places]
    return _show([item for item in found if step in (None, item["task"])], reference, as_json=output != "table")


def _places(client: "Client", reference: str, key: str, step: str | None) -> list[int]:
    return [item["position"] for item in client.list_items(reference, key=key, step=step) if item["key"] == key]


def _show(found: list[dict[str, Any]], reference: str | int, *, as_json: bool) -> int:
    if not found:
        click.echo(f"run {reference} has no such step or item with an outcome", err=True)
        return 1
    for place, item in enumerate(found):
        if as_json:
            render.put(item)
        else:
            click.echo("\n" * bool(place) + render.harmless("\n".join(_lines(item))))
    return 0


def _lines(item: dict[str, Any]) -> Iterator[str]:
    for name in ("task", "key", "position", "status"):
        if item[name] != "":
            yield f"{name:<12}{item[name]}"
    tries = "" if item["tries"] == 1 else f", {item['tries']} tries"
    yield f"{'took':<12}{render.duration(item['took'])}{tries}"
    yield f"{'ended':<12}{render.local(item['at'])}"
    if item["inputs"] is None:
        yield f"{'inputs':<12}not kept"
    else:
        yield f"inputs\n{render.shown_json(f.encode(item['inputs']))}"
    if item["inputs_truncated"]:
        yield f"{'':<12}{_CUT}"
    if item["error"] is not None:
        yield f"error\n{item['traceback'] or item['error']}"
    elif item.get("output_truncated"):
        yield f"{'output':<12}too large to be shown; tsuzuki export has it"
    else:
        yield f"output\n{render.result_text(f.encode(item['output']))}"
    for artifact in item["artifacts"]:
        yield f"{'artifact':<12}{artifact['name']}, {artifact['size']:,} bytes"
