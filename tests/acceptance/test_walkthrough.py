"""The walk-through of docs/operating.md, line by line as it stands, on machines that are networks of their own."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.bash import Bash
from tests.networks import Networks, ip

ROOT = Path(__file__).parents[2]
MACHINES = {"one": "10.0.0.1", "two": "10.0.0.2", "three": "10.0.0.3", "four": "10.0.0.4"}
PATIENCE = 120.0
READY = {"tsuzuki up": "Tsuzuki is up", "tsuzuki worker": "takes runs", "tsuzuki nats controller": "answers on"}


def lines() -> list[tuple[str, str]]:
    """Gives every line of the walk-through: the machine, and what is typed there."""
    text = (ROOT / "docs" / "operating.md").read_text()
    part = text.partition("## From one laptop")[2].partition("\n## ")[0]
    return re.findall(r"^(one|two|three|four)\$ (.+)$", part, re.MULTILINE)


class Shell:
    """A shell on a machine, in a folder with the flow; what is said there goes to a file."""

    def __init__(self, folder: Path, inside: tuple[str, ...]) -> None:
        folder.mkdir()
        shutil.copy(ROOT / "examples" / "crawl.py", folder)
        self._count, self._bash = 0, Bash(folder, folder / "said", inside)
        self._bash.write("set -m")

    @property
    def said(self) -> str:
        return self._bash.heard

    def type(self, line: str) -> str:
        """Types a line and waits for its end, or in the background until it is ready; gives the answer."""
        self._count += 1
        before = len(self.said)
        self._bash.write(f'{line}\necho "@{self._count}:$?"')
        ended = re.compile(rf"^@{self._count}:(\d+)$", re.MULTILINE)
        code = self._until(lambda: ended.search(self.said), line).group(1)
        assert code == "0", f"{line}\n{self.said[before:]}"
        if line.endswith("&"):
            [word] = [word for command, word in READY.items() if line.startswith(command)]
            self._until(lambda: word in self.said[before:], line)
        return self.said[before:]

    def _until(self, look, line: str):  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + PATIENCE
        while not (found := look()):
            assert time.monotonic() < deadline, f"{line} does not come to an end\n{self.said}"
            time.sleep(0.02)
        return found

    def leave(self) -> None:
        """Ends what was started here: the jobs of the shell, and the servers by their own command."""
        down = "test -e $dir/nats-server.pid && tsuzuki nats down --confirm --dir $dir"
        self._bash.leave(f"for dir in .tsuzuki/nats cluster; do {down}; done")


@pytest.fixture
def shells(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Networks(*MACHINES) as networks:
        subprocess.run(
            [*networks.inside("hub"), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"],
            check=True,
            capture_output=True,
        )
        for host, address in MACHINES.items():
            ip("-n", networks.name(host), "link", "set", "lo", "up")
            ip("-n", networks.name(host), "address", "add", f"{address}/32", "dev", "lo")
            ip("-n", networks.name(host), "route", "add", "default", "via", networks.address(host))
            ip("-n", networks.name("hub"), "route", "add", f"{address}/32", "via", f"{networks.address(host)[:-1]}2")
        shells = {host: Shell(tmp_path / host, networks.inside(host)) for host in MACHINES}
        try:
            yield shells
        finally:
            for shell in shells.values():
                shell.leave()


@pytest.mark.timeout(600)
def test_the_walk_through_from_one_laptop_to_three_machines_works_as_it_is_written(shells: dict[str, Shell]) -> None:
    answers = {(machine, line): shells[machine].type(line) for machine, line in lines()}
    assert len(answers) > 30
    told = answers["one", "tsuzuki workers"]
    assert told.count("RUNNING") + told.count("IDLE") >= 3, "three, and who lived when the backup was made"
    runs = shells["one"].type("tsuzuki list")
    assert runs.count("COMPLETED") == 3, "the run of the single server, and two of the cluster"
    seen = shells["one"].type("tsuzuki nats status --dir cluster --backend nats://10.0.0.1:4222")
    assert "10.0.0.4-4222" in seen
    assert "10.0.0.3-4222" not in seen, seen
    refused = shells["two"].type("! tsuzuki nats leave --controller http://10.0.0.1:8223 --confirm --dir cluster")
    assert "10.0.0.2-4222 cannot leave: 2 servers would be left, and 3 are needed" in refused, refused
