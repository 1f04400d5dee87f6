"""What the address of a NATS store says: servers, names, replicas, and how to prove who we are.

`nats://host:4222,other:4222?prefix=team&replicas=3&creds=/etc/tsuzuki/worker.creds`
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from tsuzuki import settings
from tsuzuki.errors import BadUsage

_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+")
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST: Final = 366 * 86400
_LARGEST: Final = (1 << 63) - 1
_UNTOLD: Final = frozenset({"token", "password", "timeout"})
"""What is left out where an address is told: secrets, and how long this very process waits for an answer; a gateway
has a patience of its own, which nobody gave."""
_IDENTITY: Final = ("creds", "nkey", "token", "user", "password")
_NUMBERS: Final[tuple[tuple[str, float, float, str], ...]] = (
    ("replicas", 1, 5, "a whole number from 1 to 5"),
    ("connect_timeout", 0.001, _LONGEST, "seconds above 0, a year at most"),
    ("ready_timeout", 0.001, _LONGEST, "seconds above 0, a year at most"),
    ("timeout", 0.001, _LONGEST, "seconds above 0, a year at most"),
    ("patience", 0, _LONGEST, "seconds, 0 or above, a year at most"),
    ("ack_wait", 0.001, _LONGEST, "seconds above 0, a year at most"),
    ("ack_progress", 0.001, _LONGEST, "seconds above 0, a year at most"),
    ("max_deliver", 1, _LARGEST, "a whole number above 0"),
    ("max_ack_pending", 1, _LARGEST, "a whole number above 0"),
    ("max_bytes", -1, _LARGEST, "a number of bytes, or -1 for no limit"),
    ("wheel_history_ttl", 1, _LONGEST * 100, "seconds, 1 or above"),
    ("max_log_bytes", -1, _LARGEST, "a number of bytes, or -1 for no limit"),
)
"""What numbers may be: the least, the most, and how that is told."""
_FILES: Final = ("creds", "nkey", "tls_ca", "tls_cert", "tls_key")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a store and what it is called; limits of 0 and -1 mean: none.

    The last twelve are about workers, the work queue, the dead letters and wheels. An empty name is made of `prefix`;
    `max_deliver` is how often a run may be claimed without one new outcome; `ack_progress` is a third of a shorter
    `ack_wait`.
    """

    servers: tuple[str, ...]
    prefix: str = "tsuzuki"
    replicas: int = 1
    creds: str = ""
    nkey: str = ""
    token: str = ""
    user: str = ""
    password: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    inbox: str = "_INBOX"
    connect_timeout: float = 5.0
    ready_timeout: float = 30.0
    timeout: float = 5.0
    patience: float = 600.0
    max_bytes: int = -1
    max_log_bytes: int = 1 << 30
    workers_bucket: str = ""
    work_prefix: str = ""
    ack_wait: float = 30.0
    ack_progress: float = 10.0
    max_deliver: int = 20
    max_ack_pending: int = 200
    dlq_stream: str = ""
    dlq_prefix: str = ""
    dlq_execution_error: bool = True
    wheels_bucket: str = ""
    wheel_history_bucket: str = ""
    wheel_history_ttl: int = 7_776_000

    def __repr__(self) -> str:
        return f"Options({self.url})"  # it stands in tracebacks and logs

    @property
    def url(self) -> str:
        """The address that opens this store again; it tells no secret."""
        default = Options(servers=self.servers)
        changed = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in _UNTOLD and getattr(self, name) != getattr(default, name)
        }
        servers = ",".join(server.partition("//")[2] for server in self.servers)
        scheme = self.servers[0].partition(":")[0]
        return f"{scheme}://{servers}{'?' if changed else ''}{urlencode(changed)}"

    @property
    def identified(self) -> str:
        """Names what proves who we are; empty where nothing does."""
        return " and ".join(f"{name}=" for name in _IDENTITY if getattr(self, name))

    @property
    def encrypted(self) -> bool:
        """Whether we speak over TLS only."""
        return bool(self.tls_ca or self.tls_cert or self.servers[0].startswith("tls:"))

    def tls(self) -> ssl.SSLContext:
        """Gives what the server and we prove ourselves with; the system's authorities where none are given."""
        try:
            context = ssl.create_default_context(cafile=self.tls_ca or None)
            if self.tls_cert:
                context.load_cert_chain(self.tls_cert, self.tls_key or None, password="")
        except (OSError, ssl.SSLError, ValueError) as error:
            raise BadUsage(
                f"the certificates for NATS cannot be used: {error}; check tls_ca=, tls_cert= and tls_key="
            ) from error
        return context


