"""The only code that reads the environment: which values hold, and where each came from.

What is given by a flag or an argument counts most, then the environment, then the `.env` file, then the default. A
value that makes no sense is told of and its default holds; `check` makes that an error.
"""

import difflib
import functools
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tsuzuki import dotenv
from tsuzuki.defaults import NATS, PREFIX, SETTINGS, WHEELS, Setting, address, switch
from tsuzuki.errors import BadUsage
from tsuzuki.redact import redact

logger: Final = logging.getLogger("tsuzuki.settings")

ACK_PROGRESS: Final = "TSUZUKI_ACK_PROGRESS_INTERVAL_SEC"
ACK_WAIT: Final = "TSUZUKI_CONSUMER_ACK_WAIT_SEC"

MASKED: Final = "••••••"

_OPTIONS: Final = {
    "auth": "TSUZUKI_HTTP_AUTH",
    "api_key_header": "TSUZUKI_HTTP_API_KEY_HEADER",
    "max_streams": "TSUZUKI_HTTP_MAX_STREAMS",
    "max_request_bytes": "TSUZUKI_HTTP_MAX_REQUEST_BYTES",
    "max_snapshot_bytes": "TSUZUKI_MAX_RUN_SNAPSHOT_BYTES",
    "max_workflow_bytes": "TSUZUKI_WORKFLOW_YAML_MAX_BYTES",
    "max_wheel_bytes": "TSUZUKI_WHEEL_MAX_BYTES",
    "dashboard_lang": "TSUZUKI_DASHBOARD_LANG",
}
"""The options of the gateway, and the settings that say them."""

_NATS_SECRETS: Final = tuple(f"TSUZUKI_NATS_{name}" for name in ("PASSWORD", "TOKEN", "CREDS", "NKEY"))

_flags: Final[dict[str, str]] = {}
"""What the flags of this process say, by the name of the setting."""


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


@contextmanager
def flagged(**flags: str | None) -> Iterator[None]:
    """Lets flags count most in this whole process, threads and flows included, until the end of the block."""
    before = dict(_flags)
    _flags.update({name: text for name, text in flags.items() if text})
    try:
        yield
    finally:
        _flags.clear()
        _flags.update(before)


def check() -> None:
    """Raises BadUsage where something that is set makes no sense, instead of going on with a default."""
    refused = [found.refusal for found in effective() if found.refusal] + contradictions()
    if refused:
        raise BadUsage(f"the configuration makes no sense (--strict-config): {'; '.join(refused)}")


def contradictions() -> list[str]:
    """Says which settings make sense one by one and not together, and what holds instead."""
    often, patience = (_effective(SETTINGS[name]).value for name in (ACK_PROGRESS, ACK_WAIT))
    if often < patience:
        return []
    holds = f"a third of that ({patience / 3:g} s) holds"
    return [f"{ACK_PROGRESS}={often:g} is not below {ACK_WAIT}={patience:g}: {holds}; set a lower one"]


def strangers() -> dict[str, str]:
    """Gives the variables that begin like ours but are none, with the one that was perhaps meant."""
    names = {name for name in (*os.environ, *_dotenv()[0]) if name.startswith(PREFIX)} - SETTINGS.keys()
    return {name: _meant(name.removeprefix(PREFIX)) for name in sorted(names)}


def _meant(word: str) -> str:
    """Gives the setting that a word was perhaps meant as; what all of them begin with makes none of them alike."""
    known = {name.removeprefix(PREFIX): name for name in SETTINGS}
    return next((known[close] for close in difflib.get_close_matches(word, known, 1, cutoff=0.75)), "")


def is_set(name: str) -> bool:
    """Tells whether somebody set it, to whatever."""
    return bool(_text(name)[0])


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
    if text := _flags.get(name, ""):
        return text, "flag"
    if text := os.environ.get(name, "").strip():
        return text, "environment"
    found, file = _dotenv()
    return found.get(name, "").strip(), file


def describe_dotenv() -> str:
    """Name the settings that the `.env` file decides, without their values; empty if there are none."""
    names = [found.setting.name for found in effective() if found.origin == _dotenv()[1]]
    return f"settings from {_dotenv()[1]}: {', '.join(names)}" if names else ""


