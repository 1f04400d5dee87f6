"""Which addresses of language models a project may name: none that could take the operator's key or reach elsewhere."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from tsuzuki import llm, settings
from tsuzuki.apps.glossary.refusals import BadValue, Refused
from tsuzuki.errors import BadUsage

KEYLESS: Final = frozenset({"ollama", "lmstudio", "llama.cpp", "vllm", "local", "local-llm"})
OLLAMA: Final = "http://127.0.0.1:11434"


def is_loopback(address: str) -> bool:
    """Tells whether an address is of this very machine, and nothing but an address."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or parts.username or parts.password or parts.query or parts.fragment:
        return False
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_address(provider: str, base_url: str, *, tenant: str) -> tuple[str, str]:
    """Gives provider and address as they are stored, or says why not; the operator's own address always is."""
    provider, base_url = provider.strip().lower(), base_url.strip().rstrip("/")
    try:
        llm.Address(provider, base_url or OLLAMA, "m").filled()
    except BadUsage as error:
        raise BadValue(str(error)) from None
    if not base_url or base_url == str(settings.value("TSUZUKI_LLM_BASE_URL") or "").rstrip("/"):
        return provider, base_url
    if urlsplit(base_url).scheme not in ("http", "https") or "@" in base_url:
        raise BadValue("アドレスが不正です / the address of a model begins with http:// or https:// and names nobody")
    if tenant:
        raise BadValue(
            "このサーバーではアドレスを指定できません / addresses of models are set by whoever runs this server "
            "(TSUZUKI_LLM_BASE_URL)"
        )
    if provider not in KEYLESS and not is_loopback(base_url):
        raise BadValue(
            "アドレスは環境変数 TSUZUKI_LLM_BASE_URL で指定してください / "
            f"the key of {provider or 'a provider'} is sent to no address that a project names: set it there"
        )
    return provider, base_url


def checked_ollama(base_url: str) -> str:
    """Gives the address of an Ollama server on this machine; others are not asked."""
    address = (base_url or OLLAMA).rstrip("/")
    if not is_loopback(address):
        raise Refused(
            "このマシンのアドレスのみ使えます / only a server on this machine is asked: http://localhost:11434"
        )
    return address
