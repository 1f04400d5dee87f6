"""One journey through product and applications, with secrets planted on the way and files as open as can be.

Afterwards everything that it has written or shown is searched: for the secrets, and for files that others may read.
"""

import io
import json
import os
import re
import secrets
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.apps.commits.repositories import Repository
from tests.apps.notes.exports import claude
from tests.gateway.processes import PATIENCE, command
from tests.security.planting import FLOWS, files, leaks, plants, texts
from tests.wheels.making import flow_wheel

OWN = "own-4f2c77d1e0"
"""Data of the user, which is kept and shown as it is: params, inputs and documents."""
pytestmark = [
    pytest.mark.timeout(300),  # the first of them makes it: a dozen commands
]
WALKED = re.compile(r"/watch$|/events$|ollama|^/openapi")


class Journey:
    """The processes of a journey, and all that they have said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "deep" / "kept"
        self.planted = plants()
        self.key = secrets.token_hex(12)
        """Of an item that is its own key: a key is kept as it is, and stands in no log."""
        self.environment = {
            "PLANTED": json.dumps(texts(self.planted)),
            "HIDDEN": self.planted["hidden"],
            "KEY": self.key,
            "ANTHROPIC_API_KEY": f"sk-ant-{self.planted['openai']}",
            "TSUZUKI_GITLAB_TOKEN": f"glpat-{self.planted['gitlab']}",
            "TSUZUKI_DATA_DIR": str(self.kept),
            "TSUZUKI_HTTP_AUTH": "api_key",
            "TSUZUKI_LOG_LEVEL": "DEBUG",
            "TMPDIR": str(folder / "tmp"),
        }
        (folder / "tmp").mkdir()
        (folder / "flows.py").write_text(FLOWS)
        (folder / ".env").write_text(f"OPENAI_API_KEY=sk-{self.planted['openai']}\n")
        self.said: list[tuple[str, bytes]] = []
        self.processes: list[subprocess.Popen[str]] = []

    def tell(self, *arguments: str, code: int | None = 0, **more: str) -> str:
        process = command(*arguments, folder=self.folder, **(self.environment | more))
        out, err = process.communicate(timeout=4 * PATIENCE)
        assert code is None or process.returncode == code, err
        self.said.append((" ".join(arguments[:3]), f"{out}{err}".encode()))
        return out

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        log = self.folder / f"{arguments[0]}.log"
        with log.open("w") as out:
            process = command(*arguments, folder=self.folder, out=out, **self.environment)
        self.processes.append(process)
        return process

    def command_lines(self) -> Iterator[tuple[str, bytes]]:
        for process in self.processes:
            assert process.poll() is None
            yield f"process {process.pid}", Path(f"/proc/{process.pid}/cmdline").read_bytes()

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            _, err = process.communicate(timeout=PATIENCE)
            self.said.append(("stderr", err.encode()))
        self.said += [(path.name, path.read_bytes()) for path in self.folder.glob("*.log")]


@pytest.fixture(scope="module")
def open_handed() -> Iterator[None]:
    """A user whose files everybody may read and write, as far as nobody says anything else."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def journey(open_handed: None, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    made = Journey(tmp_path_factory.mktemp("journey"))
    key = made.tell("keys", "create", "--tenant", "t", "--right", "wheels").strip()
    made.said.clear()  # it is shown this once
    made.planted |= {"our key": key.split("_", 2)[2]}
    try:
        started = made.start("serve", "--port", "0").stderr
        assert started is not None
        served = next(found for line in started if (found := re.search(r"at (http://\S+)", line)))
        made.start("worker", "--flows", "flows.py")
        with httpx2.Client(base_url=served[1], headers={"X-API-Key": key}, timeout=PATIENCE) as client:
            walk(made, client)
        commands(made, key, served[1])
        made.said += made.command_lines()
    finally:
        made.end()
    return made


