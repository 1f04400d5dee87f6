"""Three real nats-servers that form a cluster on the loopback, any of which can be killed and started again."""

import asyncio
import contextlib
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import nats
import nats.errors

from tests.nats_server import NatsServer, free_port

PATIENCE = 60.0


class Node(NatsServer):
    """A server of a cluster, which tells over HTTP whether it has caught up with the others."""

    def __init__(self, folder: Path, *, name: str, port: int, routes: str) -> None:
        self.name, self.monitor = name, free_port()
        super().__init__(
            folder,
            settings=f'server_name: {name}\nhttp: "127.0.0.1:{self.monitor}"\n'
            f'cluster {{ name: c, listen: "127.0.0.1:{port}", routes: [{routes}] }}',
        )

    def healthy(self) -> bool:
        try:
            return bool(self.told("healthz")["status"] == "ok")
        except (OSError, ValueError):
            return False

    def told(self, page: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{page}", timeout=5) as answer:
            told: dict[str, Any] = json.load(answer)
        return told


class Cluster:
    """The servers by name."""

    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.nodes = {
            name: Node(folder / name, name=name, port=port, routes=routes)
            for name, port in zip(("n0", "n1", "n2"), ports, strict=True)
        }

    @property
    def url(self) -> str:
        return "nats://" + ",".join(node.url.removeprefix("nats://") for node in self.nodes.values()) + "?replicas=3"

    def start(self) -> None:
        """Starts what does not run, and waits until each has caught up."""
        self.launch()
        self._until_whole()

    def launch(self) -> None:
        """Starts what does not run."""
        for node in self.nodes.values():
            if not node.running:
                node.launch()

    def _until_whole(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (all(node.healthy() for node in self.nodes.values()) and self._has_leader()):
            ended = [node.folder / "log" for node in self.nodes.values() if not node.alive]
            assert not ended, "\n".join(log.read_text() for log in ended)
            assert time.monotonic() < deadline, "the cluster does not become whole"
            time.sleep(0.05)

    def _has_leader(self) -> bool:
        """All agree on who leads the group that places streams, and the leader sees that the others keep up."""
        told = {node.name: node.told("jsz").get("meta_cluster") or {} for node in self.nodes.values()}
        leaders = {group.get("leader") for group in told.values()}
        if len(leaders) != 1 or not (leader := leaders.pop()):
            return False
        peers = told[leader].get("replicas") or []
        return len(peers) == len(self.nodes) - 1 and all(
            peer.get("current") and not peer.get("offline") for peer in peers
        )

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()

    async def leader(self, stream: str) -> str:
        """Names the server that leads a stream."""
        client = await nats.connect([node.url for node in self.nodes.values() if node.running])
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with contextlib.suppress(nats.errors.Error):  # nobody leads just now
                        cluster = (await client.jetstream().stream_info(stream)).cluster
                        if cluster is not None and cluster.leader:
                            return cluster.leader
                    await asyncio.sleep(0.05)
        finally:
            await client.close()
