"""Opens the provider that is asked for: by its name, at its address, with the key from the environment."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from tsuzuki import settings
from tsuzuki.errors import BadUsage
from tsuzuki.llm.capability import LOCAL
from tsuzuki.llm.pacing import pace_of
from tsuzuki.llm.providers import anthropic, gemini, ollama, openai
from tsuzuki.llm.providers.interface import Provider
from tsuzuki.llm.providers.offline import Offline
from tsuzuki.llm.wire import Patience, Wire

NAMES: Final = ("openai", "anthropic", "gemini", "ollama", "offline", *sorted(LOCAL - {"ollama"}))
_LOCAL_ADDRESSES: Final = {"lmstudio": "http://127.0.0.1:1234/v1", "vllm": "http://127.0.0.1:8000/v1"}
_LOCAL_ADDRESS: Final = "http://127.0.0.1:8080/v1"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Address:
    """Which provider, where, and which model; what is empty is as it is set."""

    provider: str = ""
    base_url: str = ""
    model: str = ""

    def filled(self) -> "Address":
        """Gives it with everything said: what is given counts most, then what is set, then the provider's own."""
        name = (self.provider or str(settings.value("TSUZUKI_LLM_PROVIDER"))).lower()
        if name not in NAMES:
            raise BadUsage(f"there is no provider {name!r}; there are {', '.join(NAMES)} (TSUZUKI_LLM_PROVIDER)")
        # What is set belongs to the provider that is set, and another one that is named here has its own; where none
        # is set it belongs to whoever is named: their questions, and a key, must not go to the public address instead.
        theirs = not settings.is_set("TSUZUKI_LLM_PROVIDER") or name == settings.value("TSUZUKI_LLM_PROVIDER")
        own = (settings.value("TSUZUKI_LLM_BASE_URL") if theirs else None) or ""
        url = self.base_url or own or _address(name)
        url = own if own and url == bare(own) else url  # what was written down has no password
        model = self.model or (settings.value("TSUZUKI_LLM_MODEL") if theirs else None) or _model(name)
        return Address(name, url.rstrip("/"), model)


def bare(url: str) -> str:
    """Gives an address as it may be written down: without a password."""
    scheme, found, rest = url.rstrip("/").partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{found}{place.rpartition('@')[2]}{slash}{path}"


def _is_address(text: str) -> bool:
    try:
        place = urlsplit(text)
    except ValueError:
        return False
    return place.scheme in ("http", "https") and bool(place.hostname)


def _address(name: str) -> str:
    own = {"openai": openai.ADDRESS, "anthropic": anthropic.ADDRESS, "gemini": gemini.ADDRESS, "offline": ""}
    return {**own, "ollama": ollama.ADDRESS}.get(name) or _LOCAL_ADDRESSES.get(
        name, "" if name in own else _LOCAL_ADDRESS
    )


def _model(name: str) -> str:
    models = {"anthropic": anthropic.MODEL, "gemini": gemini.MODEL, "ollama": ollama.MODEL, "offline": "rules"}
    return models.get(name, openai.MODEL if name == "openai" else "default")


def opened(address: Address | None = None, *, patience: Patience | None = None, watched: bool = False) -> Provider:
    """Gives a provider; close it in the end. Nothing is sent yet.

    `watched`: a person sits before it, who is told at once where nobody listens; a run would rather wait a little.
    """
    at = (address or Address()).filled()
    return MAKERS[at.provider](at, patience or (Patience(unheard=1) if watched else None))


def _offline(at: Address, patience: Patience | None) -> Provider:
    del patience
    return Offline(at.model)


def _anthropic(at: Address, patience: Patience | None) -> Provider:
    headers = {"x-api-key": "{}", "anthropic-version": anthropic.VERSION}
    return anthropic.Anthropic(_wire(at, headers, patience), at.model, anthropic.CAPABILITY)


def _gemini(at: Address, patience: Patience | None) -> Provider:
    return gemini.Gemini(_wire(at, {"x-goog-api-key": "{}"}, patience), at.model, gemini.CAPABILITY)


def _ollama(at: Address, patience: Patience | None) -> Provider:
    return ollama.Ollama(_wire(at, _NO_HEADERS, patience), at.model, ollama.capability(at.base_url))


def _openai(at: Address, patience: Patience | None) -> Provider:
    wire = _wire(at, {"authorization": "Bearer {}"}, patience)
    return openai.OpenAI(wire, at.model, openai.capability(at.provider, at.base_url))


Maker: TypeAlias = Callable[[Address, Patience | None], Provider]

MAKERS: Final[dict[str, Maker]] = {
    **dict.fromkeys(NAMES, _openai),
    "offline": _offline,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
"""Who opens a provider, by its name; servers of one's own speak OpenAI's protocol."""


def _wire(at: Address, headers: Mapping[str, str], patience: Patience | None) -> Wire:
    if not _is_address(at.base_url):
        hint = "such as http://127.0.0.1:8000/v1 (TSUZUKI_LLM_BASE_URL, --base-url)"
        raise BadUsage(f"{bare(at.base_url)!r} is no address of {at.provider}: it takes one {hint}")
    key = settings.provider_key(at.provider, at.base_url) or ""
    if not key and at.provider not in LOCAL and at.base_url == _address(at.provider):
        raise BadUsage(f"{at.provider} needs a key: set {at.provider.upper()}_API_KEY in the environment")
    shown = {name: text.format(key) for name, text in headers.items() if key or "{}" not in text}
    requests, tokens = (settings.value(f"TSUZUKI_LLM_{what}_PER_MINUTE") for what in ("REQUESTS", "TOKENS"))
    pace = pace_of(at.provider, at.base_url, requests, tokens)
    timeout = float(settings.value("TSUZUKI_LLM_TIMEOUT_SEC"))
    return Wire(at.provider, at.base_url, headers=shown, secret=key, timeout=timeout, pace=pace, patience=patience)


_OPEN: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Address, tuple[Provider, list[None]]]]] = (
    WeakKeyDictionary()
)


@asynccontextmanager
async def shared(address: Address | None = None) -> AsyncIterator[Provider]:
    """Gives a provider that everybody who asks at the same time shares; the last one closes it."""
    at = (address or Address()).filled()
    here = _OPEN.setdefault(asyncio.get_running_loop(), {})
    if at not in here:
        here[at] = (opened(at), [])
    provider, users = here[at]
    users.append(None)
    try:
        yield provider
    finally:
        users.pop()
        if not users:
            here.pop(at, None)
            await provider.close()