def refuse_mixed_origins(address: str, *secrets: str, given: str | None = None) -> None:
    """Raise BadUsage if the `.env` file of the current folder names an address, and a secret is from elsewhere.

    Otherwise a folder that somebody else made could have the secrets of the environment sent to its own server. A file
    that TSUZUKI_ENV_FILE names was chosen by the user, and is trusted. `given` is a secret that an argument says.
    """
    if os.environ.get("TSUZUKI_ENV_FILE", "").strip() or not _is_from_dotenv(address):
        return
    elsewhere = [name for name in secrets if is_set(name) and not _is_from_dotenv(name)]
    if given or elsewhere:
        secret = f"{secrets[0]} (or the argument for it)" if given else elsewhere[0]
        origin = "an argument" if given else f"the {_text(elsewhere[0])[1]}"
        raise BadUsage(
            f"{address} comes from .env in the current folder and {secret} from {origin}, so the secret is not sent "
            f"there; put both into that .env, set {address} in the environment, or trust the file with "
            "TSUZUKI_ENV_FILE=.env"
        )


def _is_from_dotenv(name: str) -> bool:
    text, origin = _text(name)
    return bool(text) and origin not in ("flag", "environment")


def _dotenv() -> tuple[Mapping[str, str], str]:
    """Gives what the `.env` file says, and its name."""
    named = os.environ.get("TSUZUKI_ENV_FILE", "").strip()
    file = named or ".env"
    try:
        if not switch(os.environ.get("TSUZUKI_LOAD_DOTENV", "").strip() or "1"):
            return {}, file
    except ValueError:
        pass  # it is told of where settings are looked up; its default is to read the file
    try:
        state = os.stat(file)  # noqa: PTH116 - asked for with every submission, where a Path costs more than the answer
        return _read_dotenv(file, os.getcwd(), state.st_mtime_ns, state.st_size), file  # noqa: PTH109 - the same
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
    """Gives the data directory: as given, as a flag of this process says, as set, or `.tsuzuki` here."""
    return Path(given or value("TSUZUKI_DATA_DIR"))


def projection_dir() -> Path:
    """Gives where the lists of stores on NATS are kept: as set, or beside the store of this machine."""
    return Path(value("TSUZUKI_PROJECTION_DIR") or data_dir() / "projections")


def backend_url(given: str | None = None, directory: str | os.PathLike[str] | None = None) -> str:
    """Gives the address of the store: as given, as set, or the SQLite file in the data directory."""
    url = given or (None if directory else _backend())
    if url == "nats":
        return _with_credentials("TSUZUKI_NATS_URL")
    if url and not given and not url.startswith("sqlite:"):
        return _with_credentials("TSUZUKI_BACKEND")
    return url or f"sqlite:{data_dir(directory) / 'tsuzuki.db'}"


def _with_credentials(name: str) -> str:
    """Return an address that is set; one that names its own user is not shown what proves who we are."""
    url = str(value(name))
    if "@" not in url:
        refuse_mixed_origins(name, *_NATS_SECRETS)
    return url


def _backend() -> str | None:
    if "TSUZUKI_DATA_DIR" in _flags and "TSUZUKI_BACKEND" not in _flags:
        return None  # a folder that was named counts more than an address in the environment
    return value("TSUZUKI_BACKEND") or ("nats" if _text("TSUZUKI_NATS_URL")[0] else None)


def nats_credentials() -> dict[str, str]:
    """Gives how to prove who we are to NATS, where the address does not say it."""
    names = ("creds", "nkey", "token", "user", "password", "tls_ca", "tls_cert", "tls_key")
    given = {name: value(f"TSUZUKI_NATS_{name.upper()}") for name in names}
    return {name: text for name, text in given.items() if text}


def grace_period() -> float:
    """Gives how long a cancelled or draining run may take to end."""
    return float(value("TSUZUKI_GRACE_SECONDS") or value("TSUZUKI_CANCEL_GRACE_PERIOD_SEC"))


