"""What is shown of workers: a run that another has taken over is not theirs any more, and the dead do not live."""

from pathlib import Path

from tsuzuki import Runs, Status
from tsuzuki.backends import WorkerRecord, WorkerState
from tsuzuki.backends.memory import MemoryBackend
from tsuzuki.crew import Crew
from tsuzuki.presence import Presence, this_host
from tsuzuki.testing import FakeClock
from tsuzuki.testing import builders as b


async def test_a_worker_that_fell_silent_does_not_show_a_run_that_another_took_over() -> None:
    clock = FakeClock()
    store = MemoryBackend(clock)
    crew = Crew(Runs(store, clock=clock))

    async def shown() -> tuple[str, str | None]:
        (seen,) = await crew.list(everyone=True)
        return seen.state, seen.record.current_run_id

    claim = await b.claimed(store, "killed")
    await store.beat(
        WorkerRecord(
            id="killed", heartbeat_at=clock.now(), state=WorkerState.RUNNING.value, current_run_id=claim.run.id
        )
    )
    clock.advance(30)
    assert await shown() == ("DISCONNECTED", claim.run.id), "it holds it still"
    again = await b.claim_of(store, claim.run.id, "other", dead="killed")
    await store.append(again, [b.ending(Status.COMPLETED, 2)])
    assert await shown() == ("DISCONNECTED", None)


async def test_a_worker_whose_process_has_ended_on_this_machine_is_disconnected_at_once(tmp_path: Path) -> None:
    clock = FakeClock()
    store = MemoryBackend(clock)
    crew = Crew(Runs(store, clock=clock))
    (tmp_path / "killed").write_text("12345")
    living = Presence("living", "memory:")
    places = {"killed": str(tmp_path / "killed"), "living": living.path, "elsewhere": ""}
    for name, place in places.items():
        host = "another/machine" if name == "elsewhere" else this_host()
        await store.beat(WorkerRecord(id=name, heartbeat_at=clock.now(), host=host, presence=place, state="IDLE"))
    try:
        assert {seen.record.id for seen in await crew.list()} == {"living", "elsewhere"}
        states = {seen.record.id: seen.state for seen in await crew.list(everyone=True)}
        assert states == {"killed": "DISCONNECTED", "living": "IDLE", "elsewhere": "IDLE"}
    finally:
        living.close()
