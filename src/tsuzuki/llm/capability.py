"""What a provider can do, as a value, and which providers are local."""

import ipaddress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

Rung: TypeAlias = Literal["json_schema", "json_object", "prompt"]

LOCAL: Final = frozenset({"local", "local-llm", "lmstudio", "ollama", "llama.cpp", "vllm"})
"""Names of servers that people run themselves."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much goes into one batch of a provider."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Capability:
    """What a provider can do."""

    rungs: tuple[Rung, ...] = ("json_schema", "json_object", "prompt")
    """How it can be held to a schema, best first."""
    streams: bool = True
    local: bool = False
    batch: BatchLimits | None = None

    @property
    def concurrency(self) -> int:
        """How many questions it is asked at once, unless somebody says otherwise."""
        return 1 if self.local else 5


def is_local(provider: str, base_url: str) -> bool:
    """Tells whether a provider is a server of one's own: it has such a name, and its address is a private one."""
    if provider not in LOCAL:
        return False
    host = urlsplit(base_url).hostname or "localhost"
    if host == "localhost" or host.endswith((".local", ".internal", ".lan")) or "." not in host:
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