def inputs_kept() -> int:
    """Gives how many bytes of what a call was given are kept with its outcome."""
    return int(value("TSUZUKI_INPUTS_KEPT"))


def lease(*, one_machine: bool) -> float:
    """Gives how long a worker may be silent before its runs are taken over.

    On one machine a lock tells at once that a process has ended, so the lease is only for those that stand still.
    Elsewhere silence is all that tells of a dead host: two looks and this lease are less than ten seconds.
    """
    return float(value("TSUZUKI_LEASE_SECONDS") or (30.0 if one_machine else 6.0))


def heartbeat(lease: float, *, working: bool = False) -> float:
    """Gives how often a worker shows that it lives, and with it the runs that it is working on."""
    often = [float(value("TSUZUKI_WORKER_HEARTBEAT_INTERVAL_SEC")), lease / 6]
    return min(*often, float(value("TSUZUKI_RUN_HEARTBEAT_INTERVAL_SEC")) if working else often[0])


def default_tag() -> str:
    """Gives the tag of runs and workers that name none."""
    return str(value("TSUZUKI_DEFAULT_TAG"))


def dashboard_language(wanted: str) -> str:
    """Gives the language of the dashboard: the one wanted, with `auto` that of this machine; empty: it says none."""
    if wanted != "auto":
        return wanted
    spoken = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    language = spoken.partition("_")[0].partition(".")[0].lower()
    return language if language in ("ja", "en") else ""


def worker_disconnect_timeout() -> float:
    """Gives after how much silence a worker is shown as DISCONNECTED."""
    return float(value("TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC"))


def work_queue() -> dict[str, Any]:
    """Gives what is set of queue, dead letters and wheels on NATS, by option; defaults are the options' own."""
    known = [setting for setting in (*NATS, *WHEELS) if setting.option]
    of_the_queue = [setting for setting in known if not setting.name.startswith("TSUZUKI_NATS_")]
    return {s.option: found for s in of_the_queue if _text(s.name)[0] and (found := _sensible(s)) is not None}


def wheel_bucket() -> str:
    """Gives what the place of the wheels is called."""
    return str(value("TSUZUKI_WHEEL_OBJECT_STORE_BUCKET"))


def wheel_history_ttl() -> float:
    """Gives how long it is kept who brought wheels and took them away (seconds)."""
    return float(value("TSUZUKI_WHEEL_HISTORY_TTL_SEC"))


def wheel_sync_dir() -> Path:
    """Gives where a worker keeps its wheels: as set, or beside the store of this machine."""
    name = "TSUZUKI_WHEEL_SYNC_DIR"
    return Path(value(name)) if is_set(name) else data_dir() / "wheels"


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


def environment(*, without: str, but: str = "") -> dict[str, str]:
    """Return the environment for a program, without the variables that begin with `without`, unless with `but`."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(without) or (but and name.startswith(but))
    }


def server(given: str | None = None) -> str:
    """Gives the address of the gateway: as given, as set, or the one that `tsuzuki up` has by default."""
    return str(address(given) if given else value("TSUZUKI_SERVER"))


def server_is_set() -> bool:
    """Tells whether somebody chose a gateway: commands then speak to it instead of the store."""
    return is_set("TSUZUKI_SERVER")


def api_key(given: str | None = None, server: str | None = None) -> str | None:
    """Gives the API key to show the gateway; without a server that is given, to the one that is set."""
    if server is None:
        refuse_mixed_origins("TSUZUKI_SERVER", "TSUZUKI_API_KEY", given=given)
    return given or value("TSUZUKI_API_KEY")


def colourless() -> bool:
    """Tells whether people want no colours: https://no-color.org, or a terminal that has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def provider_key(provider: str, base_url: str = "") -> str | None:
    """Gives the key of a provider of language models; None where there is none, or it needs none."""
    name = f"{provider.upper()}_API_KEY"
    if name not in SETTINGS:
        return None
    if base_url == str(value("TSUZUKI_LLM_BASE_URL") or "").rstrip("/"):
        refuse_mixed_origins("TSUZUKI_LLM_BASE_URL", name)
    key: str | None = value(name)
    return key
