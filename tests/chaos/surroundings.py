"""Where the chaos takes place: hosts on links that can be cut, disks that can be full or hang.

Network, mounts and processes are private to this program (`unshare`), and gone when it ends, however it ends.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from tests.networks import installed, ip

INSIDE = "--inside"
NETWORK = "10.204.0"
ROOM = 400 * 1024 * 1024
"""How large a disk is (bytes)."""


def enter(arguments: list[str]) -> NoReturn:
    """Becomes this program again, in surroundings of its own."""
    installed()
    mapped = [] if os.getuid() == 0 else ["--map-root-user"]
    own = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = ["unshare", *mapped, *own, sys.executable, "-m", "tests.chaos", INSIDE, *arguments]
    os.execvp(command[0], command)  # noqa: S606 - ourselves


class Network:
    """A bridge in this process's network, and hosts with a network of their own on it."""

    def __init__(self) -> None:
        self._hosts: dict[str, str] = {}
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # names of networks, for us alone
        Path("/run/netns").mkdir()
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("address", "add", f"{NETWORK}.1/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")

    def add(self, host: str) -> str:
        """Adds a host; gives its address."""
        self._hosts[host] = address = f"{NETWORK}.{len(self._hosts) + 10}"
        ip("netns", "add", host)
        ip("link", "add", f"to-{host}", "type", "veth", "peer", "name", "out", "netns", host)
        ip("link", "set", f"to-{host}", "master", "bridge", "up")
        ip("-n", host, "address", "add", f"{address}/24", "dev", "out")
        for link in ("lo", "out"):
            ip("-n", host, "link", "set", link, "up")
        return address

    def inside(self, host: str, *, apart: bool = False) -> tuple[str, ...]:
        """Gives the command that starts another one on a host; `apart` makes it another machine for the product."""
        return ("nsenter", f"--net=/run/netns/{host}", *(("unshare", "--mount") if apart else ()))

    def cut(self, host: str) -> None:
        ip("link", "set", f"to-{host}", "down")

    def mend(self, host: str) -> None:
        ip("link", "set", f"to-{host}", "up")

    def slow(self, host: str) -> None:
        """Lets so little through that everything queues up for up to a second."""
        shape = ["rate", "300kbit", "burst", "3kb", "latency", "1s"]
        subprocess.run(["tc", "qdisc", "add", "dev", f"to-{host}", "root", "tbf", *shape], check=True)
        subprocess.run([*self.inside(host), "tc", "qdisc", "add", "dev", "out", "root", "tbf", *shape], check=True)

    def quick(self, host: str) -> None:
        for where, link in (((), f"to-{host}"), (self.inside(host), "out")):
            subprocess.run([*where, "tc", "qdisc", "del", "dev", link, "root"], check=False, capture_output=True)


class Disk:
    """A small file system: one that can hang where there are loop devices (for root), or else one in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.hangs = self._on_a_loop_device()
        """Whether it can be made to hang."""
        if not self.hangs:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)], check=True)

    def _on_a_loop_device(self) -> bool:
        image = self.folder.with_suffix(".image")
        with image.open("wb") as file:
            file.truncate(ROOM)
        # Blocks of a page, as on disks of a usual size: with smaller ones a full disk ends SQLite with SIGBUS.
        shape = ["-q", "-b", "4096", "-m", "0"]
        made = subprocess.run(["mkfs.ext4", *shape, str(image)], check=False, capture_output=True)
        mounted = (
            made.returncode == 0
            and not subprocess.run(
                ["mount", "-o", "loop", str(image), str(self.folder)], check=False, capture_output=True
            ).returncode
        )
        if not mounted:
            image.unlink()
        return mounted

    def fill(self) -> None:
        """Leaves no room at all."""
        with (self.folder / "ballast").open("ab", buffering=0) as file, contextlib.suppress(OSError):
            size = shutil.disk_usage(self.folder).free
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, max(size - 65536, 1))
            while True:
                file.seek(0, os.SEEK_END)
                file.write(b"\0" * 4096)

    def clear(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)

    def hang(self, seconds: float) -> None:
        """Lets nobody write for some time."""
        subprocess.run(["fsfreeze", "--freeze", str(self.folder)], check=False, capture_output=True)
        time.sleep(seconds)
        self.go_on()

    def go_on(self) -> None:
        subprocess.run(["fsfreeze", "--unfreeze", str(self.folder)], check=False, capture_output=True)

    def remove(self) -> None:
        """Takes it away, once nobody uses it."""
        self.go_on()
        for _ in range(50):
            if not subprocess.run(["umount", str(self.folder)], check=False, capture_output=True).returncode:
                break
            time.sleep(0.1)
        self.folder.with_suffix(".image").unlink(missing_ok=True)
