"""`tsuzuki up`: everything on one machine, kept alive, ended in order, and no orphans."""

import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import uuid
from pathlib import Path

from tests.rooms import Process, Room
from tests.terminals import Terminal
from tsuzuki import Client, Runs, Status
from tsuzuki.client import HTTPStatusError
from tsuzuki.testing.stopwatch import Stopwatch


def children(process: Process) -> dict[int, str]:
    """Gives the processes that a process has started, with their command lines."""
    found: dict[int, str] = {}
    for listing in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for pid in listing.read_text().split():
            found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def workers_of(process: Process) -> list[int]:
    return [pid for pid, command in children(process).items() if " worker " in command]


def test_it_says_what_to_open_and_a_first_command_that_works(room: Room) -> None:
    process, server = room.up("--workers", "2")
    assert f"open       {server}" in process.said
    assert "submit sample" in process.said
    with Client(server) as client:
        room.until(lambda: len(client.list_workers()) == 2, "both workers are there")
        assert "sample" in [flow["name"] for flow in client.list_flows()]
        run = client.submit_run("sample", {"sentences": 5, "seconds": 0.01})
        *_, last = client.watch_run(run["run_id"])
    assert (last["status"], last["result"]) == ("COMPLETED", "5 sentences, from 'sentence 1' to 'sentence 5'")
    parts = children(process)
    process.send(signal.SIGTERM)
    assert process.ended() == 0
    assert {line["service"] for line in process.log} == {"tsuzuki-server:worker"}, (
        "the gateway had nothing to complain of"
    )
    assert len(parts) == 3
    assert not [pid for pid in parts if lives(pid)]
    states = {record.state for record in room.asked(lambda runs: runs.backend.workers())}
    assert states == {"STOPPED_GRACEFUL"}


def test_a_worker_that_died_is_started_again_and_its_run_goes_on(any_room: Room) -> None:
    room = any_room
    process, server = room.up("--flows", "flows.py")
    with Client(server) as client:
        run = client.submit_run("waits", {"name": "a"})
        room.until((room.folder / "a.began").exists, "it is under way")
        [victim] = workers_of(process)
        os.kill(victim, signal.SIGKILL)
        room.until(lambda: "worker 1 died (SIGKILL); it is started again in 0.5 s" in process.said, "it is told")
        held = f"worker 1 held run 1 of waits ({run['run_id']}): others go on with that"
        room.until(lambda: held in process.said, "what it held is told")
        (room.folder / "a.open").touch()
        *_, last = client.watch_run(run["run_id"])
        assert (last["status"], last["attempt"]) == ("COMPLETED", 2)
        assert client.health()["status"] == "ok"
    assert workers_of(process) != [victim]


def test_another_worker_goes_on_within_a_second_when_one_is_killed(any_room: Room) -> None:
    _, server = any_room.up("--flows", "flows.py", "--workers", "2")
    with Client(server) as client:
        any_room.until(lambda: len(client.list_workers()) == 2, "both workers are there")
        run = client.submit_run("waits", {"name": "a"})
        any_room.until((any_room.folder / "a.began").exists, "it is under way")
        (any_room.folder / "a.began").unlink()
        holder = client.get_run(run["run_id"])["worker_id"]
        records = any_room.asked(lambda runs: runs.backend.workers())
        [presence] = [record.presence for record in records if record.id == holder]
        os.kill(int(Path(presence).read_text()), signal.SIGKILL)
        with Stopwatch() as since:
            any_room.until((any_room.folder / "a.began").exists, "another one goes on")
            took = since.fair
        (any_room.folder / "a.open").touch()
        *_, last = client.watch_run(run["run_id"])
        assert last["status"] == "COMPLETED"
        assert took < 10, "it waited for a lease"


def test_when_it_is_killed_itself_its_parts_end(room: Room) -> None:
    process, _ = room.up("--flows", "flows.py", "--with-nats", "--nats-port", "0")
    parts = children(process)
    assert len(parts) == 3
    process.kill()
    room.until(lambda: not [pid for pid in parts if lives(pid)], "nobody is left")


def test_with_nats_the_runs_are_there_after_a_restart(room: Room) -> None:
    process, server = room.up("--flows", "flows.py", "--with-nats", "--nats-port", "0")
    with Client(server) as client:
        run = client.submit_run("quick", {"number": 4})
        *_, last = client.watch_run(run["run_id"])
        assert last["result"] == 8
    parts = children(process)
    process.send(signal.SIGINT)
    assert process.ended() == 0
    assert not [pid for pid in parts if lives(pid)]
    process, server = room.up("--flows", "flows.py", "--with-nats", "--nats-port", "0")
    with Client(server) as client:
        assert client.get_run(run["run_id"])["status"] == Status.COMPLETED
    assert not (room.folder / ".tsuzuki/tsuzuki.db").exists()


