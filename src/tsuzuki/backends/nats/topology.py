"""Every stream, bucket and subject of the store: the only code that spells one.

| stream | holds | subject |
|---|---|---|
| journal | the chain of each run: facts, and the row after them; what others asked of it | `P.j.RUN`, `P.r.RUN` |
| state | a key-value bucket: workers, progress, keys, idempotency keys, limits, a reserve | `$KV.P_workers.…` |
| log | log lines, the oldest go first | `P.l.RUN` |
| blobs | an Object Store bucket: large values | `$O.P_blobs.C.RUN.DIGEST.ONCE`, `$O.P_blobs.M.NAME` |
| work | a ticket for each shared run that has not ended; a work queue | `P.work.TAG.PRIORITY.FLOW.RUN` |
| dlq | dead letters, which outlive their runs | `P.dlq.RUN` |
| objects | an Object Store bucket: wheels in pieces, a record of each | `$O.P_wheels.C.NUID`, `$O.P_wheels.M.NAME` |
| history | a key-value bucket: who brought wheels, forgotten after a time | `$KV.P_wheel_history.KEY` |
| auth | a key-value bucket: API keys, which only admins write | `$KV.P_auth.ID` |
| numbers | one message; its sequence is the last number given to a run | `P.n` |

`P.work`, `P.dlq`, the stream of dead letters (`TSUZUKI_DLQ`) and the buckets may be called otherwise (`work_prefix`,
`dlq_prefix`, `dlq_stream`, `workers_bucket`, `wheels_bucket`, `wheel_history_bucket`).
Each tag, priority and flow with tickets has a durable consumer on `work`.

`P.ctl.restoring` is no stream: there whoever restores the store answers, for as long as that takes.
"""

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from tsuzuki.backends import API_KEYS
from tsuzuki.backends.nats.options import Options
from tsuzuki.errors import BadUsage

API: Final = "$JS.API"
NANO: Final = 1_000_000_000
UNUSED: Final = 24 * 3600
"""A consumer that nobody asked for so long is removed; it is made again when it is needed (seconds)."""
LAYOUT: Final = 2
"""How a store is laid out; raised when an older version would do harm to it, and refuses it then."""
LAYOUT_MARK: Final = "tsuzuki.layout"
"""Where the journal's stream says it."""
RESTORING: Final = "restoring"
"""What it says instead while a store is being restored: no layout, so that every version refuses it."""
RESTORING_MARK: Final = "tsuzuki.restoring"
"""Where it says which restore that is."""
_TICKET_WORDS: Final = 4
_NUID_WORDS: Final = 3
_JOURNAL: Final = "-journal"
_TOKEN: Final = re.compile(r"[^\s.*>\x00-\x1f]+")
BROUGHT: Final = ""
"""Stands for the flow of all runs that bring their workflow, as no flow is called so: not every worker can."""


class Group(NamedTuple):
    """What runs have in common whose tickets one consumer deals out, in their order."""

    tag: str
    priority: int
    flow: str


class Blob(NamedTuple):
    """What a subject says of a large value: whose it is, and the name of its pieces; empty where it is its record's."""

    run: str
    digest: str
    nuid: str


