"""The folder of a server: what it was told, its configuration, its files, its log and its pid file."""

import json
import platform
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import extras, privacy, wholefile
from tsuzuki.errors import BadUsage
from tsuzuki.listening import is_loopback

PID_FILE: Final = "nats-server.pid"
_ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_WORKING: Final = "TSUZUKI"
_SYSTEM: Final = "SYSTEM"
SYSTEM_USER: Final = "system"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a server was told when it was started; the next start needs to be told nothing."""

    host: str = "127.0.0.1"
    port: int = 4222
    http_port: int = 8222
    name: str = ""
    cluster: str = ""
    cluster_port: int = 6222
    routes: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The name of the server, which no other of its cluster has."""
        return self.name or f"{platform.node() if self.host in _ANYWHERE else self.host}-{self.port}"

    @property
    def reached(self) -> str:
        """The host under which this machine reaches it."""
        return "127.0.0.1" if self.host in _ANYWHERE else self.host

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"nats://{_bracketed(self.reached)}:{self.port}"

    @property
    def public(self) -> bool:
        """Whether other machines can reach it."""
        return not is_loopback(self.host)


class Place:
    """A folder with a server in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        self.config = self.folder / "nats.conf"
        self.log = self.folder / "nats.log"
        self.pid_file = self.folder / PID_FILE
        self._told = self.folder / "server.json"
        self._password = self.folder / "system.password"

    @property
    def used(self) -> bool:
        """Whether a server has kept something here."""
        return (self.folder / "jetstream").exists()

    def told(self) -> Told | None:
        """Gives what the server here was told, if there was one."""
        try:
            return msgspec.json.decode(self._told.read_bytes(), type=Told)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise BadUsage(f"{self._told} cannot be read ({error}); name another folder with --dir") from error

    def expected(self) -> Told:
        """Gives what the server here was told; there must have been one."""
        told = self.told()
        if told is None:
            raise BadUsage(f"there is no server in {self.folder}; start one with `tsuzuki nats up`, or say --dir")
        return told

    def furnish(self, told: Told, user: str, password: str, more: str = "") -> None:
        """Writes the configuration; only this user may read it."""
        self._refuse_another_kind(told)
        privacy.make_folder(self.folder)
        if told.cluster and not self._password.exists():
            _write_private(self._password, secrets.token_urlsafe(24))
        _write_private(self.config, self._configuration(told, user, password) + more)
        _write_private(self._told, json.dumps(msgspec.to_builtins(told), indent=1) + "\n")

    def _refuse_another_kind(self, told: Told) -> None:
        """A lone server that joins a cluster forgets its streams: the cluster does not know them."""
        before = self.told()
        if before is not None and self.used and before.cluster != told.cluster:
            raise BadUsage(
                f"{self.folder} has the files of a server {_kind(before)}, and would lose them {_kind(told)}; "
                "back them up (tsuzuki nats backup), start in a new folder (--dir), and restore there"
            )

    def system_password(self) -> str:
        """Gives the password of the account that may take servers out of the cluster."""
        try:
            return self._password.read_text(encoding="ascii")
        except OSError as error:
            raise BadUsage(
                f"the server in {self.folder} is of no cluster ({error.strerror}: {self._password})"
            ) from error

    def _configuration(self, told: Told, user: str, password: str) -> str:
        # A single server syncs every write, as SQLite does; in a cluster others have it too.
        stored = {"store_dir": str(self.folder)} | ({} if told.cluster else {"sync_interval": "always"})
        lines: dict[str, Any] = {
            "server_name": told.called,
            "listen": f"{_bracketed(told.host)}:{told.port}",
            "http": f"127.0.0.1:{told.http_port}",
            "pid_file": str(self.pid_file),
            "jetstream": stored,
        }
        if told.cluster:
            lines |= self._clustered(told, user, password)
        elif user:
            lines["authorization"] = {"user": user, "password": password}
        return "".join(f"{name}: {json.dumps(value)}\n" for name, value in lines.items())

    def _clustered(self, told: Told, user: str, password: str) -> dict[str, Any]:
        working = {"user": user or "tsuzuki", "password": password or "tsuzuki"}
        system = {"user": SYSTEM_USER, "password": self.system_password()}
        there = told.routes or (f"{_bracketed(told.reached)}:{told.cluster_port}",)  # JetStream wants one: itself
        known = f"{user}:{password}@" if user else ""
        cluster: dict[str, Any] = {
            "name": told.cluster,
            "listen": f"{_bracketed(told.host)}:{told.cluster_port}",
            "routes": [f"nats://{known}{route}" for route in there],
        }
        advertised: dict[str, Any] = {}
        if told.host not in _ANYWHERE:  # otherwise others are told the address from which it happens to connect
            cluster["advertise"] = cluster["listen"]
            advertised["client_advertise"] = f"{_bracketed(told.host)}:{told.port}"
        if user:
            cluster["authorization"] = {"user": user, "password": password}
        accounts = {_WORKING: {"jetstream": "enabled", "users": [working]}, _SYSTEM: {"users": [system]}}
        open_door = {} if user else {"no_auth_user": working["user"]}
        return {"cluster": cluster, "accounts": accounts, "system_account": _SYSTEM, **open_door, **advertised}


def program() -> str:
    """Finds the server: beside this Python, where its wheel puts it, or on the path."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise BadUsage(f"there is no nats-server here: {extras.installing('nats')} brings one")
    return found


def _kind(told: Told) -> str:
    return f"of the cluster {told.cluster}" if told.cluster else "that is alone"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _write_private(path: Path, text: str) -> None:
    wholefile.write(path, text.encode(), mode=0o600)
