"""The only code that reads the environment: what can be set, its name there, its default, and where a value came from.

What is given by a flag or an argument counts most, then the environment, then the `.env` file, then the default. A
value that makes no sense is told of and its default holds; `check` makes that an error.
"""

import difflib
import functools
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tsuzuki import dotenv
from tsuzuki.errors import BadUsage
from tsuzuki.redact import redact

logger: Final = logging.getLogger("tsuzuki.settings")

PREFIX: Final = "TSUZUKI_"
MASKED: Final = "••••••"


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("it must be a number above 0")
    return value


def _counted(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("it must be a whole number above 0")
    return value


def _switch(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("it must be true or false")
    return words[text.lower()]


def _tag(text: str) -> str:
    if not text.isascii() or not text.replace("_", "a").replace("-", "a").isalnum():
        raise ValueError("a tag has letters, digits, _ and - only")
    return text


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        for word in words:
            if text.lower() == word.lower():
                return word
        raise ValueError(f"it must be one of {', '.join(words)}")

    return read


def _auth(text: str) -> bool:
    words = {"none": False, "api_key": True, "apikey": True}
    try:
        return words[text.lower()] if text.lower() in words else _switch(text)
    except ValueError:
        raise ValueError("it must be none or api_key") from None


def _header(text: str) -> str:
    if not text.isascii() or not text.replace("-", "a").isalnum():
        raise ValueError("a header has letters, digits and - only")
    return text


def _address(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("it must begin with http:// or https://")
    return text.rstrip("/")


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set: its name, its default as one would write it, what it means."""

    name: str
    default: str
    means: str
    read: Callable[[str], Any] = str
    option: str = ""
    """The option of a NATS address that says the same, and counts more."""
    otherwise: str = ""
    """What holds where there is no default, in words."""
    secret: bool = False


STORE: Final = (
    Setting("TSUZUKI_DATA_DIR", ".tsuzuki", "the folder of the store"),
    Setting(
        "TSUZUKI_BACKEND",
        "",
        "the address of the store; `nats` alone means `TSUZUKI_NATS_URL`",
        otherwise="the SQLite file in that folder",
    ),
    Setting("TSUZUKI_DEFAULT_TAG", "default", "the tag of runs, flows and workers that name none", _tag),
    Setting("TSUZUKI_LOAD_DOTENV", "1", "whether the `.env` file is read", _switch),
    Setting("TSUZUKI_ENV_FILE", ".env", "which file that is, seen from the current folder"),
)
"""Which store, and what holds everywhere."""

WORKERS: Final = (
    Setting(
        "TSUZUKI_CANCEL_GRACE_PERIOD_SEC", "30.0", "how long a stopping run may take to end (seconds)", _above_zero
    ),
    Setting(
        "TSUZUKI_GRACE_SECONDS",
        "",
        "the same; counts more where both are set",
        _above_zero,
        otherwise="`TSUZUKI_CANCEL_GRACE_PERIOD_SEC`",
    ),
    Setting(
        "TSUZUKI_WORKER_HEARTBEAT_INTERVAL_SEC",
        "5.0",
        "how often a worker shows that it lives (seconds); never less often than six times in a lease",
        _above_zero,
    ),
    Setting(
        "TSUZUKI_LEASE_SECONDS",
        "",
        "how long a worker may be silent before its runs are taken over (seconds)",
        _above_zero,
        otherwise="30 on one machine, 6 elsewhere",
    ),
    Setting(
        "TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC",
        "20.0",
        "after how much silence a worker is shown as DISCONNECTED (seconds)",
        _above_zero,
    ),
    Setting("TSUZUKI_MAX_RUN_SNAPSHOT_BYTES", "262144", "above this a snapshot leaves its task records out", _counted),
    Setting("TSUZUKI_WORKFLOW_YAML_MAX_BYTES", "262144", "the largest flow written as YAML", _counted),
)
"""Workers, and the runs they execute."""

GATEWAY: Final = (
    Setting("TSUZUKI_SERVER", "http://127.0.0.1:8000", "the gateway that commands and clients speak to", _address),
    Setting("TSUZUKI_API_KEY", "", "the key they show it", otherwise="none", secret=True),
    Setting("TSUZUKI_HTTP_AUTH", "none", "whether the gateway asks for API keys: none or api_key", _auth),
    Setting("TSUZUKI_HTTP_API_KEY_HEADER", "X-API-Key", "the header that has them", _header),
    Setting("TSUZUKI_HTTP_MAX_STREAMS", "1000", "how many streams may be open; more are refused", _counted),
    Setting("TSUZUKI_HTTP_MAX_REQUEST_BYTES", "4194304", "the largest request", _counted),
    Setting(
        "TSUZUKI_DASHBOARD_LANG", "auto", "the language of the dashboard: auto, ja or en", _one_of("auto", "ja", "en")
    ),
    Setting(
        "TSUZUKI_LOG_LEVEL",
        "INFO",
        "what workers and gateway log: DEBUG, INFO, WARNING, ERROR or CRITICAL",
        _one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
    Setting("TSUZUKI_LOG_FORMAT", "json", "how: json (one object a line) or text", _one_of("json", "text")),
    Setting("TSUZUKI_LOG_UTC", "true", "whether times in the log are UTC; local otherwise", _switch),
    Setting("TSUZUKI_LOG_INCLUDE_TRACEBACK", "true", "whether the log has tracebacks", _switch),
)
"""Gateway, clients and logs."""

NATS: Final = (
    Setting(
        "TSUZUKI_NATS_URL", "nats://127.0.0.1:4222", "where NATS is; set, it is the store unless `TSUZUKI_BACKEND` is"
    ),
    Setting("TSUZUKI_NATS_CREDS", "", "the file with our credentials", option="creds", otherwise="none"),
    Setting("TSUZUKI_NATS_NKEY", "", "the file with our nkey seed", option="nkey", otherwise="none"),
    Setting("TSUZUKI_NATS_TOKEN", "", "our token", option="token", otherwise="none", secret=True),
    Setting("TSUZUKI_NATS_USER", "", "our user name", option="user", otherwise="none"),
    Setting("TSUZUKI_NATS_PASSWORD", "", "and our password", option="password", otherwise="none", secret=True),
    Setting("TSUZUKI_NATS_TLS_CA", "", "the authorities we trust", option="tls_ca", otherwise="the system's"),
    Setting("TSUZUKI_NATS_TLS_CERT", "", "our certificate", option="tls_cert", otherwise="none"),
    Setting("TSUZUKI_NATS_TLS_KEY", "", "its key", option="tls_key", otherwise="none"),
    Setting(
        "TSUZUKI_WORK_SUBJECT_PREFIX",
        "",
        "what the subjects of the work queue begin with",
        option="work_prefix",
        otherwise="`PREFIX.work`",
    ),
    Setting(
        "TSUZUKI_CONSUMER_ACK_WAIT_SEC",
        "30.0",
        "after how much silence about a ticket it is dealt out again",
        _above_zero,
        option="ack_wait",
    ),
    Setting(
        "TSUZUKI_ACK_PROGRESS_INTERVAL_SEC",
        "10.0",
        "how often the queue is told that a run is under way; below `ack_wait`",
        _above_zero,
        option="ack_progress",
    ),
    Setting(
        "TSUZUKI_CONSUMER_MAX_DELIVER",
        "20",
        "how often a run may be claimed without one new outcome before it is FAILED",
        _counted,
        option="max_deliver",
    ),
    Setting(
        "TSUZUKI_CONSUMER_MAX_ACK_PENDING",
        "200",
        "how many tickets of a tag, priority and flow may be out at a time",
        _counted,
        option="max_ack_pending",
    ),
    Setting("TSUZUKI_DLQ_STREAM", "", "the stream of the dead letters", option="dlq_stream", otherwise="`PREFIX-dlq`"),
    Setting(
        "TSUZUKI_DLQ_SUBJECT_PREFIX",
        "",
        "what their subjects begin with",
        option="dlq_prefix",
        otherwise="`PREFIX.dlq`",
    ),
    Setting(
        "TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR",
        "true",
        "whether a flow that raised is a dead letter too",
        _switch,
        option="dlq_execution_error",
    ),
)
"""NATS; `PREFIX` is the option `prefix` of the address, `tsuzuki` by default."""

WHEELS: Final = (
    Setting("TSUZUKI_WHEEL_OBJECT_STORE_BUCKET", "tsuzuki_wheels", "where wheels are kept"),
    Setting("TSUZUKI_WHEEL_MAX_BYTES", "536870912", "the largest wheel", _counted),
    Setting("TSUZUKI_WHEEL_SYNC_ENABLED", "0", "whether workers install wheels", _switch),
    Setting("TSUZUKI_WHEEL_SYNC_DIR", ".tsuzuki/wheels", "where workers keep them"),
    Setting("TSUZUKI_WHEEL_SYNC_INTERVAL_SEC", "10.0", "how often they look for new ones (seconds)", _above_zero),
    Setting("TSUZUKI_WHEEL_INSTALL_TIMEOUT_SEC", "180.0", "how long an installation may take (seconds)", _above_zero),
    Setting("TSUZUKI_WHEEL_HISTORY_KV_BUCKET", "tsuzuki_wheel_history", "where it is written who brought them"),
    Setting("TSUZUKI_WHEEL_HISTORY_TTL_SEC", "7776000", "how long that is kept (seconds)", _counted),
)
"""Wheels for workers: read already, used once wheels are there."""

ACCEPTED: Final = (
    Setting("TSUZUKI_RUNS_KV_BUCKET", "tsuzuki_runs", "rows are kept with the journal, not in a bucket"),
    Setting("TSUZUKI_WORKERS_KV_BUCKET", "tsuzuki_workers", "the bucket is `PREFIX-workers`"),
    Setting("TSUZUKI_WORKERS_KV_TTL_SEC", "15.0", "a worker that is gone stays in sight for a day", _above_zero),
    Setting(
        "TSUZUKI_RUN_HEARTBEAT_INTERVAL_SEC",
        "1.0",
        "workers show that they live, and with them their runs",
        _above_zero,
    ),
)
"""Known, so that an existing environment is not refused, but without effect: the reason stands beside each."""

_OPTIONS: Final = {
    "auth": "TSUZUKI_HTTP_AUTH",
    "api_key_header": "TSUZUKI_HTTP_API_KEY_HEADER",
    "max_streams": "TSUZUKI_HTTP_MAX_STREAMS",
    "max_request_bytes": "TSUZUKI_HTTP_MAX_REQUEST_BYTES",
    "max_snapshot_bytes": "TSUZUKI_MAX_RUN_SNAPSHOT_BYTES",
    "max_workflow_bytes": "TSUZUKI_WORKFLOW_YAML_MAX_BYTES",
    "dashboard_lang": "TSUZUKI_DASHBOARD_LANG",
}
"""The options of the gateway, and the settings that say them."""

SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting for setting in (*STORE, *WORKERS, *GATEWAY, *NATS, *WHEELS, *ACCEPTED)
}


# ----------------------------------------------------------------------------------------------- what is set, and where


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting with the value that holds, and where it came from."""

    setting: Setting
    value: Any
    origin: str
    """`flag`, `environment`, the name of the `.env` file, or `default`."""
    refusal: str = ""
    """Why what was set is ignored."""

    @property
    def shown(self) -> str:
        """The value for people; secrets are masked."""
        if self.value is None:
            return f"({self.setting.otherwise.replace('`', '')})"
        text = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        return MASKED if self.setting.secret else redact(text)


def effective(flags: Mapping[str, str | None] | None = None) -> list[Effective]:
    """Gives every setting with the value that holds; flags, by the name of what they stand for, count most."""
    given = {name: text for name, text in (flags or {}).items() if text}
    return [
        Effective(setting, setting.read(given[name]), "flag") if name in given else _effective(setting)
        for name, setting in SETTINGS.items()
    ]


def check() -> None:
    """Raises BadUsage where something that is set makes no sense, instead of going on with a default."""
    refused = [found.refusal for found in effective() if found.refusal]
    if refused:
        raise BadUsage(f"the configuration makes no sense (--strict-config): {'; '.join(refused)}")


def strangers() -> dict[str, str]:
    """Gives the variables that begin like ours but are none, with the one that was perhaps meant."""
    names = {name for name in (*os.environ, *_dotenv()[0]) if name.startswith(PREFIX)} - SETTINGS.keys()
    return {name: next(iter(difflib.get_close_matches(name, SETTINGS, 1)), "") for name in sorted(names)}


def value(name: str) -> Any:
    """Gives the value of a setting that holds; None where nothing is set and there is no default."""
    found = _effective(SETTINGS[name])
    if found.refusal:
        _tell_once(found.refusal)
    return found.value


def _effective(setting: Setting) -> Effective:
    text, origin = _text(setting.name)
    default = setting.read(setting.default) if setting.default else None
    if not text:
        return Effective(setting, default, "default")
    try:
        return Effective(setting, setting.read(text), origin)
    except ValueError as error:
        said = MASKED if setting.secret else repr(text)
        holds = setting.default or setting.otherwise.replace("`", "")
        refusal = f"{setting.name}={said} is ignored, its default ({holds}) holds: {error}"
        return Effective(setting, default, "default", refusal)


@functools.cache
def _tell_once(refusal: str) -> None:
    """Warns of a value that makes no sense, once: some settings are looked up again and again."""
    logger.warning("%s", refusal)


def _text(name: str) -> tuple[str, str]:
    """Gives what is written somewhere for a setting, and where."""
    if text := os.environ.get(name, "").strip():
        return text, "environment"
    found, file = _dotenv()
    return found.get(name, "").strip(), file


def _dotenv() -> tuple[Mapping[str, str], str]:
    """Gives what the `.env` file says, and its name."""
    named = os.environ.get("TSUZUKI_ENV_FILE", "").strip()
    file = named or ".env"
    try:
        if not _switch(os.environ.get("TSUZUKI_LOAD_DOTENV", "").strip() or "1"):
            return {}, file
    except ValueError:
        pass  # it is told of where settings are looked up; its default is to read the file
    try:
        state = Path(file).stat()
        return _read_dotenv(file, str(Path.cwd()), state.st_mtime_ns, state.st_size), file
    except OSError as error:
        if named:
            _tell_once(f"TSUZUKI_ENV_FILE={named!r} cannot be read ({error.strerror}): it is ignored")
        return {}, file


@functools.lru_cache(maxsize=8)
def _read_dotenv(file: str, folder: str, changed: int, size: int) -> Mapping[str, str]:
    """Reads a file once, and again when it has changed."""
    del folder, changed, size  # they tell one state of the file from another
    found, strange = dotenv.parse(Path(file).read_text(encoding="utf-8", errors="replace"))
    if strange:
        logger.warning("%s: line %s is not NAME=VALUE and is ignored", file, ", ".join(map(str, strange)))
    return found


# ------------------------------------------------------------------------------------------------------ what others ask


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """Gives the data directory: as given, as set, or `.tsuzuki` in the current folder."""
    return Path(given or value("TSUZUKI_DATA_DIR"))


def backend_url(given: str | None = None, directory: str | os.PathLike[str] | None = None) -> str:
    """Gives the address of the store: as given, as set, or the SQLite file in the data directory."""
    url = given or (None if directory else _backend())
    if url == "nats":
        return str(value("TSUZUKI_NATS_URL"))
    return url or f"sqlite:{data_dir(directory) / 'tsuzuki.db'}"


def _backend() -> str | None:
    return value("TSUZUKI_BACKEND") or ("nats" if _text("TSUZUKI_NATS_URL")[0] else None)


def nats_credentials() -> dict[str, str]:
    """Gives how to prove who we are to NATS, where the address does not say it."""
    names = ("creds", "nkey", "token", "user", "password", "tls_ca", "tls_cert", "tls_key")
    given = {name: value(f"TSUZUKI_NATS_{name.upper()}") for name in names}
    return {name: text for name, text in given.items() if text}


def grace_period() -> float:
    """Gives how long a cancelled or draining run may take to end."""
    return float(value("TSUZUKI_GRACE_SECONDS") or value("TSUZUKI_CANCEL_GRACE_PERIOD_SEC"))


def lease(*, one_machine: bool) -> float:
    """Gives how long a worker may be silent before its runs are taken over.

    On one machine a lock tells at once that a process has ended, so the lease is only for those that stand still.
    Elsewhere silence is all that tells of a dead host: two looks and this lease are less than ten seconds.
    """
    return float(value("TSUZUKI_LEASE_SECONDS") or (30.0 if one_machine else 6.0))


def heartbeat(lease: float) -> float:
    """Gives how often a worker shows that it lives."""
    return min(float(value("TSUZUKI_WORKER_HEARTBEAT_INTERVAL_SEC")), lease / 6)


def default_tag() -> str:
    """Gives the tag of runs and workers that name none."""
    return str(value("TSUZUKI_DEFAULT_TAG"))


def worker_disconnect_timeout() -> float:
    """Gives after how much silence a worker is shown as DISCONNECTED."""
    return float(value("TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC"))


def work_queue() -> dict[str, Any]:
    """Gives what is set of the work queue and the dead letters on NATS, by option; defaults are the options' own."""
    of_the_queue = [setting for setting in NATS if setting.option and not setting.name.startswith("TSUZUKI_NATS_")]
    return {s.option: found for s in of_the_queue if _text(s.name)[0] and (found := _sensible(s)) is not None}


def _sensible(setting: Setting) -> Any:
    """Gives what is set; None where it makes no sense."""
    found = _effective(setting)
    if found.refusal:
        _tell_once(found.refusal)
        return None
    return found.value


def gateway() -> dict[str, Any]:
    """Gives what is set of the gateway, by option; the defaults are the options' own."""
    if refusal := _effective(SETTINGS["TSUZUKI_HTTP_AUTH"]).refusal:
        raise BadUsage(refusal)  # a word that is not understood must not open the door
    return {option: found for option, name in _OPTIONS.items() if (found := _sensible(SETTINGS[name])) is not None}


def exposed(name: str) -> str | None:
    """Gives a variable that a YAML flow exposes to its tasks (`runtime.expose_env`), or None where it is not set."""
    return os.environ.get(name)


def server(given: str | None = None) -> str:
    """Gives the address of the gateway: as given, as set, or the one that `tsuzuki up` has by default."""
    return str(_address(given) if given else value("TSUZUKI_SERVER"))


def server_is_set() -> bool:
    """Tells whether somebody chose a gateway: commands then speak to it instead of the store."""
    return bool(_text("TSUZUKI_SERVER")[0])


def api_key(given: str | None = None) -> str | None:
    """Gives the API key to show the gateway."""
    return given or value("TSUZUKI_API_KEY")