class Topology:
    """The names of one store."""

    def __init__(self, options: Options) -> None:
        self._options, prefix = options, options.prefix
        self._prefix = prefix
        self.journal = f"{prefix}{_JOURNAL}"
        self.bucket = options.workers_bucket or f"{prefix}_workers"
        self.state = f"KV_{self.bucket}"
        self.log = f"{prefix}-log"
        self.blobs_bucket = f"{prefix}_blobs"
        self.blobs = f"OBJ_{self.blobs_bucket}"
        self.all_of_blobs = f"$O.{self.blobs_bucket}.>"
        self.all_blob_pieces = f"$O.{self.blobs_bucket}.C.>"
        self.all_blob_records = f"$O.{self.blobs_bucket}.M.*"
        self.work = f"{prefix}-work"
        self._work = options.work_prefix or f"{prefix}.work"
        self.letters = options.dlq_stream or f"{prefix.upper()}_DLQ"
        self._letters = options.dlq_prefix or f"{prefix}.dlq"
        self.numbers = f"{prefix}-numbers"
        self.wheels = options.wheels_bucket or f"{prefix}_wheels"
        self.objects = f"OBJ_{self.wheels}"
        self.all_wheels = f"$O.{self.wheels}.M.*"
        self.all_wheel_pieces = f"$O.{self.wheels}.C.*"
        self._history = options.wheel_history_bucket or f"{prefix}_wheel_history"
        self.history = f"KV_{self._history}"
        self.all_events = f"$KV.{self._history}.*"
        self._auth = f"{prefix}_auth"
        self.auth = f"KV_{self._auth}"
        self.number = f"{prefix}.n"
        self.all_chains = f"{prefix}.j.*"
        self.all_letters = f"{self._letters}.*"
        self.all_tickets = f"{self._work}.*.*.*.*"
        self.all_work = f"{self._work}.>"
        self.all_requests = f"{prefix}.r.*"
        self.restoring = f"{prefix}.ctl.restoring"
        self.all_workers = f"$KV.{self.bucket}.worker.*"
        self.all_places = f"$KV.{self.bucket}.places.*"
        self.all_hidden = f"$KV.{self.bucket}.hidden.*"
        self.all_progress = f"$KV.{self.bucket}.progress.*"
        self.all_documents = f"$KV.{self.bucket}.doc.>"
        self.all_reserve = f"$KV.{self.bucket}.reserve.*"
        self.probe = f"$KV.{self.bucket}.clock"

    # Subjects

    def chain(self, run_id: str) -> str:
        """The subject of a run's chain."""
        return f"{self._prefix}.j.{_token(run_id)}"

    def request(self, run_id: str) -> str:
        """The subject of what others than its holder ask of a run."""
        return f"{self._prefix}.r.{_token(run_id)}"

    def lines(self, run_id: str) -> str:
        """The subject of a run's log."""
        return f"{self._prefix}.l.{_token(run_id)}"

    def blob_record(self, run_id: str, digest: str) -> str:
        """The record of a large value."""
        return f"$O.{self.blobs_bucket}.M.{_encoded(blob_name(run_id, digest))}"

    def blob_pieces(self, nuid: str) -> str:
        """The pieces of a large value, by the name that its record gives them."""
        return f"$O.{self.blobs_bucket}.C.{nuid}"

    def blobs_of(self, run_id: str) -> str:
        """The pieces of all large values of a run."""
        return f"$O.{self.blobs_bucket}.C.{_token(run_id)}.>"

    def letter(self, run_id: str) -> str:
        """The subject of a run's dead letters."""
        return f"{self._letters}.{_token(run_id)}"

    def ticket(self, group: Group, run_id: str) -> str:
        """The subject of a run's ticket."""
        return f"{self._group(group)}.{_token(run_id)}"

    def consumer(self, group: Group) -> tuple[str, dict[str, Any]]:
        """The consumer that deals out the tickets of a group: its name and its configuration."""
        options = self._options
        readable = f"{_escaped(group.tag)}_{group.priority}_{_escaped(group.flow)}"
        name = f"{readable[:80]}-{_digest(group.tag, str(group.priority), group.flow)[:12]}"
        return name, {
            "name": name,
            "durable_name": name,
            "filter_subject": f"{self._group(group)}.*",
            "ack_policy": "explicit",
            "ack_wait": int(options.ack_wait * NANO),
            "max_ack_pending": options.max_ack_pending,
            "max_deliver": -1,  # the journal counts claims: a queue that gives up would leave a run PENDING for ever
            "deliver_policy": "all",
            "inactive_threshold": UNUSED * NANO,
        }

    def _group(self, group: Group) -> str:
        return f"{self._work}.{_escaped(group.tag)}.{group.priority}.{_escaped(group.flow)}"

    def group_in(self, subject: str) -> Group:
        """Reads of which group a ticket is; what a subject that is none of ours does not say is left empty."""
        words = subject.removeprefix(f"{self._work}.").split(".")
        if len(words) != _TICKET_WORDS:
            return Group("", 0, "")
        return Group(unescaped(words[0]), int(words[1]) if words[1].isdecimal() else 0, unescaped(words[2]))

    def worker(self, worker: str) -> str:
        """The record of a worker."""
        return f"$KV.{self.bucket}.worker.{_escaped(worker)}"

    def hidden(self, worker: str) -> str:
        """The record that a worker is not to be shown; apart from its own, which every heartbeat replaces."""
        return f"$KV.{self.bucket}.hidden.{_escaped(worker)}"

    def document(self, kind: str, name: str) -> str:
        """A document of the whole store."""
        return f"{self._documents(kind)}.{_escaped(name)}"

    def documents(self, kind: str) -> str:
        """All documents of a kind."""
        return f"{self._documents(kind)}.*"

    def _documents(self, kind: str) -> str:
        return f"$KV.{self._auth}" if kind == API_KEYS else f"$KV.{self.bucket}.doc.{_escaped(kind)}"

    def progress(self, run_id: str) -> str:
        """The record of how far the steps of a run are."""
        return f"$KV.{self.bucket}.progress.{_token(run_id)}"

    def key(self, tenant: str, key: str) -> str:
        """The record of who holds a key."""
        return f"$KV.{self.bucket}.key.{_digest(tenant, key)}"

    def once(self, tenant: str, key: str) -> str:
        """The record of which run was made for an idempotency key."""
        return f"$KV.{self.bucket}.once.{_digest(tenant, key)}"

    def wheel(self, name: str) -> str:
        """The record of a wheel."""
        return f"$O.{self.wheels}.M.{_encoded(name)}"

    def wheel_pieces(self, nuid: str) -> str:
        """The pieces of a wheel."""
        return f"$O.{self.wheels}.C.{_token(nuid)}"

    def event(self, key: str) -> str:
        """What happened to a wheel."""
        return f"$KV.{self._history}.{_token(key)}"

    def reserve(self, number: int) -> str:
        """A piece of the room that is kept for what must be written."""
        return f"$KV.{self.bucket}.reserve.{number:02d}"

    def limit(self, kind: str, name: str) -> str:
        """The record of a shared limit."""
        return f"$KV.{self.bucket}.{kind}.{_digest(name)}"

    # Streams

    def streams(self) -> dict[str, dict[str, Any]]:
        """Gives the configuration of every stream by its name."""
        options, prefix = self._options, self._prefix
        full = {"discard": "new", "max_bytes": options.max_bytes if options.max_bytes > 0 else -1}
        tickets = {
            "retention": "workqueue",
            "max_msgs_per_subject": 1,
            "discard": "new",
            "discard_new_per_subject": True,
        }
        bucket = {"allow_rollup_hdrs": True, "deny_delete": True, "max_msgs_per_subject": 1}
        wanted: dict[str, Mapping[str, Any]] = {
            self.journal: {
                "subjects": [f"{prefix}.j.>", f"{prefix}.r.>"],
                "allow_msg_ttl": True,
                "metadata": {LAYOUT_MARK: str(LAYOUT)},
                **full,
            },
            self.state: {"subjects": [f"$KV.{self.bucket}.>"], **bucket, "discard": "new"},
            self.log: {"subjects": [f"{prefix}.l.>"], "max_bytes": options.max_log_bytes, "discard": "old"},
            self.blobs: {**_objects(self.blobs_bucket), **full},
            self.work: {"subjects": [self.all_tickets], **tickets},
            self.letters: {
                "subjects": [f"{self._letters}.>"],
                "max_msgs": 100_000,
                "discard": "old",
                "duplicate_window": 120 * NANO,
            },
            self.objects: _objects(self.wheels),
            self.history: {
                "subjects": [f"$KV.{self._history}.>"],
                **bucket,
                "discard": "new",
                "max_age": options.wheel_history_ttl * NANO,
            },
            self.auth: {"subjects": [f"$KV.{self._auth}.>"], **bucket, "discard": "new"},
            self.numbers: {"subjects": [self.number], "max_msgs": 1, "discard": "old"},
        }
        return {name: {**self._common(name), **settings} for name, settings in wanted.items()}

    def belonging(self, present: Iterable[str]) -> list[str]:
        """Picks the streams of this store out of all that a server has, the journal first, then by name.

        Those too that other versions have made: their names begin as ours do. Where another store's prefix fits a name
        as well and is longer, it is that one's.
        """
        present = set(present)
        prefixes = {name.removesuffix(_JOURNAL) for name in present if name.endswith(_JOURNAL)} | {self._prefix}
        known = set(self.streams())
        others = {name: max(_fitting(name, prefixes), key=len, default="") for name in present - known}
        ours = (known & present) | {name for name, prefix in others.items() if prefix == self._prefix}
        return sorted(ours, key=lambda name: (name != self.journal, name))

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "retention": "limits",
            "storage": "file",
            "num_replicas": self._options.replicas,
            "allow_direct": True,
            "max_age": 0,
            "duplicate_window": 100_000_000,  # nanoseconds; retries are told apart by what they wrote, not by an id
        }


