"""An application in real processes: installed as a package, and neither gateway, worker nor command line knows it."""

from pathlib import Path

import httpx2
import pytest

from tests import example_application
from tests.rooms import Room


@pytest.mark.parametrize("store", ["sqlite", "nats"])
def test_everything_that_runs_here_has_the_application(room: Room, site: Path, store: str) -> None:
    folder = room.folder / "files"
    nats = ["--with-nats", "--nats-port", "0"] if store == "nats" else []
    process, url = room.up("--data-dir", "files", *nats, PYTHONPATH=str(site))
    with httpx2.Client(base_url=url, timeout=60) as client:
        room.until(lambda: "greet_all" in [flow["name"] for flow in client.get("/flows").json()], "its flow is known")
        run_id = client.post("/api/greetings/greet", json=["Ada", "Grace"]).json()["run_id"]
        ended = f"/api/greetings/runs/{run_id}"
        room.until(lambda: client.get(ended).json()["status"] == "COMPLETED", "everybody is greeted")
        assert sorted(client.get("/api/greetings/book").json()) == ["Ada", "Grace"]
        assert "greetings" in [app["name"] for app in client.get("/apps").json()]
    assert sorted((folder / "greetings.txt").read_text().split()) == ["Ada", "Grace"]
    book = room.start("greetings", "book", "--data-dir", "files", PYTHONPATH=str(site))
    assert book.ended() == 0
    assert sorted(book.out.read_text().split()) == ["Ada", "Grace"]
    assert process.running


def test_a_broken_application_stops_no_worker(room: Room, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    clash = (
        "from tsuzuki import flow\nfrom tsuzuki.application import Application\n"
        "@flow\nasync def quick() -> int: return -1\n"
        "application = Application(name='clash', flows=lambda: [quick])"
    )
    (tmp_path / "c").mkdir()
    sites = (
        example_application.unpack(tmp_path / "b", example_application.broken("raises", "import nothing_of_that_name")),
        example_application.unpack(tmp_path / "c", example_application.broken("clash", clash)),
    )
    worker = room.worker(PYTHONPATH=":".join(map(str, sites)))
    assert "the application raises cannot be used: ModuleNotFoundError" in worker.said
    assert "flow quick of the application clash is left out" in worker.said
    assert bytes(room.end_of(room.submit("quick", number=4)).result or b"") == b"8"
