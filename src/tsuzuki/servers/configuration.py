"""The configuration of a server: our own lines, and the operator's settings, which add to them and never replace them.

The settings file is included before our own lines, because NATS lets the later of two equal names win. Names that we
write are refused all the same: a line without effect would mislead whoever wrote it, and some names have aliases.
What the running server reports is compared with what was meant (`differences`).
"""

import json
import platform
import re
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tsuzuki.errors import BadUsage
from tsuzuki.listening import is_loopback

SETTINGS_FILE: Final = "settings.conf"
SYSTEM_USER: Final = "system"
ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
LOG_SIZE_LIMIT: Final = 64 << 20
LOG_FILES: Final = 5
_WORKING: Final = "TSUZUKI"
_SYSTEM: Final = "SYSTEM"
_CLUSTER_OPTIONS: Final = "use --cluster, --cluster-port and --cluster-tls-cert, -key, -ca"
_MONITOR: Final = "use --http-port; tsuzuki nats status reads it"
_OURS: Final = "leave it out; it is in the folder of the server"
RESERVED: Final = {
    "include": "put the lines of that file into this one",
    "jetstream": "use --sync, --max-file-store and --max-memory-store",
    **dict.fromkeys(("store_dir", "storedir"), "use --dir"),
    "cluster": _CLUSTER_OPTIONS,
    **dict.fromkeys(("listen", "host", "net", "client_advertise"), "use --host and --port"),
    "port": "use --port",
    "server_name": "use --name",
    **dict.fromkeys(("http", "http_port", "monitor_port", "http_base_path", "https", "https_port"), _MONITOR),
    **dict.fromkeys(("pid_file", "pidfile", "log_file", "logfile"), _OURS),
}
"""Top-level names that a settings file may not have, and what to use instead."""
_AUTHENTICATION: Final = frozenset(
    (
        *("authorization", "accounts", "no_auth_user", "default_sentinel", "trusted", "trusted_keys"),
        *("system_account", "system", "no_system_account", "no_system", "no_sys_acc"),
        *("operator", "operators", "roots", "root", "root_operators"),
        *("resolver", "account_resolver", "resolver_tls", "resolver_preload", "resolver_pinned_accounts"),
    )
)
"""Top-level names that decide who may connect."""
_LISTENERS: Final = frozenset(("websocket", "ws", "mqtt", "leafnodes", "leaf", "gateway"))
"""Top-level names of blocks that open another port."""
_TRUE: Final = ("true", "yes", "on")
_FALSE: Final = ("false", "no", "off")

