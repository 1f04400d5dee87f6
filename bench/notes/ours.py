"""The works of the application: the cache, an offline import, a resume with nothing left to do, a very large export."""

import asyncio
import json
import os
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.process import Figures
from tsuzuki import Runs, Worker, settings
from tsuzuki.apps.notes import CompletedItemsCache, StageType, flows
from tsuzuki.apps.notes.desk import Desk
from tsuzuki.apps.notes.extracting import extract
from tsuzuki.apps.notes.sessions import Sessions
from tsuzuki.apps.notes.wanted import Asked

WORDS: Final = """
    river otter water stone morning signal kernel buffer garden letter window market bridge copper silver engine
    python thread memory socket cursor record ledger journal harbour lantern meadow pepper ribbon saddle timber velvet
""".split()  # noqa: SIM905 - words are read more easily so
CHARACTERS: Final = 5_000


def cache(folder: Path, count: int) -> Figures:
    """Loads a log of so many records: three in four are successes, of two stages."""
    path = folder / "pipeline_stages.jsonl"
    with path.open("w") as file:
        for number in range(count):
            record = {
                "timestamp": "2026-01-26T10:00:00+00:00", "session_id": "20260126_100000", "filename": "conv.json",
                "stage": ("transform", "load")[number % 2], "step": "extract_knowledge", "timing_ms": 5000,
                "status": "failed" if number % 8 > 5 else "success", "item_id": f"{number:032x}",
                "file_id": f"sha256:{number:064x}", "before_chars": 10000, "after_chars": 3000, "diff_ratio": 0.3,
            }  # fmt: skip
            file.write(json.dumps(record) + "\n")
    began = perf_counter()
    found = CompletedItemsCache.from_jsonl(path, StageType.TRANSFORM)
    took = perf_counter() - began
    assert len(found) == count // 2 - count // 8
    return {"ms": took * 1000}


def offline_import(folder: Path, count: int) -> Figures:
    """Imports so many conversations of 5 KB offline, until all is recorded; then resumes with nothing left to do."""
    chance = random.Random(1)
    export = _written(folder / "conversations.json", (_conversation(chance, number) for number in range(count)))
    return asyncio.run(_imported(folder, export, count))


async def _imported(folder: Path, export: Path, count: int) -> Figures:
    place = folder / "files"
    with settings.flagged(TSUZUKI_DATA_DIR=str(place), TSUZUKI_LLM_PROVIDER="offline"):
        async with Runs.open(data_dir=str(place)) as runs, Worker(runs.backend, flows.flows()) as worker:
            working = asyncio.create_task(worker.run())
            desk = Desk(runs, runs.submit, folder=place)
            await _once(desk, runs, folder)
            began, before = perf_counter(), os.times()
            started = await desk.start(Asked(export, folder / "vault"))
            await runs.wait(started.run.id)
            seconds, after = perf_counter() - began, os.times()
            assert (await runs.result(started.run.id))["success"] == count
            began = perf_counter()
            again = await desk.resume(desk.sessions.find(started.session_id))
            await runs.wait(again.run.id)
            resumed = perf_counter() - began
            assert (await runs.result(again.run.id))["skipped"] == count
            worker.stop()
            await working
    python = after.user + after.children_user - before.user - before.children_user
    system = after.system + after.children_system - before.system - before.children_system
    return {
        "rate": count / seconds, "each_us": seconds / count * 1e6,
        "python_us": python / count * 1e6, "system_us": system / count * 1e6, "resume_ms": resumed * 1000,
    }  # fmt: skip


async def _once(desk: Desk, runs: Runs, folder: Path) -> None:
    """Imports one conversation, so that modules which are imported on first use are not counted."""
    export = _written(folder / "first" / "conversations.json", [_conversation(random.Random(2), 0)])
    started = await desk.start(Asked(export, folder / "first" / "vault"))
    await runs.wait(started.run.id)


def large_export(folder: Path, megabytes: int) -> Figures:
    """Extracts an export of so many megabytes; the memory is that of the whole process."""
    chance, path, written = random.Random(3), folder / "conversations.json", 0
    pool = [_conversation(chance, number) for number in range(500)]
    with path.open("w") as file:
        file.write("[")
        number = 0
        while written < megabytes * 1_000_000:
            text = json.dumps({**pool[number % len(pool)], "uuid": f"{number:032x}"})
            written += file.write(f",{text}" if number else text)
            number += 1
        file.write("]")
    options = {"provider": "offline", "chunk": True, "chunk_size": 25_000}
    session = Sessions(data_dir=folder).create(path, "claude", folder / "vault", options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    counts = extract(session)
    seconds = perf_counter() - began
    assert counts["PENDING"] == number
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"mb_per_second": written / 1e6 / seconds, "peak_mb": peak / 1024, "before_mb": before / 1024}


def _conversation(chance: random.Random, number: int) -> dict[str, object]:
    messages = [
        {"sender": "human", "text": _text(chance, CHARACTERS // 10)},
        {"sender": "assistant", "text": _text(chance, CHARACTERS * 9 // 10)},
    ]
    return {
        "uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "name": f"About {chance.choice(WORDS)} and {chance.choice(WORDS)}",
        "created_at": "2026-01-02T03:04:05.678Z",
        "chat_messages": messages,
    }


def _text(chance: random.Random, characters: int) -> str:
    sentences, length = [], 0
    while length < characters:
        words = chance.choices(WORDS, k=chance.randrange(6, 18))
        sentences.append(" ".join(words).capitalize() + ".")
        length += len(sentences[-1]) + 1
    return " ".join(sentences)


def _written(path: Path, conversations: Iterator[dict[str, object]] | list[dict[str, object]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(list(conversations)))
    return path