def walk(made: Journey, client: httpx2.Client) -> None:
    """Uses the gateway and its applications, then asks for everything that can be looked at."""

    def post(path: str, body: object) -> httpx2.Response:
        answer = client.post(path, json=body)
        made.said.append((path, answer.content))
        return answer

    runs = [post("/runs", {"flow_name": name, "params": {"note": OWN}}).json()["run_id"] for name in ("talks", "fails")]
    post("/runs", {"flow_name": "talks", "params": {"note": 1}})
    post("/runs/yaml", {"flow_name": "talks", "workflow_yaml": f"flow: {{graph: a}}\nx: {OWN}"})
    end = time.monotonic() + PATIENCE
    while {client.get(f"/runs/{run_id}").json()["status"] for run_id in runs} != {"COMPLETED", "FAILED"}:
        assert time.monotonic() < end, "the runs do not end"
        time.sleep(0.05)
    name = flow_wheel(made.folder, "brought", "1.0").name
    client.post("/wheels", files={"wheel": (name, io.BytesIO((made.folder / name).read_bytes()))})
    project = post("/api/projects", {"name": OWN, "llm_provider": "offline"}).json()["id"]
    post(f"/api/projects/{project}/files", {"file_name": "a.md", "content": f"A term is {OWN}."})
    upload = post("/api/notes/uploads", {"name": "export.json"}).json()["upload_id"]
    client.post(f"/api/notes/uploads/{upload}", files={"piece": ("export.json", json.dumps([claude(1)]).encode())})
    post("/api/notes/sessions", {"upload": upload, "llm": "offline"})
    post("/api/commits/connections", {"base_url": "http://127.0.0.1:9", "token": f"glpat-{made.planted['gitlab']}x"})
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        if "get" in methods and not WALKED.search(path):
            for run_id in runs:
                url = re.sub(r"\{\w+\}", "1", path.replace("/runs/{run_id}", f"/runs/{run_id}"))
                made.said.append((url, client.get(url, params={"include": "full"}).content))


def commands(made: Journey, key: str, server: str) -> None:
    """What people type, with the key in the environment."""
    repository = Repository(made.folder / "repository")
    repository.git("remote", "add", "origin", f"https://git:{made.planted['address']}@example.invalid/x.git")
    repository.commit("2026-01-02T03:04:05Z", {"a": "1"})
    made.tell("commits", "collect", "--git", "repository", "--all")
    made.tell("glossary", "generate", "-i", ".", "-o", "glossary.csv", "--provider", "offline")
    for arguments in (["get", "2"], ["logs", "1"], ["export", "2", "-o", "run.jsonl"], ["config"]):
        made.tell(*arguments)
    made.tell("backup", "backups/one")
    made.tell("get", "2", "--server", server, TSUZUKI_API_KEY=key)
    made.tell("get", "1", "--backend", f"nats://app:{made.planted['address']}@127.0.0.1:9", code=None)


def written(journey: Journey) -> list[tuple[str, bytes]]:
    mine = {"flows.py", ".env"}  # they were planted there, as in the configuration of the repository
    return [(place, content) for place, content in files(journey.folder) if place not in mine and ".git/" not in place]


def test_no_planted_secret_is_anywhere_it_must_not_be(journey: Journey) -> None:
    places = [*journey.said, *written(journey)]
    assert len(places) > 150
    tokens = "commits-tokens.json"  # which is for tokens, and for its owner alone
    assert any(place.endswith(tokens) for place, _ in places)
    assert list(leaks((one for one in places if not one[0].endswith(tokens)), journey.planted)) == []


def test_a_secret_in_the_key_of_an_item_is_in_no_log(journey: Journey) -> None:
    asked = ("logs", "process", "stderr")
    logs = [one for one in journey.said if one[0].endswith((".log", "/logs")) or one[0].startswith(asked)]
    assert any(b"opens it" in said for _, said in logs)
    assert list(leaks(logs, {"key": journey.key})) == []
    assert list(leaks(written(journey), {"key": journey.key}))


def test_what_is_the_users_own_is_kept_but_in_no_log_of_a_process(journey: Journey) -> None:
    found = {place for place, content in [*journey.said, *written(journey)] if OWN.encode() in content}
    assert any(place.endswith(("tsuzuki.db", "tsuzuki.db-wal")) for place in found)
    assert not {place for place in found if place.endswith(".log") or place.startswith("process") or place == "stderr"}


def test_nobody_else_can_read_or_write_what_a_store_has_written(journey: Journey) -> None:
    """With a umask of 000 a file is open unless somebody has closed it, or a folder above it."""
    private = [journey.folder / "deep", *journey.folder.glob("backups/*"), *journey.folder.glob("tmp/tsuzuki-*")]
    assert len(private) > 2
    for top in private:
        assert stat.S_IMODE(top.stat().st_mode) == 0o700, top
    everything = list(journey.kept.rglob("*"))
    assert len(everything) > 30
    for path in everything:
        mode = stat.S_IMODE(path.lstat().st_mode)
        own = path.suffix in (".db", ".db-wal", ".db-shm") or path.name.endswith(("tokens.json", ".lock"))
        assert not own or mode & 0o077 == 0, (oct(mode), path)
        assert not stat.S_ISLNK(path.lstat().st_mode), path
