"""What the address of a NATS store says: servers, names, replicas, and how to prove who we are.

`nats://host:4222,other:4222?prefix=team&replicas=3&creds=/etc/tsuzuki/worker.creds`
"""

import re
import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from tsuzuki import settings
from tsuzuki.errors import BadUsage

_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+")
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_SECRETS: Final = frozenset({"token"})


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a store and what it is called; limits of 0 or below mean: none.

    The last eight are about the work queue and the dead letters. An empty name is made of `prefix`; `max_deliver` is
    how often a run may be claimed without one new outcome.
    """

    servers: tuple[str, ...]
    prefix: str = "tsuzuki"
    replicas: int = 1
    creds: str = ""
    nkey: str = ""
    token: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    connect_timeout: float = 5.0
    timeout: float = 5.0
    patience: float = 600.0
    max_bytes: int = -1
    max_log_bytes: int = 1 << 30
    work_prefix: str = ""
    ack_wait: float = 30.0
    ack_progress: float = 10.0
    max_deliver: int = 20
    max_ack_pending: int = 200
    dlq_stream: str = ""
    dlq_prefix: str = ""
    dlq_execution_error: bool = True

    @property
    def url(self) -> str:
        """The address that opens this store again; it tells no secret."""
        default = Options(servers=self.servers)
        changed = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in _SECRETS and getattr(self, name) != getattr(default, name)
        }
        servers = ",".join(re.sub(r"//[^@/]*@", "//", server).partition("//")[2] for server in self.servers)
        scheme = self.servers[0].partition(":")[0]
        return f"{scheme}://{servers}{'?' if changed else ''}{urlencode(changed)}"

    def credentials(self) -> dict[str, Any]:
        """Gives what the client needs to prove who we are, and to know who the server is."""
        given: dict[str, Any] = {"user_credentials": self.creds, "nkeys_seed": self.nkey, "token": self.token}
        chosen = {name: value for name, value in given.items() if value}
        if self.ca or self.cert or self.servers[0].startswith("tls:"):
            chosen["tls"] = self._tls()
        return chosen

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise BadUsage(f"the certificates for NATS cannot be read: {error}; check ca=, cert= and key=") from error
        return context


def parse(url: str, **given: Any) -> Options:
    """Reads an address; what is given by name counts more."""
    address, _, query = url.partition("?")
    scheme, _, hosts = address.partition("://")
    if scheme not in ("nats", "tls") or not hosts.strip("/"):
        raise BadUsage(f"{url!r} is no address of a NATS store; use nats://HOST:PORT, or tls://HOST:PORT")
    told = dict(parse_qsl(query, keep_blank_values=True))
    unknown = told.keys() - set(Options.__struct_fields__) | told.keys() & {"servers"}
    if unknown:
        known = ", ".join(sorted(set(Options.__struct_fields__) - {"servers"}))
        raise BadUsage(f"the address {address} has unknown options {sorted(unknown)}; there are: {known}")
    servers = tuple(f"{scheme}://{host.strip('/')}" for host in hosts.split(","))
    chosen = {**settings.work_queue(), **told, **{name: value for name, value in given.items() if value is not None}}
    try:
        options = msgspec.convert({"servers": servers, **chosen}, Options, strict=False)
    except msgspec.ValidationError as error:
        raise BadUsage(f"the address {address} has a bad option: {error}") from None
    if not _PREFIX.fullmatch(options.prefix):
        raise BadUsage(f"prefix={options.prefix!r} names streams and subjects: use letters, digits, _ and - only")
    _check_queue(options)
    return options


def _check_queue(options: Options) -> None:
    for name in ("work_prefix", "dlq_prefix"):
        if (given := getattr(options, name)) and not _SUBJECT.fullmatch(given):
            raise BadUsage(f"{name}={given!r} begins subjects: use words of letters, digits, _ and -, joined by dots")
    if options.dlq_stream and not _PREFIX.fullmatch(options.dlq_stream):
        raise BadUsage(f"dlq_stream={options.dlq_stream!r} names a stream: use letters, digits, _ and - only")
    if min(options.max_deliver, options.max_ack_pending) < 1:
        raise BadUsage("max_deliver= and max_ack_pending= must be above 0")
    if not 0 < options.ack_progress < options.ack_wait:
        raise BadUsage(
            f"runs show every ack_progress={options.ack_progress:g} s that they are under way, which must be below "
            f"ack_wait={options.ack_wait:g} s (TSUZUKI_ACK_PROGRESS_INTERVAL_SEC, TSUZUKI_CONSUMER_ACK_WAIT_SEC)"
        )