def test_a_port_that_is_taken_is_told_in_one_line(room: Room) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = room.start("up", "--port", str(taken.getsockname()[1]))
        assert process.ended() == 1
    assert "choose another with --port" in process.said
    assert len(process.said.splitlines()) == 1


def test_a_run_under_way_is_handed_back_when_everything_stops(any_room: Room) -> None:
    process, server = any_room.up("--flows", "flows.py", TSUZUKI_GRACE_SECONDS="0.3")
    with Client(server) as client:
        run = client.submit_run("waits", {"name": "a"})
    any_room.until((any_room.folder / "a.began").exists, "it is under way")
    process.send(signal.SIGTERM)
    assert process.ended() == 0

    async def row(runs: Runs) -> tuple[str, str | None]:
        found = await runs.get(run["run_id"])
        return found.status.value, found.holder

    assert any_room.asked(row) == ("PENDING", None)


def test_what_it_says_on_a_terminal_is_all_one_has_to_know(room: Room) -> None:
    terminal = Terminal(room.folder, "up", "--port", "0", TSUZUKI_GRACE_SECONDS="50")
    try:
        terminal.until("Tsuzuki is up", "stop ", "takes runs tagged default")
        screen = "\n".join(terminal.screen)
        assert "{" not in screen, "lines for people, not for programs"
        [server] = re.findall(r"^  open +(http://\S+)$", screen, re.MULTILINE)
        [command] = re.findall(r"^  submit +(.*)$", screen, re.MULTILINE)
        assert command.endswith(f"tsuzuki submit sample --param sentences=200 --watch --server {server}")
        answer = subprocess.run(
            shlex.split(command.replace(" --watch", "")), cwd=room.folder, capture_output=True, text=True, check=True
        )
        with Client(server) as client:
            run_id = answer.stdout.strip()
            room.until(lambda: client.get_run(run_id)["counts"]["done"], "the sample is under way")
        terminal.type(b"\x03")
        terminal.until("has 50 s to finish", "again ends it at once")
        terminal.type(b"\x03")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.said
    finally:
        terminal.leave()


def test_what_cannot_start_is_told_once_and_nothing_is_left_running(room: Room) -> None:
    for arguments, why in (
        (("--flows", "nowhere.py"), "nowhere.py"),
        (("--backend", "nats://127.0.0.1:1?timeout=1"), "127.0.0.1:1"),
    ):
        process = room.start("up", "--port", "0", *arguments)
        assert process.ended() == 1, arguments
        assert why in process.said
        assert "cannot start: the line above says why" in process.said
        assert "it is started again" not in process.said


def test_what_it_may_not_listen_on_is_told_before_anything_is_started(room: Room) -> None:
    for host, why in (("0.0.0.0", "--allow-unauthenticated"), ("192.0.2.1", "another with --host")):  # noqa: S104
        allowed = () if host == "0.0.0.0" else ("--allow-unauthenticated",)  # noqa: S104 - that is what is refused
        process = room.start("up", "--port", "0" if not allowed else "8000", "--host", host, *allowed)
        assert process.ended() == 1
        assert why in process.said
        assert len(process.said.splitlines()) == 1
        assert process.log == []


def test_a_nats_server_that_met_a_full_disk_is_started_anew_once_there_is_room(room: Room) -> None:
    """By itself it would refuse every write for ever."""
    process, server = room.up("--flows", "flows.py", "--with-nats", "--nats-port", "0")
    with Client(server) as client:
        client.submit_run("quick")
        [nats] = [pid for pid, command in children(process).items() if "nats-server" in command]
        resource.prlimit(nats, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        key = uuid.uuid4().hex

        def accepted() -> bool:
            try:
                client.submit_run("quick", {"number": 4}, idempotency_key=key)
            except HTTPStatusError:
                return False
            return True

        assert not accepted()
        resource.prlimit(nats, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        room.until(accepted, "it writes again")
        assert "nats-server cannot write" in process.said
        run = client.submit_run("quick", {"number": 4}, idempotency_key=key)
        *_, last = client.watch_run(run["run_id"])
    assert last["result"] == 8