_GAP: Final = re.compile(r"(?:[\s,;]|#[^\r\n]*|//[^\r\n]*)*")
_KEY: Final = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^\s=:]*))\s*[=:]?[ \t]*""")
_VALUE: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|\((?:[^\n]|\n(?!\)(?:\n|\Z)))*\n?\)?|[^\s,;\]}]+""", re.DOTALL)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a server was told when it was started; the next start needs to be told nothing."""

    host: str = "127.0.0.1"
    port: int = 4222
    http_port: int = 8222
    name: str = ""
    cluster: str = ""
    cluster_port: int = 6222
    routes: tuple[str, ...] = ()
    auth: str = ""
    """Who decides who may connect: `password`, `settings`, `none` if that was asked for; empty: nobody was asked."""
    sync: str = ""
    """`always` or `lazy`; empty: the default of its kind."""
    max_file_store: int = 0
    max_memory_store: int = 0
    cluster_tls_cert: str = ""
    cluster_tls_key: str = ""
    cluster_tls_ca: str = ""
    tls_required: bool = False
    """Whether the server insisted on TLS when it last ran; the next start may not have less."""
    tls_verified: bool = False
    """Whether it also asked clients for their certificates."""
    allow_unauthenticated: bool = False
    """Whether the operator allowed other machines to connect without a password."""

    @property
    def syncs(self) -> bool:
        """Whether it syncs every write: a single server does, as SQLite does; in a cluster others have it too."""
        return self.sync == "always" or (not self.sync and not self.cluster)

    @property
    def route_tls(self) -> dict[str, str]:
        """The files by which the servers of the cluster know each other."""
        files = {"cert_file": self.cluster_tls_cert, "key_file": self.cluster_tls_key, "ca_file": self.cluster_tls_ca}
        return {name: file for name, file in files.items() if file}

    @property
    def called(self) -> str:
        """The name of the server, which no other of its cluster has."""
        return self.name or f"{platform.node() if self.host in ANYWHERE else self.host}-{self.port}"

    @property
    def reached(self) -> str:
        """The host under which this machine reaches it."""
        return "127.0.0.1" if self.host in ANYWHERE else self.host

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"nats://{bracketed(self.reached)}:{self.port}"

    @property
    def public(self) -> bool:
        """Whether other machines can reach it."""
        return not is_loopback(self.host)


class Identity(msgspec.Struct, frozen=True):
    """A user and a password, which clients and the other servers of a cluster have to know."""

    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Identity({self.user!r})"

    @classmethod
    def of(cls, credentials: dict[str, str]) -> "Identity":
        """Return the user and the password among credentials; both or none, and as a server can read them."""
        identity = cls(credentials.get("user", ""), credentials.get("password", ""))
        both = f"{identity.user}{identity.password}"
        if bool(identity.user) != bool(identity.password) or not both.isprintable():
            raise BadUsage(
                "TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD belong together, without control characters; set both, or "
                "unset both"
            )
        return identity


def top_level_values(text: str) -> dict[str, str]:
    """Return the top-level names of a NATS configuration, in lower case as the server compares them, with their text.

    This only finds where values end; `nats-server -t` checks the syntax. A block can be read in the same way.
    """
    values: dict[str, str] = {}
    brackets: list[str] = []
    name, start = "", 0
    position, after_key = _after(_GAP, text, 0), False
    while position < len(text):
        sign = text[position]
        is_value = after_key or brackets[-1:] == ["["]
        if is_value and sign in "{[":
            brackets.append(sign)
            position += 1
        elif sign in "}]":
            del brackets[-1:]
            position += 1
        elif is_value:
            position = _after(_VALUE, text, position)
        elif sign == "{":  # around the whole file
            position += 1
        else:
            key = _KEY.match(text, position)
            position, after_key = _after(_KEY, text, position), True
            if key and not brackets:
                name, start = (key[1] or key[2] or key[3] or "").lower(), position
                values[name] = ""
            continue  # a comment cannot stand between a key and its value
        after_key = False
        if name and not brackets:
            values[name], name = text[start:position], ""
        position = _after(_GAP, text, position)
    return values


def _after(pattern: "re.Pattern[str]", text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def refuse_reserved(text: str, told: Told) -> None:
    """Refuse settings that would replace what we write, or decide who may connect without being asked to."""
    names = top_level_values(text).keys()
    wrong = [f"{name} ({RESERVED[name]})" for name in sorted(names & RESERVED.keys())]
    if told.auth != "settings":
        wrong += [f"{name} (use --auth settings if the file has the users)" for name in sorted(names & _AUTHENTICATION)]
    elif not names & _AUTHENTICATION:
        raise BadUsage(
            "--auth settings needs users in the settings file, and it has no authorization, accounts or operator; "
            "add one, or use --auth password"
        )
    if wrong:
        raise BadUsage(f"the settings file must not have {', '.join(wrong)}")


def refuse_unauthenticated(told: Told, identity: Identity, settings: str) -> None:
    """Refuse to let other machines in without a password, unless the operator allowed it."""
    if told.allow_unauthenticated:
        return
    open_routes = told.auth == "settings" and told.cluster and not identity.user
    if told.public and (told.auth in ("", "none") or open_routes):
        raise BadUsage(
            f"on {told.host} other machines can reach it: set TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD here and "
            "where it is used, or say --allow-unauthenticated"
        )
    values = top_level_values(settings)
    for name in sorted(values.keys() & _LISTENERS):
        if _is_open(told, name, top_level_values(values[name])):
            raise BadUsage(
                f"{name} opens another port without asking for a password. Set TSUZUKI_NATS_USER and "
                "TSUZUKI_NATS_PASSWORD and leave no_auth_user out (a gateway needs an authorization block of its own), "
                "or say --allow-unauthenticated"
            )


def _is_open(told: Told, name: str, block: dict[str, str]) -> bool:
    if told.auth == "settings":
        return False
    if name == "gateway":  # the users of the server do not apply to it
        return "authorization" not in block
    return told.auth != "password" or "no_auth_user" in block


def missing_tls(told: Told, settings: str) -> str:
    """Name what the settings lack of the TLS that the server had; empty if nothing."""
    required, verified = tls_of(settings)
    if told.tls_required and not required:
        return "TLS"
    return "TLS that asks for the certificates of clients" if told.tls_verified and not verified else ""


def tls_of(settings: str) -> tuple[bool, bool]:
    """Return whether settings make a server insist on TLS, and ask clients for their certificates.

    A variable or a nested file may say anything: it counts as yes here, and `differences` asks the running server.
    """
    values = top_level_values(settings)
    block = values.get("tls", "")
    names = top_level_values(block)
    required = "tls" in values and values.get("allow_non_tls", "").lower() not in _TRUE
    certificates = any(names.get(name, "off").lower() not in _FALSE for name in ("verify", "verify_and_map"))
    return required, certificates or "include" in names or block.startswith("$")


def compose(folder: Path, told: Told, identity: Identity, system_password: str, settings: str) -> str:
    """Return the text of nats.conf. What comes before `include` are defaults that the settings may change."""
    names = top_level_values(settings).keys()
    jetstream: dict[str, Any] = {"store_dir": str(folder)}
    if told.syncs:
        jetstream["sync_interval"] = "always"
    limits = {"max_file_store": told.max_file_store, "max_memory_store": told.max_memory_store}
    jetstream |= {name: value for name, value in limits.items() if value}
    lines: dict[str, Any] = {
        "server_name": told.called,
        "listen": f"{bracketed(told.host)}:{told.port}",
        "http": f"127.0.0.1:{told.http_port}",
        "pid_file": str(folder / "nats-server.pid"),
        "log_file": str(folder / "nats.log"),
        "jetstream": jetstream,
    }
    if told.cluster:
        lines |= _cluster(told, identity) | _accounts(told, identity, system_password, names)
    elif told.auth == "password":
        lines["authorization"] = {"user": identity.user, "password": identity.password}
    defaults = {"logfile_size_limit": LOG_SIZE_LIMIT, "logfile_max_num": LOG_FILES}
    return f"{_lines(defaults)}include {SETTINGS_FILE}\n{_lines(lines)}"


def _lines(values: dict[str, Any]) -> str:
    # NATS reads UTF-8, and knows no \u.
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())


def _cluster(told: Told, identity: Identity) -> dict[str, Any]:
    routes = told.routes or (f"{bracketed(told.reached)}:{told.cluster_port}",)  # JetStream wants one: itself
    known = f"{quote(identity.user, safe='')}:{quote(identity.password, safe='')}@" if identity.user else ""
    cluster: dict[str, Any] = {
        "name": told.cluster,
        "listen": f"{bracketed(told.host)}:{told.cluster_port}",
        "routes": [f"nats://{known}{route}" for route in routes],
    }
    lines: dict[str, Any] = {"cluster": cluster}
    if told.host not in ANYWHERE:  # otherwise others are told the address from which it happens to connect
        cluster["advertise"] = cluster["listen"]
        lines["client_advertise"] = f"{bracketed(told.host)}:{told.port}"
    if identity.user:
        cluster["authorization"] = {"user": identity.user, "password": identity.password}
    if told.route_tls:
        cluster["tls"] = told.route_tls
    return lines


def _accounts(told: Told, identity: Identity, system_password: str, names: AbstractSet[str]) -> dict[str, Any]:
    """Return the accounts of a cluster; the system account is the one by which servers are removed from it."""
    system = {_SYSTEM: {"users": [{"user": SYSTEM_USER, "password": system_password}]}}
    if told.auth == "settings":  # users of a plain authorization block are in the global account
        return {} if names & (_AUTHENTICATION - {"authorization"}) else {"accounts": system, "system_account": _SYSTEM}
    user = {"user": identity.user or "tsuzuki", "password": identity.password or "tsuzuki"}
    working = {_WORKING: {"jetstream": "enabled", "users": [user]}}
    open_door = {} if told.auth == "password" else {"no_auth_user": user["user"]}
    return {"accounts": working | system, "system_account": _SYSTEM, **open_door}


def differences(folder: Path, told: Told, settings: str, varz: dict[str, Any]) -> list[str]:
    """Compare what a running server reports with what it was told; return what differs, as sentences."""
    jetstream = (varz.get("jetstream") or {}).get("config") or {}
    cluster = varz.get("cluster") or {}
    store = str(folder / "jetstream")
    names = top_level_values(settings).keys()
    encrypted = told.tls_required or ("tls" in names and "allow_non_tls" not in names)
    found = {
        f"it stores its streams in {jetstream.get('store_dir')}, not in {store}": jetstream.get("store_dir") == store,
        "it asks no client who it is": told.auth not in ("password", "settings") or varz.get("auth_required"),
        "it does not insist on TLS": not encrypted or varz.get("tls_required"),
        "it does not ask for the certificates of clients": not told.tls_verified or varz.get("tls_verify"),
        f"it is not in the cluster {told.cluster!r}": cluster.get("name", "") == told.cluster,
        "its routes are not encrypted": not told.route_tls or cluster.get("tls_required"),
        "it does not sync every write": not told.syncs or jetstream.get("sync_always"),
    }
    return [text for text, ok in found.items() if not ok]


def bracketed(host: str) -> str:
    """Return a host as addresses have it, IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
