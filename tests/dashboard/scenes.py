"""A gateway and workers as real processes for the dashboard, and what tests do with them over HTTP."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from tests.rooms import PATIENCE, Room

HERE = Path(__file__).parent
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
WORKFLOW = """version: 1
flow:
  graph: |
    load >> (double & triple) >> sum
tasks:
  load:   {callable: "flows:load"}
  double: {callable: "flows:double", inputs: {rows: "$node.load.output"}}
  triple: {callable: "flows:double", inputs: {rows: "$node.load.output"}}
  sum:    {callable: "flows:add", inputs: {left: "$node.double.output", right: "$node.triple.output"}}
"""


def serving(room: Room, *arguments: str, **variables: str) -> str:
    """Starts a gateway alone, and gives its address once it serves."""
    gateway = room.start("serve", *arguments, **variables)
    room.until(lambda: " at http" in gateway.said or not gateway.running, "the gateway serves")
    assert gateway.running, gateway.said
    return gateway.said.rpartition(" at ")[2].split()[0]


class Scene:
    """Everything up in a folder of its own: on SQLite, or on a NATS server."""

    def __init__(self, folder: Path, *arguments: str, workers: int = 1, **variables: str) -> None:
        folder.mkdir(exist_ok=True)
        self.room = Room(folder)
        shutil.copy(HERE / "flows.py", folder / "flows.py")
        if workers:
            flows = ("--flows", "flows.py", "--allow-callables", "flows", "--workers", str(workers))
            _, self.url = self.room.up(*flows, *arguments, **variables)
        else:
            self.url = serving(self.room, "--port", "0", *arguments, **variables)
        self.client = httpx2.Client(base_url=self.url, timeout=PATIENCE)
        if workers:
            self.until(lambda: self.get("/flows"), "a worker has published its flows")

    def get(self, path: str, **query: Any) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.client.post(path, json={} if body is None else body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, flow: str, *, tags: list[str] | None = None, **params: Any) -> int:
        number: int = self.post("/runs", {"flow_name": flow, "params": params, "tags": tags})["number"]
        return number

    def submit_yaml(self, name: str) -> int:
        files = {"workflow": ("flow.yaml", WORKFLOW.encode(), "application/yaml")}
        answer = self.client.post("/runs/yaml", data={"flow_name": name, "tag": "default"}, files=files)
        assert answer.status_code == 200, answer.text
        number: int = answer.json()["number"]
        return number

    def run(self, number: int) -> Any:
        return self.get(f"/runs/{number}")

    def ended(self, number: int) -> str:
        seen = ""

        def over() -> bool:
            nonlocal seen
            seen = self.run(number)["status"]
            return seen in ENDED

        self.until(over, f"run {number} has ended")
        return seen

    def is_in(self, number: int, status: str) -> int:
        self.until(lambda: self.run(number)["status"] == status, f"run {number} is {status}")
        return number

    def waiting(self, name: str, **more: Any) -> int:
        """Starts a run that stays under way until `open_gate`."""
        return self.is_in(self.submit("waits", name=name, **more), "RUNNING")

    def open_gate(self, name: str) -> None:
        (self.room.folder / f"{name}.open").touch()

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            time.sleep(0.03)

    def close(self) -> None:
        self.client.close()
        self.room.leave()
