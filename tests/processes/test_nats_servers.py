"""`tsuzuki nats …`: a server of this machine, started apart, looked at, and ended by its own pid file alone."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.nats_server import free_port
from tests.rooms import Room
from tsuzuki.cli import main


class Server:
    """`tsuzuki nats …` about the server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.room = Room(folder)
        self.ports = {"--port": free_port(), "--http-port": free_port(), "--cluster-port": free_port()}
        self.dir = folder / "server"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.ports['--port']}"

    @property
    def pid(self) -> int:
        return int((self.dir / "nats-server.pid").read_text())

    def said(self, *arguments: str, code: int = 0, **variables: str) -> str:
        """Runs a command to its end; gives what it said."""
        told = CliRunner(env=variables).invoke(main, ["-q", *arguments])
        assert told.exit_code == code, told.output
        return told.output

    def nats(self, *arguments: str, code: int = 0, **variables: str) -> str:
        return self.said("nats", *arguments, "--dir", str(self.dir), code=code, **variables)

    def up(self, *arguments: str, code: int = 0, **variables: str) -> str:
        """Starts it out of a process of its own, as a terminal does."""
        ports = [word for name, port in self.ports.items() for word in (name, str(port))]
        process = self.room.start("nats", "up", *ports, *arguments, "--dir", str(self.dir), **variables)
        assert process.ended() == code, process.out.read_text() + process.said
        return process.out.read_text() + process.said

    def leave(self) -> None:
        if (self.dir / "nats-server.pid").exists():
            self.nats("down", "--confirm")
        self.room.leave()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.leave()


def test_a_server_is_started_looked_at_written_down_for_systemd_and_ended(server: Server) -> None:
    assert f"is up: {server.url} (process " in server.up()
    pid = server.pid
    assert f"runs already: {server.url} (process {pid}" in server.nats("up"), "it knows what it was told"
    server.said("list", "--backend", server.url)
    seen = json.loads(server.nats("status", "--json"))
    assert [each["leads"] for each in seen["servers"]] == [True]
    assert "tsuzuki-journal" in {each["name"] for each in seen["streams"]}
    assert "every write is synced to the disk" in server.nats("doctor")
    unit = server.nats("service", "--output", "-", "--user", "nats")
    assert f"nats-server --config {server.dir}/nats.conf" in unit
    assert "Restart=on-failure\n" in unit
    assert "User=nats\n" in unit
    assert f"nats down --confirm --dir {server.dir}\n" in server.nats("service"), "it would find its ports taken"
    assert "say --confirm" in server.nats("down", code=1)
    assert f"process {pid} has ended" in server.nats("down", "--confirm")
    assert f"→ start the servers: tsuzuki nats up --dir {server.dir}" in server.nats("doctor", code=1)
    assert "NOT OK  process" in server.nats("doctor", code=1)
    assert "nats down" not in server.nats("service"), "nothing has to be ended first"
    assert "nothing was ended" in server.nats("down", "--confirm", code=1)


def test_doctor_names_the_servers_that_a_cluster_without_a_majority_has_lost(server: Server, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Server(tmp_path / "other")
    try:
        server.up("--cluster", "team", "--host", "127.0.7.1", "--name", "one")
        ports = [word for name, port in other.ports.items() for word in (name, str(port))]
        seed = f"127.0.7.1:{server.ports['--cluster-port']}"
        told = ["--cluster", "team", "--host", "127.0.7.2", "--name", "two", *ports]
        joining = other.room.start("nats", "join", seed, *told, "--dir", str(other.dir))
        assert joining.ended() == 0, joining.said
        os.kill(other.pid, signal.SIGKILL)

        deadline = time.monotonic() + 60
        while "NOT OK  store" not in (told_of := server.nats("doctor", code=1)):  # a leader believes so for a while
            assert time.monotonic() < deadline, told_of
            time.sleep(0.2)
        assert "NOT OK  lost        two: 1 of 2 servers run, and 2 must before anything can be written" in told_of
        assert "→ start them: tsuzuki nats up on their machines" in told_of
        assert "TSUZUKI_NATS_USER" not in told_of, "it is not about who we are"
        assert "two: 1 of 2 servers run" in server.nats("status", code=1)
    finally:
        other.room.leave()


def test_a_pid_that_is_somebody_elses_by_now_is_not_ended(server: Server) -> None:
    server.up()
    pid = server.pid
    os.kill(pid, signal.SIGKILL)
    words = [sys.executable, "-c", "import time; time.sleep(600)", str(server.dir / "nats.conf")]
    with subprocess.Popen(words) as stranger:
        (server.dir / "nats-server.pid").write_text(str(stranger.pid))
        assert "names a process that is not it" in server.nats("down", "--confirm", code=1)
        assert stranger.poll() is None
        assert "is up" in server.up(), "the file of a server that was killed is no hindrance"
        assert server.pid != stranger.pid
        stranger.kill()


def test_what_keeps_a_server_from_starting_is_told(server: Server) -> None:
    with socket.create_server(("127.0.0.1", server.ports["--http-port"])):
        assert "choose another with --http-port" in server.up(code=1)
    assert not server.dir.exists(), "nothing was written"
    assert "set TSUZUKI_NATS_USER" in server.up("--host", "0.0.0.0", code=1)  # noqa: S104 - it is refused
    bad = server.room.folder / "bad.conf"
    bad.write_text("max_payload: nonsense\n")
    assert "the server ended at once" in server.up("--settings", str(bad), code=1)
    server.up()
    server.nats("down", "--confirm")
    assert "would lose them of the cluster team" in server.up("--cluster", "team", code=1)
    assert "is of no cluster" in server.nats("controller", "start", code=1)
    assert "needs --controller" in server.nats("leave", "--confirm", code=1)
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert "say --confirm" in server.nats("leave", "--controller", nowhere, code=1)
    assert "does not answer" in server.nats("leave", "--controller", nowhere, "--confirm", code=1)
    assert "was not ended" in server.nats("leave", "--controller", nowhere, "--confirm", "--stop-anyway")


def test_the_name_of_the_contract_is_another_name_of_the_same(server: Server) -> None:
    program = Path(sys.executable).with_name("nats-bootstrap")
    for words in ([str(program)], [sys.executable, "-m", "tsuzuki.cli", "nats-bootstrap"]):
        told = subprocess.run([*words, "down", "--dir", str(server.dir)], capture_output=True, text=True, check=False)
        assert told.returncode == 1
        assert "say --confirm" in told.stderr


def test_a_user_and_a_password_are_asked_for_where_they_are_set(server: Server) -> None:
    server.up(TSUZUKI_NATS_USER="team", TSUZUKI_NATS_PASSWORD="something-long")  # noqa: S106 - of this test
    assert (server.dir / "nats.conf").stat().st_mode & 0o077 == 0
    assert '"sync_interval": "always"' in (server.dir / "nats.conf").read_text()
    assert "it asks who we are" in server.said("list", "--backend", server.url, code=1)
    assert "say who you are" in server.nats("doctor", code=1), "it runs: to start it would not help"
    known = f"nats://team:something-long@{server.url.partition('//')[2]}"
    assert "something-long" not in server.said("list", "--backend", known)