def parse(url: str, defaults: Mapping[str, str] | None = None, **given: Any) -> Options:
    """Reads an address; what is given by name counts more, what is only a default counts less."""
    address, _, query = url.partition("?")
    scheme, _, authority = address.partition("://")
    hosts, identity = _hosts(authority.strip("/"))
    shown = f"{scheme}://{','.join(hosts)}"
    if scheme not in ("nats", "tls") or not all(hosts):
        raise BadUsage(f"{shown!r} is no address of a NATS store; use nats://HOST:PORT, or tls://HOST:PORT")
    for host in hosts:
        _check_host(host, shown)
    told = {**identity, **dict(parse_qsl(query, keep_blank_values=True))}
    known = set(Options.__struct_fields__) - {"servers"}
    if unknown := told.keys() - known:
        there = ", ".join(sorted(known))
        raise BadUsage(f"the address {shown} has unknown options {sorted(unknown)}; there are: {there}")
    chosen = {**settings.work_queue(), **told, **{name: value for name, value in given.items() if value is not None}}
    chosen = {**_left_open(chosen, defaults or {}), **chosen}
    servers = [f"{scheme}://{host}" for host in hosts]
    try:
        options = msgspec.convert({"servers": servers, **chosen}, Options, strict=False)
    except msgspec.ValidationError as error:
        raise BadUsage(f"the address {shown} has a bad option: {error}") from None
    if "ack_progress" not in chosen:  # whoever wants a short ack wait need not know the other
        options = msgspec.structs.replace(options, ack_progress=min(options.ack_progress, options.ack_wait / 3))
    _check(options)
    return options


def _hosts(authority: str) -> tuple[list[str], dict[str, str]]:
    """Takes the identity out of an address: it holds for all servers, those too that are found later."""
    identity: dict[str, str] = {}
    hosts: list[str] = []
    for part in authority.split(","):
        who, _, host = part.strip("/").rpartition("@")
        hosts.append(host)
        if who and not identity:
            user, colon, password = who.partition(":")
            identity = {"user": unquote(user), "password": unquote(password)} if colon else {"token": unquote(user)}
    return hosts, identity


def _check_host(host: str, shown: str) -> None:
    try:
        told = urlsplit(f"//{host}")
        good = bool(told.hostname) and told.port != 0
    except ValueError:  # the port is no number, or none that there can be; a bracket is missing
        good = False
    if not good:
        raise BadUsage(f"{host!r} in {shown} is no server; use HOST:PORT with a port from 1 to 65535, 4222 if left out")


def _left_open(chosen: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """Gives the defaults that count: who has said who he is, is nobody else as well."""
    identified = any(chosen.get(name) for name in _IDENTITY)
    return {name: value for name, value in defaults.items() if not (identified and name in _IDENTITY)}


def _check(options: Options) -> None:
    if not _PREFIX.fullmatch(options.prefix):
        raise BadUsage(f"prefix={options.prefix!r} names streams and subjects: use letters, digits, _ and - only")
    for name, least, most, allowed in _NUMBERS:
        if not least <= (number := getattr(options, name)) <= most:  # what is not a number fits nowhere
            raise BadUsage(f"{name}={number:g} makes no sense: it must be {allowed}")
    if bool(options.user) != bool(options.password):
        raise BadUsage("user= and password= go together: give both, or TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD")
    for name in _FILES:
        path = getattr(options, name)
        if path and not Path(path).is_file():
            raise BadUsage(f"{name}={path} is no file that can be read; check the path")
    _check_queue(options)


def _check_queue(options: Options) -> None:
    for name in ("work_prefix", "dlq_prefix"):
        if (given := getattr(options, name)) and not _SUBJECT.fullmatch(given):
            raise BadUsage(f"{name}={given!r} begins subjects: use words of letters, digits, _ and -, joined by dots")
    buckets = [(name, "a bucket") for name in ("workers_bucket", "wheels_bucket", "wheel_history_bucket")]
    for name, what in (("dlq_stream", "a stream"), *buckets):
        if (given := getattr(options, name)) and not _PREFIX.fullmatch(given):
            raise BadUsage(f"{name}={given!r} names {what}: use letters, digits, _ and - only")
    if not options.ack_progress < options.ack_wait:
        raise BadUsage(
            f"runs show every ack_progress={options.ack_progress:g} s that they are under way, which must be below "
            f"ack_wait={options.ack_wait:g} s (TSUZUKI_ACK_PROGRESS_INTERVAL_SEC, TSUZUKI_CONSUMER_ACK_WAIT_SEC)"
        )