# Requests to the server


def stream_info(stream: str) -> str:
    """Where a stream tells its state."""
    return f"{API}.STREAM.INFO.{stream}"


def purge_stream(stream: str) -> str:
    """Where messages of a stream are removed."""
    return f"{API}.STREAM.PURGE.{stream}"


def delete_message(stream: str) -> str:
    """Where one message of a stream is removed."""
    return f"{API}.STREAM.MSG.DELETE.{stream}"


def direct_get(stream: str) -> str:
    """Where any replica gives messages."""
    return f"{API}.DIRECT.GET.{stream}"


def leader_get(stream: str) -> str:
    """Where the leader gives a message."""
    return f"{API}.STREAM.MSG.GET.{stream}"


def create_consumer(stream: str, name: str) -> str:
    """Where a consumer is made."""
    return f"{API}.CONSUMER.CREATE.{stream}.{name}"


def acknowledgements(stream: str) -> str:
    """Where whoever was given messages of a stream says what became of them."""
    return f"$JS.ACK.{stream}.>"


def delete_consumer(stream: str, name: str) -> str:
    """Where a consumer is deleted."""
    return f"{API}.CONSUMER.DELETE.{stream}.{name}"


def consumer_info(stream: str, name: str) -> str:
    """Where a consumer tells its state."""
    return f"{API}.CONSUMER.INFO.{stream}.{name}"


