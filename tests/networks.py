"""Networks of their own for tests: a hub with a server, and hosts on links that can be cut."""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def installed() -> None:
    """Makes sure that the program `ip` is there; it comes with the system, or out of its package."""
    if shutil.which("ip") is None:
        for words in (["update"], ["install", "--yes", "iproute2"]):
            subprocess.run(["apt-get", *words], check=True, capture_output=True)


class Networks:
    """A network namespace `hub` and one for each host, linked with it; all are removed at the end."""

    def __init__(self, *hosts: str) -> None:
        self._mark = f"tz{os.getpid()}"
        self._hosts = {host: f"10.203.{number}" for number, host in enumerate(hosts, start=1)}

    def __enter__(self) -> Self:
        installed()
        try:
            ip("netns", "add", self.name("hub"))
            ip("-n", self.name("hub"), "link", "set", "lo", "up")
            for host, network in self._hosts.items():
                self._link(host, network)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _link(self, host: str, network: str) -> None:
        hub, there = self.name("hub"), self.name(host)
        ip("netns", "add", there)
        ip("-n", hub, "link", "add", host, "type", "veth", "peer", "name", "hub", "netns", there)
        for where, link, number in ((hub, host, 1), (there, "hub", 2)):
            ip("-n", where, "address", "add", f"{network}.{number}/24", "dev", link)
            ip("-n", where, "link", "set", link, "up")

    def _remove(self) -> None:
        for host in ("hub", *self._hosts):
            subprocess.run(["ip", "netns", "delete", self.name(host)], check=False, capture_output=True)

    def name(self, host: str) -> str:
        """Gives the name of a network namespace, which no other process uses."""
        return f"{self._mark}-{host}"

    def inside(self, host: str) -> tuple[str, ...]:
        """Gives the command that starts another one on a host."""
        return "ip", "netns", "exec", self.name(host)

    def address(self, host: str) -> str:
        """Gives the address under which a host sees the hub."""
        return f"{self._hosts[host]}.1"

    def unplug(self, host: str) -> None:
        """Takes the link of a host away, as somebody who pulls its cable."""
        ip("-n", self.name("hub"), "link", "set", host, "down")

    def plug(self, host: str) -> None:
        """Puts it back."""
        ip("-n", self.name("hub"), "link", "set", host, "up")

    def dial(self) -> socket.socket:
        """Makes a socket in the network of the hub: a thread enters it, and the socket stays there."""
        made: list[socket.socket] = []
        thread = threading.Thread(target=self._dial, args=(made,))
        thread.start()
        thread.join()
        return made[0]

    def _dial(self, made: list[socket.socket]) -> None:
        with Path(f"/run/netns/{self.name('hub')}").open("rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "cannot enter the network of the hub")
            made.append(socket.socket())
