"""What can be set: each setting with its name in the environment, its default, how it is read, and what it means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "TSUZUKI_"
_MOST_KEPT: Final = 65_536


def above_zero(text: str) -> float:
    """Reads a number above 0."""
    refusal = "it must be a number above 0"
    try:
        value = float(text)
    except ValueError:
        raise ValueError(refusal) from None
    if not 0 < value < float("inf"):
        raise ValueError(refusal)
    return value


def counted(text: str) -> int:
    """Reads a whole number above 0."""
    return _whole(text, 1, None, "it must be a whole number above 0")


def kept(text: str) -> int:
    """Reads how many bytes are kept: none, or up to 64 KiB."""
    return _whole(text, 0, _MOST_KEPT, f"it must be a whole number from 0 to {_MOST_KEPT}")


def _whole(text: str, least: int, most: int | None, refusal: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError(refusal) from None
    if value < least or (most is not None and value > most):
        raise ValueError(refusal)
    return value


def switch(text: str) -> bool:
    """Reads true or false, in several words for them."""
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("it must be true or false")
    return words[text.lower()]


def tag(text: str) -> str:
    """Reads a tag."""
    if not text.isascii() or not text.replace("_", "a").replace("-", "a").isalnum():
        raise ValueError("a tag has letters, digits, _ and - only")
    return text


def one_of(*words: str) -> Callable[[str], str]:
    """Gives what reads one of these words."""

    def read(text: str) -> str:
        for word in words:
            if text.lower() == word.lower():
                return word
        raise ValueError(f"it must be one of {', '.join(words)}")

    return read


def auth(text: str) -> bool:
    """Reads whether API keys are asked for."""
    words = {"none": False, "api_key": True, "apikey": True}
    try:
        return words[text.lower()] if text.lower() in words else switch(text)
    except ValueError:
        raise ValueError("it must be none or api_key") from None


def header(text: str) -> str:
    """Reads the name of a header."""
    if not text.isascii() or not text.replace("-", "a").isalnum():
        raise ValueError("a header has letters, digits and - only")
    return text


def address(text: str) -> str:
    """Reads the address of a gateway."""
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
    Setting(
        "TSUZUKI_PROJECTION_DIR",
        "",
        "where lists of the runs on NATS are kept between starts; nothing is lost with it",
        otherwise="`projections` in the data directory",
    ),
    Setting("TSUZUKI_DEFAULT_TAG", "default", "the tag of runs, flows and workers that name none", tag),
    Setting("TSUZUKI_LOAD_DOTENV", "1", "whether the `.env` file is read", switch),
    Setting("TSUZUKI_ENV_FILE", ".env", "which file that is, seen from the current folder"),
)
"""Which store, and what holds everywhere."""

WORKERS: Final = (
    Setting("TSUZUKI_CANCEL_GRACE_PERIOD_SEC", "30.0", "how long a stopping run may take to end (seconds)", above_zero),
    Setting(
        "TSUZUKI_GRACE_SECONDS",
        "",
        "the same; counts more where both are set",
        above_zero,
        otherwise="`TSUZUKI_CANCEL_GRACE_PERIOD_SEC`",
    ),
    Setting(
        "TSUZUKI_WORKER_HEARTBEAT_INTERVAL_SEC",
        "5.0",
        "how often a worker shows that it lives (seconds); never less often than six times in a lease",
        above_zero,
    ),
    Setting(
        "TSUZUKI_RUN_HEARTBEAT_INTERVAL_SEC",
        "1.0",
        "how often it does so while it has runs under way: their `heartbeat_at` (seconds)",
        above_zero,
    ),
    Setting(
        "TSUZUKI_LEASE_SECONDS",
        "",
        "how long a worker may be silent before its runs are taken over (seconds)",
        above_zero,
        otherwise="30 on one machine, 6 elsewhere",
    ),
    Setting(
        "TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC",
        "20.0",
        "after how much silence a worker is shown as DISCONNECTED (seconds)",
        above_zero,
    ),
    Setting(
        "TSUZUKI_INPUTS_KEPT",
        "500",
        "how many bytes of what a step or an item was given are kept with its outcome, to be looked at; 0: none",
        kept,
    ),
    Setting(
        "TSUZUKI_MAX_RUN_SNAPSHOT_BYTES",
        "262144",
        "above this a snapshot leaves out its task records, then a large result, and shortens its params",
        counted,
    ),
    Setting("TSUZUKI_WORKFLOW_YAML_MAX_BYTES", "262144", "the largest flow written as YAML", counted),
)
"""Workers, and the runs they execute."""

GATEWAY: Final = (
    Setting("TSUZUKI_SERVER", "http://127.0.0.1:8000", "the gateway that commands and clients speak to", address),
    Setting("TSUZUKI_API_KEY", "", "the key they show it", otherwise="none", secret=True),
    Setting("TSUZUKI_HTTP_AUTH", "none", "whether the gateway asks for API keys: none or api_key", auth),
    Setting("TSUZUKI_HTTP_API_KEY_HEADER", "X-API-Key", "the header that has them", header),
    Setting("TSUZUKI_HTTP_MAX_STREAMS", "1000", "how many streams may be open; more are refused", counted),
    Setting("TSUZUKI_HTTP_MAX_REQUEST_BYTES", "4194304", "the largest request", counted),
    Setting(
        "TSUZUKI_DASHBOARD_LANG", "auto", "the language of the dashboard: auto, ja or en", one_of("auto", "ja", "en")
    ),
    Setting(
        "TSUZUKI_LOG_LEVEL",
        "INFO",
        "what workers and gateway log: DEBUG, INFO, WARNING, ERROR or CRITICAL",
        one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
    Setting("TSUZUKI_LOG_FORMAT", "json", "how: json (one object a line) or text", one_of("json", "text")),
    Setting("TSUZUKI_LOG_UTC", "true", "whether times in the log are UTC; local otherwise", switch),
    Setting("TSUZUKI_LOG_INCLUDE_TRACEBACK", "true", "whether the log has tracebacks", switch),
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
        "TSUZUKI_WORKERS_KV_BUCKET",
        "tsuzuki_workers",
        "the bucket where workers are, and keys, progress and limits beside them",
        option="workers_bucket",
    ),
    Setting(
        "TSUZUKI_WORK_SUBJECT_PREFIX",
        "tsuzuki.work",
        "what the subjects of the work queue begin with",
        option="work_prefix",
    ),
    Setting(
        "TSUZUKI_CONSUMER_ACK_WAIT_SEC",
        "30.0",
        "after how much silence about a ticket it is dealt out again",
        above_zero,
        option="ack_wait",
    ),
    Setting(
        "TSUZUKI_ACK_PROGRESS_INTERVAL_SEC",
        "10.0",
        "how often the queue is told that a run is under way; below `ack_wait`, and a third of one that is shorter",
        above_zero,
        option="ack_progress",
    ),
    Setting(
        "TSUZUKI_CONSUMER_MAX_DELIVER",
        "20",
        "how often a run may be claimed without one new outcome before it is FAILED; a shared run has at most 5",
        counted,
        option="max_deliver",
    ),
    Setting(
        "TSUZUKI_CONSUMER_MAX_ACK_PENDING",
        "200",
        "how many tickets of a tag, priority and flow may be out at a time",
        counted,
        option="max_ack_pending",
    ),
    Setting("TSUZUKI_DLQ_STREAM", "TSUZUKI_DLQ", "the stream of the dead letters", option="dlq_stream"),
    Setting("TSUZUKI_DLQ_SUBJECT_PREFIX", "tsuzuki.dlq", "what their subjects begin with", option="dlq_prefix"),
    Setting(
        "TSUZUKI_DLQ_PUBLISH_EXECUTION_ERROR",
        "true",
        "whether a flow that raised is a dead letter too",
        switch,
        option="dlq_execution_error",
    ),
)
"""NATS; another option `prefix` of the address stands in the place of `tsuzuki` in names that are not set."""

WHEELS: Final = (
    Setting(
        "TSUZUKI_WHEEL_OBJECT_STORE_BUCKET",
        "tsuzuki_wheels",
        "what the place is called where wheels are kept; on NATS an Object Store bucket",
        option="wheels_bucket",
    ),
    Setting("TSUZUKI_WHEEL_MAX_BYTES", "536870912", "the largest wheel", counted),
    Setting("TSUZUKI_WHEEL_SYNC_ENABLED", "0", "whether workers install wheels", switch),
    Setting("TSUZUKI_WHEEL_SYNC_DIR", ".tsuzuki/wheels", "where workers keep them; beside the store unless it is set"),
    Setting("TSUZUKI_WHEEL_SYNC_INTERVAL_SEC", "10.0", "how often they look for new ones (seconds)", above_zero),
    Setting("TSUZUKI_WHEEL_INSTALL_TIMEOUT_SEC", "180.0", "how long an installation may take (seconds)", above_zero),
    Setting(
        "TSUZUKI_WHEEL_HISTORY_KV_BUCKET",
        "tsuzuki_wheel_history",
        "the bucket on NATS in which it is written who brought them and took them away",
        option="wheel_history_bucket",
    ),
    Setting(
        "TSUZUKI_WHEEL_HISTORY_TTL_SEC",
        "7776000",
        "how long that is kept (seconds)",
        counted,
        option="wheel_history_ttl",
    ),
)
"""Wheels for workers."""

COMMITS: Final = (
    Setting("TSUZUKI_GITLAB_URL", "https://gitlab.com", "the GitLab server that the token below is for", address),
    Setting(
        "TSUZUKI_GITLAB_TOKEN", "", "the token for it; it is sent to no other server", otherwise="none", secret=True
    ),
    Setting(
        "TSUZUKI_COMMITS_TAG",
        "",
        "the tag of collections started over HTTP: that of a worker beside the files",
        tag,
        otherwise="`TSUZUKI_DEFAULT_TAG`",
    ),
)
"""The application commits."""

GLOSSARY: Final = (
    Setting(
        "TSUZUKI_GLOSSARY_TAG",
        "",
        "the tag of glossary runs started over HTTP: that of a worker beside the files",
        tag,
        otherwise="`TSUZUKI_DEFAULT_TAG`",
    ),
    Setting(
        "TSUZUKI_GLOSSARY_LLM_DEBUG",
        "0",
        "whether each question and answer of a glossary run is kept in a file that only its owner reads",
        switch,
    ),
)
"""The application glossary."""

NOTES: Final = (
    Setting(
        "TSUZUKI_NOTES_TAG",
        "",
        "the tag of imports started over HTTP: that of a worker beside the session folders",
        tag,
        otherwise="`TSUZUKI_DEFAULT_TAG`",
    ),
    Setting(
        "TSUZUKI_NOTES_MAX_UPLOAD_BYTES",
        "4294967296",
        "how large an export may be that is sent over HTTP, in pieces",
        counted,
    ),
)
"""The application notes."""

LLM: Final = (
    Setting(
        "TSUZUKI_LLM_PROVIDER",
        "offline",
        "who answers: openai, anthropic, gemini, ollama, offline, or a local server that speaks OpenAI's protocol: "
        "lmstudio, llama.cpp, vllm, local",
        str.lower,
    ),
    Setting("TSUZUKI_LLM_BASE_URL", "", "where the provider is", address, otherwise="the provider's own address"),
    Setting("TSUZUKI_LLM_MODEL", "", "which model answers", otherwise="the provider's default"),
    Setting(
        "TSUZUKI_LLM_CONCURRENCY",
        "",
        "how many questions are under way at once",
        counted,
        otherwise="1 for a local provider, 5 for others",
    ),
    Setting(
        "TSUZUKI_LLM_STRATEGY",
        "",
        "how many questions at once are asked: sync, batch or auto (`llm.bulk_strategy`)",
        one_of("sync", "batch", "auto"),
        otherwise="what is stored with the job queue, else sync",
    ),
    Setting("TSUZUKI_LLM_TIMEOUT_SEC", "600", "how long an answer may take (seconds)", above_zero),
    Setting("TSUZUKI_LLM_REQUESTS_PER_MINUTE", "", "how many requests a process sends", counted, otherwise="no limit"),
    Setting("TSUZUKI_LLM_TOKENS_PER_MINUTE", "", "how many tokens a process uses", counted, otherwise="no limit"),
    Setting("TSUZUKI_LLM_POLL_SEC", "30", "how often an open batch is looked at, after a faster start", above_zero),
    Setting(
        "TSUZUKI_LLM_SETTLE_SEC",
        "30",
        "how long a batch is looked for before it counts as never created (seconds); at least TSUZUKI_LLM_TIMEOUT_SEC",
        above_zero,
    ),
    Setting("TSUZUKI_LLM_CACHE", "0", "whether answers are kept and given again to equal questions", switch),
    Setting("TSUZUKI_LLM_CACHE_TTL_SEC", "2592000", "how long they are kept (seconds)", above_zero),
    Setting("TSUZUKI_LLM_CACHE_MAX_BYTES", "268435456", "how much of them is kept", counted),
)
"""Language models."""

KEYS: Final = (
    Setting("OPENAI_API_KEY", "", "the key for `openai`", otherwise="none", secret=True),
    Setting("ANTHROPIC_API_KEY", "", "the key for `anthropic`", otherwise="none", secret=True),
    Setting("GEMINI_API_KEY", "", "the key for `gemini`", otherwise="none", secret=True),
)
"""The keys of providers, under the names that their own tools gave them: the only ones without our prefix."""

ACCEPTED: Final = (
    Setting("TSUZUKI_RUNS_KV_BUCKET", "tsuzuki_runs", "rows are kept with the journal, not in a bucket"),
    Setting("TSUZUKI_WORKERS_KV_TTL_SEC", "15.0", "a worker that is gone stays in sight for a day", above_zero),
)
"""Known, so that an existing environment is not refused, but without effect: the reason stands beside each."""

SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (*STORE, *WORKERS, *GATEWAY, *NATS, *WHEELS, *COMMITS, *GLOSSARY, *NOTES, *LLM, *KEYS, *ACCEPTED)
}
