"""Workers of two versions on one store on NATS, and a store that a newer version has made."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

import tsuzuki
from tests.nats_server import NatsServer
from tests.rooms import Room
from tsuzuki import Run, Runs, Status
from tsuzuki.backends.nats import topology
from tsuzuki.errors import NewerStore, StoreUnavailable
from tsuzuki.examination import examine
from tsuzuki.facts import Unknown

WRITING = """
    await run.backend.append(run.claim, [run.fact(f.Weighed, grams=7)])
    return await _outcome(run, flow, params)
"""
NOTED = "        self.projection.put(frames.lean(tip), ours=True)\n"
WEIGHING = """
        weighed = self.topology.chain("x").removesuffix("j.x") + f"w.{tip.run.id}"
        await self.wire.publish(weighed, b"7 grams")
        await self.wire.publish(f"{self.topology.chain(tip.run.id)}.1", b"of a second shard")
"""
EDITS = {
    "version.py": [('"0.1.0"', '"0.2.0"')],
    "facts.py": [
        ("VERSION: Final = 1", "VERSION: Final = 2"),
        ("class Unknown(", "class Weighed(Fact, frozen=True, kw_only=True):\n    grams: int = 0\n\n\nclass Unknown("),
        ("    | RunCancelled\n", "    | RunCancelled\n    | Weighed\n"),
        ("SINCE: Final[dict[type[Fact], int]] = {}", "SINCE: Final[dict[type[Fact], int]] = {Weighed: 2}"),
    ],
    "backends/nats/topology.py": [(' f"{prefix}.r.>"],', ' f"{prefix}.r.>", f"{prefix}.w.>"],')],
    "backends/nats/parts.py": [(NOTED, f"{NOTED}{WEIGHING}")],
    "runner.py": [("    return await _outcome(run, flow, params)\n", WRITING)],
}
"""What the next version does: it writes a fact of a kind that this one does not know, in every run it carries out.

Its journal has a further subject, and beside each chain lies one of a second shard."""


@pytest.fixture
def room(tmp_path: Path, nats_server: NatsServer) -> Iterator[Room]:
    room = Room(tmp_path, f"{nats_server.url}?prefix={nats_server.fresh()}")
    yield room
    room.leave()


@pytest.fixture
def newer(tmp_path: Path) -> str:
    """The next version of Tsuzuki in a folder of its own: where a process looks for modules first."""
    package = tmp_path / "newer" / "tsuzuki"
    shutil.copytree(Path(tsuzuki.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for name, edits in EDITS.items():
        text = (package / name).read_text()
        for old, new in edits:
            assert old in text, f"{name} has changed: make another edit for the next version"
            text = text.replace(old, new)
        (package / name).write_text(text)
    return f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


def test_a_run_with_facts_of_a_newer_version_is_left_to_newer_workers_while_all_else_goes_on(
    room: Room, newer: str
) -> None:
    run = room.submit("waits", name="a")
    new = room.worker(PYTHONPATH=newer)
    room.until((room.folder / "a.began").exists, "the newer worker is in the middle of it")
    old = room.worker()
    assert room.asked(listed) == [1], "whoever is older starts, and lists runs alone"
    checks = {check.name: check for check in room.asked(examine)}
    assert "0.1.0, 0.2.0 at work on one store" in checks["versions"].text
    assert (checks["facts"].ok, checks["facts"].text[:6]) == (False, "run 1:")
    assert "upgrade tsuzuki" in checks["facts"].do
    assert checks["journals"].ok
    new.kill()

    others = [room.submit("quick", number=number) for number in range(3)]
    assert {room.end_of(other).status for other in others} == {Status.COMPLETED}
    assert not room.asked(lambda runs: claimed_here(runs, run)), "not even when it is asked for by its id"
    assert room.row(run).status is Status.RUNNING, "it waits for somebody who knows what was written"
    assert old.running

    (room.folder / "a.open").touch()
    room.worker(PYTHONPATH=newer)
    ended = room.end_of(run)
    assert (ended.status, ended.attempt) == (Status.COMPLETED, 2)
    kinds = [fact.kind for fact in room.asked(lambda runs: facts(runs, run)) if isinstance(fact, Unknown)]
    assert kinds == ["Weighed", "Weighed"], "who does not know it shows it"
    assert room.asked(listed) == [1, 2, 3, 4]


async def listed(runs: Runs) -> list[int]:
    return sorted(run.number for run in await runs.list())


async def claimed_here(runs: Runs, run: Run) -> list[object]:
    holder = (await runs.get(run.id)).holder
    assert holder is not None
    return list(await runs.backend.claim("somebody", run_id=run.id, dead=frozenset({holder})))


async def facts(runs: Runs, run: Run) -> list[object]:
    return [entry.fact async for entry in runs.journal(run.id)]


async def test_a_store_of_another_layout_is_refused_in_words(nats_server: NatsServer) -> None:
    prefix = nats_server.fresh()
    url = f"{nats_server.url}?prefix={prefix}"
    async with Runs.open(url) as runs:
        run = await runs.submit("anything", {})
    client = await nats.connect(nats_server.url)
    try:
        config = (await client.jetstream().stream_info(f"{prefix}-journal")).config
        ours, newer = config.metadata, r"made by a newer Tsuzuki \(its layout is 3.*upgrade tsuzuki"
        former = r"made by an earlier Tsuzuki \(its layout is 1.*large values.*choose another prefix"
        for told, error, words in (
            ({topology.LAYOUT_MARK: "3"}, NewerStore, newer),
            ({topology.LAYOUT_MARK: "1"}, StoreUnavailable, former),
            ({}, StoreUnavailable, former),
        ):
            config.metadata = told
            await client.jetstream().update_stream(config)
            with pytest.raises(error, match=words):
                async with Runs.open(url):
                    pass
        config.metadata = ours
        await client.jetstream().update_stream(config)
    finally:
        await client.close()
    async with Runs.open(url) as runs:
        assert (await runs.get(run.id)).status is Status.PENDING