def next_messages(stream: str, name: str) -> str:
    """Where a consumer is asked for more."""
    return f"{API}.CONSUMER.MSG.NEXT.{stream}.{name}"


def last_token(subject: str) -> str:
    """Gives whom a subject is about."""
    return subject.rpartition(".")[2]


def blob_name(run_id: str, digest: str) -> str:
    """What a large value is called in its bucket."""
    return f"{run_id}/{digest}"


def blob_nuid(run_id: str, digest: str, once: str) -> str:
    """What the pieces of a large value are called: those of a run begin alike, and each writing has its own."""
    return f"{_token(run_id)}.{_token(digest)}.{once}"


def blob_in(subject: str) -> Blob | None:
    """Reads which large value a subject is about; None where it is about none of ours."""
    _, _, kind, name = subject.split(".", 3)
    if kind == "C":
        words = name.split(".")
        return Blob(words[0], words[1], name) if len(words) == _NUID_WORDS else None
    try:
        run_id, _, digest = urlsafe_b64decode(name).decode().partition("/")
    except ValueError:  # another client has put it there
        return None
    return Blob(run_id, digest, "") if digest else None


def _fitting(name: str, prefixes: Iterable[str]) -> list[str]:
    """Gives the prefixes of stores that a stream may belong to by its name: a stream, a bucket or an object store."""
    kind = name.partition("_")[0] if name.startswith(("KV_", "OBJ_")) else ""
    bare = name.removeprefix(f"{kind}_") if kind else name
    return [prefix for prefix in prefixes if bare.startswith((f"{prefix}-", f"{prefix}_", f"{prefix.upper()}_"))]


def _objects(bucket: str) -> dict[str, Any]:
    return {"subjects": [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"], "allow_rollup_hdrs": True, "discard": "new"}


def _encoded(name: str) -> str:
    """Writes the name of an object as one word of a subject, as every client of NATS does."""
    return urlsafe_b64encode(name.encode()).decode()


def _token(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise BadUsage(f"{name!r} cannot be part of a NATS subject: no spaces, dots, * and > in ids")
    return name


def _escaped(name: str) -> str:
    """Writes any name as one word of a subject."""
    return quote(name, safe="").replace(".", "%2E").replace("%", "=") or "="


def unescaped(word: str) -> str:
    """Reads the name that a word of a subject stands for."""
    return unquote(word.replace("=", "%")) if word != "=" else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
